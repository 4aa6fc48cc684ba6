//! Process groups: membership, watching a group, and sending to its members.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::pin::pin;
use std::task::{Context as TaskContext, Waker};
use std::time::Duration;

use strowger::testing::{Probe, TestSystem};
use strowger::{
    Actor, BoxError, ChildSpec, Context, Group, GroupEvent, MailboxSpec, Recipient, SendError,
    Strategy, Supervisor,
};

fn members(system: &TestSystem, group: &Group<u32>, count: usize) -> Vec<Probe<u32>> {
    let one = |_| {
        let probe = system.probe();
        group.join(probe.recipient()).expect("the probe lives");
        probe
    };
    (0..count).map(one).collect()
}

/// The events that a watcher received, each as a word and the index of the member.
fn told(watcher: &Probe<GroupEvent>, members: &[Probe<u32>]) -> Vec<String> {
    let place = |id| members.iter().position(|probe| probe.actor().id() == id);
    let line = |event: GroupEvent| match event {
        GroupEvent::Joined { group, member } => format!("{group} + {:?}", place(member.id())),
        GroupEvent::Left { group, member } => format!("{group} - {:?}", place(member.id())),
        other => format!("{other:?}"),
    };
    watcher.drain().into_iter().map(line).collect()
}

#[test]
fn members_lists_live_joined_actors() {
    let system = TestSystem::new(1);
    let group = system.system().group::<u32>("workers");
    let probes = members(&system, &group, 4);
    assert!(group.leave(probes[1].actor()));
    assert!(!group.leave(probes[1].actor()));
    probes[2].actor().stop();
    system.run_until_idle();
    let ids: Vec<_> = group.members().iter().map(|one| one.actor().id()).collect();
    assert_eq!(ids, [probes[0].actor().id(), probes[3].actor().id()]);
    assert_eq!((group.len(), group.name()), (2, "workers"));
}

#[test]
fn a_broadcast_reaches_every_member_once() {
    TestSystem::check(0..5, |system| {
        let group = system.system().group::<u32>("workers");
        let probes = members(system, &group, 3);
        group.join(probes[0].recipient()).expect("a second time");
        for number in 0..20 {
            assert_eq!(group.broadcast(&number).delivered, 3);
        }
        for probe in &probes {
            assert_eq!(probe.drain(), (0..20).collect::<Vec<_>>());
        }
    });
}

#[test]
fn joining_again_replaces_the_recipient() {
    let system = TestSystem::new(1);
    let group = system.system().group::<u32>("workers");
    let probes = members(&system, &group, 2);
    let negated = probes[0].recipient().contramap(|number: u32| number + 100);
    group.join(negated).expect("the probe lives");
    assert_eq!(group.len(), 2);
    group.broadcast(&1);
    assert_eq!(probes[0].drain(), [101]);
    group.send_round_robin(2).expect("there is room");
    assert_eq!(probes[0].drain(), [102], "it kept its place");
}

#[test]
fn actor_leaves_all_groups_when_it_ends() {
    let system = TestSystem::new(1);
    let probe = system.probe::<u32>();
    for number in 0..100 {
        let group = system.system().group::<u32>(format!("group-{number:02}"));
        group.join(probe.recipient()).expect("the probe lives");
    }
    let infos = system.system().groups();
    assert_eq!(infos.len(), 100);
    assert_eq!((&*infos[7].name, infos[7].members), ("group-07", 1));
    assert_eq!(infos[7].message_type, "u32");
    probe.actor().kill();
    system.run_until_idle();
    assert!(system.system().groups().is_empty());
}

#[test]
fn same_name_with_another_type_is_another_group() {
    let system = TestSystem::new(1);
    let (numbers, words) = (system.probe::<u32>(), system.probe::<&str>());
    let group = system.system().group::<u32>("all");
    group.join(numbers.recipient()).expect("the probe lives");
    let other = system.system().group::<&str>("all");
    other.join(words.recipient()).expect("the probe lives");
    group.broadcast(&1);
    other.broadcast(&"one");
    assert_eq!(numbers.drain(), [1]);
    assert_eq!(words.drain(), ["one"]);
}

#[test]
fn ended_actor_cannot_join_or_monitor() {
    let system = TestSystem::new(1);
    let group = system.system().group::<u32>("workers");
    let (probe, watcher) = (system.probe::<u32>(), system.probe::<GroupEvent>());
    probe.actor().stop();
    watcher.actor().stop();
    system.run_until_idle();
    let refused = group.join(probe.recipient()).expect_err("it has ended");
    let path = probe.actor().path();
    assert_eq!(
        refused.to_string(),
        format!("{path} has ended and cannot be in group \"workers\"")
    );
    assert!(group.monitor(watcher.recipient()).is_err());
    assert!(group.is_empty());
}

#[test]
fn monitors_get_joins_and_leaves_in_order() {
    TestSystem::check(0..5, |system| {
        let group = system.system().group::<u32>("workers");
        let watcher = system.probe();
        let mut probes = members(system, &group, 1);
        let before = group.monitor(watcher.recipient()).expect("it lives");
        assert_eq!(before.len(), 1);
        probes.extend(members(system, &group, 2));
        group.join(probes[1].recipient()).expect("no news");
        group.leave(probes[0].actor());
        probes[2].actor().stop();
        system.run_until_idle();
        let all = ["+ Some(1)", "+ Some(2)", "- Some(0)", "- Some(2)"];
        assert_eq!(
            told(&watcher, &probes),
            all.map(|line| format!("workers {line}"))
        );
        assert!(group.demonitor(watcher.actor()));
        assert!(!group.demonitor(watcher.actor()));
        group.leave(probes[1].actor());
        assert_eq!(told(&watcher, &probes), [""; 0]);
    });
}

#[test]
fn empty_group_can_be_monitored_and_is_freed_with_its_monitors() {
    let system = TestSystem::new(1);
    let group = system.system().group::<u32>("workers");
    let watcher = system.probe();
    assert!(
        group
            .monitor(watcher.recipient())
            .expect("it lives")
            .is_empty()
    );
    let probes = members(&system, &group, 1);
    group.leave(probes[0].actor());
    let lines = told(&watcher, &probes);
    assert_eq!(lines, ["workers + Some(0)", "workers - Some(0)"]);
    watcher.actor().stop();
    system.run_until_idle();
    members(&system, &group, 1);
    assert_eq!(watcher.drain().len(), 0);
}

/// An actor with room for two events; forwards them when told to.
struct Narrow(Recipient<GroupEvent>);

impl Actor for Narrow {
    type Msg = GroupEvent;
    type Args = Recipient<GroupEvent>;
    type Error = Infallible;
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(2);

    async fn pre_start(
        to: Recipient<GroupEvent>,
        _: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        Ok(Self(to))
    }

    async fn handle(&mut self, event: GroupEvent, _: &mut Context<Self>) -> Result<(), Infallible> {
        let _sent = self.0.try_tell(event);
        Ok(())
    }
}

#[test]
fn full_monitor_gets_a_count_of_missed_events() {
    let system = TestSystem::new(1);
    let group = system.system().group::<u32>("workers");
    let watcher = system.probe();
    let narrow = system.spawn::<Narrow>("narrow", watcher.recipient());
    group.monitor(narrow.recipient()).expect("it lives");
    let mut probes = members(&system, &group, 5);
    system.run_until_idle();
    probes.extend(members(&system, &group, 1));
    let lines = told(&watcher, &probes);
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[..2], ["workers + Some(0)", "workers + Some(1)"]);
    assert!(
        lines[2].contains("Missed") && lines[2].contains("count: 3"),
        "{lines:?}"
    );
    assert_eq!(lines[3], "workers + Some(5)");
}

/// Takes one message and never finishes handling it.
struct Stuck;

impl Actor for Stuck {
    type Msg = u32;
    type Args = ();
    type Error = Infallible;
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }

    async fn handle(&mut self, _: u32, _: &mut Context<Self>) -> Result<(), Infallible> {
        std::future::pending().await
    }
}

#[test]
fn round_robin_skips_full_members() {
    let system = TestSystem::new(1);
    let group = system.system().group::<u32>("workers");
    let mut probes = members(&system, &group, 1);
    let stuck = system.spawn::<Stuck>("stuck", ());
    group.join(stuck.recipient()).expect("it lives");
    probes.extend(members(&system, &group, 1));
    for number in 0..7 {
        group.send_round_robin(number).expect("somebody has room");
    }
    // The stuck member took its first message and was skipped from then on.
    assert_eq!(probes[0].drain(), [0, 3, 5]);
    assert_eq!(probes[1].drain(), [2, 4, 6]);
    let broadcast = group.broadcast(&7);
    assert_eq!(broadcast.delivered + broadcast.full.len(), 3);
}

#[test]
fn round_robin_returns_the_message_if_all_are_full() {
    let system = TestSystem::new(1);
    let group = system.system().group::<u32>("workers");
    assert_eq!(group.send_round_robin(1), Err(SendError::Closed(1)));
    assert_eq!(group.send_by_key("key", 2), Err(SendError::Closed(2)));
    assert_eq!(group.broadcast(&3).delivered, 0);
    for key in ["a", "b", "c"] {
        let stuck = system.spawn::<Stuck>(key, ());
        group.join(stuck.recipient()).expect("it lives");
        group.send_by_key(key, 0).unwrap_or_default();
    }
    group.broadcast(&4);
    assert_eq!(group.send_round_robin(5), Err(SendError::Full(5)));
    assert_eq!(group.send_by_key("key", 6), Err(SendError::Full(6)));
    assert_eq!(group.broadcast(&7).full.len(), 3);
}

#[test]
fn draining_member_stays_but_gets_no_messages() {
    let system = TestSystem::new(1);
    let group = system.system().group::<u32>("workers");
    let stuck = system.spawn::<Stuck>("stuck", ());
    group.join(stuck.recipient()).expect("it lives");
    let mut drain = pin!(stuck.drain(Duration::from_secs(5)));
    let mut cx = TaskContext::from_waker(Waker::noop());
    stuck.try_tell(0).expect("there is room");
    system.run_until_idle();
    assert!(drain.as_mut().poll(&mut cx).is_pending());
    system.run_until_idle();
    assert_eq!(group.broadcast(&1).full.len(), 1);
    assert_eq!(group.send_round_robin(2), Err(SendError::Full(2)));
}

#[test]
fn key_owner_is_stable_while_members_change() {
    let system = TestSystem::new(1);
    let group = system.system().group::<u32>("workers");
    let mut probes = members(&system, &group, 4);
    let owners = |probes: &[Probe<u32>]| {
        for key in 0..200 {
            group.send_by_key(key, key).expect("there is room");
        }
        let mut owners = BTreeMap::new();
        for (owner, probe) in probes.iter().enumerate() {
            owners.extend(probe.drain().into_iter().map(|key| (key, owner)));
        }
        assert_eq!(owners.len(), 200);
        owners
    };
    let before = owners(&probes);
    assert_eq!(owners(&probes), before);
    group.leave(probes[1].actor());
    probes.extend(members(&system, &group, 1));
    let after = owners(&probes);
    for (key, owner) in &before {
        assert!(*owner == 1 || after[key] == *owner || after[key] == 4);
    }
    let all: BTreeSet<_> = after.values().copied().collect();
    assert_eq!(all, BTreeSet::from([0, 2, 3, 4]));
}

/// Joins at each start and forwards every message; fails on zero.
struct Restless(Recipient<u32>);

impl Actor for Restless {
    type Msg = u32;
    type Args = Recipient<u32>;
    type Error = BoxError;

    async fn pre_start(to: Recipient<u32>, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        cx.system()
            .group("restless")
            .join(cx.actor_ref().recipient())?;
        Ok(Self(to))
    }

    async fn handle(&mut self, number: u32, _: &mut Context<Self>) -> Result<(), BoxError> {
        if number == 0 {
            return Err("zero".into());
        }
        let _sent = self.0.try_tell(number);
        Ok(())
    }
}

#[test]
fn restart_keeps_membership_without_events() {
    TestSystem::check(0..10, |system| {
        let (probe, watcher) = (system.probe::<u32>(), system.probe::<GroupEvent>());
        let group = system.system().group::<u32>("restless");
        group.monitor(watcher.recipient()).expect("it lives");
        let child = ChildSpec::new::<Restless>("restless", probe.recipient());
        system.supervise("top", Supervisor::new(Strategy::OneForOne).child(child));
        for number in [1, 0, 2] {
            assert_eq!(group.broadcast(&number).delivered, 1);
        }
        system.advance(Duration::from_secs(10));
        group.broadcast(&3);
        assert_eq!(probe.drain(), [1, 2, 3]);
        assert_eq!(group.len(), 1);
        assert_eq!(watcher.drain().len(), 1, "it joined once");
        system.shutdown(Duration::from_secs(10));
        assert!(group.is_empty());
    });
}

#[test]
fn panicking_conversion_affects_only_its_member() {
    let system = TestSystem::new(1);
    let group = system.system().group::<u32>("workers");
    let fragile = system.probe::<u32>();
    let adapted = fragile.recipient().contramap(|number: u32| 10 / number);
    group.join(adapted).expect("the probe lives");
    let sound = members(&system, &group, 1);
    let broadcast = group.broadcast(&0);
    assert_eq!((broadcast.delivered, broadcast.panicked), (1, 1));
    group.broadcast(&1);
    assert_eq!(fragile.drain(), [10]);
    assert_eq!(sound[0].drain(), [0, 1]);
}

#[test]
fn monitor_may_change_the_group_during_notification() {
    let system = TestSystem::new(1);
    let group = system.system().group::<u32>("workers");
    let (watcher, extra) = (system.probe::<bool>(), system.probe::<u32>());
    let (again, joins) = (group.clone(), extra.recipient());
    let adapted = watcher.recipient().contramap(move |event: GroupEvent| {
        again.join(joins.clone()).expect("the probe lives");
        matches!(event, GroupEvent::Joined { .. })
    });
    group.monitor(adapted).expect("it lives");
    members(&system, &group, 1);
    assert_eq!(watcher.drain(), [true, true]);
    assert_eq!(group.len(), 2);
}
