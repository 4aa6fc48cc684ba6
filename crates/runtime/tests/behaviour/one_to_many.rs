//! Topics, groups and streams whose members fail and restart, over many seeds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use strowger::testing::{Hook, InjectedFault, TestSystem};
use strowger::{
    Actor, BoxError, ChildSpec, Context, MailboxSpec, ReadError, Reader, Recipient, Source,
    SourceSpec, Strategy, Supervisor,
};

/// Number of values that are published.
const NUMBERS: u64 = 200;

/// Maps a number to an index below `of`.
fn place(number: u64, of: usize) -> usize {
    usize::try_from(number).expect("a small number") % of
}

/// Subscribes and joins at each start, and forwards what it receives together with its name.
struct Member {
    name: usize,
    to: Recipient<(usize, Got)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Got {
    Topic(u64),
    Group(u64),
}

impl Actor for Member {
    type Msg = Got;
    type Args = (usize, Recipient<(usize, Got)>);
    type Error = BoxError;
    const MAILBOX: MailboxSpec = MailboxSpec::unbounded();

    async fn pre_start((name, to): Self::Args, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let published = cx.actor_ref().recipient::<Got>();
        let published = published.contramap(|number: Arc<u64>| Got::Topic(*number));
        cx.system().subscribe("storm/*", published)?;
        let sent = cx.actor_ref().recipient::<Got>().contramap(Got::Group);
        cx.system().group::<u64>("storm").join(sent)?;
        Ok(Self { name, to })
    }

    async fn handle(&mut self, got: Got, _: &mut Context<Self>) -> Result<(), BoxError> {
        self.to
            .try_tell((self.name, got))
            .map_err(|_| "the probe ended")?;
        Ok(())
    }
}

/// Injects faults that depend on the seed; returns the number of those that end an incarnation.
fn strike(system: &TestSystem, members: usize) -> usize {
    let seed = system.seed();
    let mut struck = 0;
    for member in 0..members {
        for round in 0..3 {
            let draw = (seed * 31 + member as u64 * 7 + round * 13) % 100;
            let fault = match draw % 3 {
                0 => InjectedFault::panic("struck"),
                1 => InjectedFault::Error("struck".into()),
                _ => InjectedFault::Stall(Duration::from_millis(5)),
            };
            struck += usize::from(draw % 3 != 2);
            let path = format!("/top/{member}");
            system.inject(&*path, Hook::Handle, 1 + draw + round * 100, fault);
        }
    }
    struck
}

#[test]
fn failing_members_lose_only_their_current_message() {
    const MEMBERS: usize = 4;
    TestSystem::check(0..100, |system| {
        let probe = system.probe::<(usize, Got)>();
        let mut top = Supervisor::new(Strategy::OneForOne).intensity(1000, Duration::from_secs(1));
        for name in 0..MEMBERS {
            let args = (name, probe.recipient());
            let child = ChildSpec::new::<Member>(name.to_string(), args);
            top = top.child(child);
        }
        system.supervise("top", top);
        let struck = strike(system, MEMBERS);
        let topics = ["storm/a", "storm/b"].map(|name| {
            let topic = system.system().topic::<u64>(name);
            topic.expect("a name")
        });
        let group = system.system().group::<u64>("storm");
        for number in 0..NUMBERS {
            let topic = &topics[place(number, 2)];
            assert_eq!(topic.publish(number).delivered, MEMBERS);
            assert_eq!(group.broadcast(&number).delivered, MEMBERS);
            if number % 16 == 0 {
                system.advance(Duration::from_millis(1));
            }
        }
        system.advance(Duration::from_secs(600));
        let mut seen: BTreeMap<usize, Vec<Got>> = BTreeMap::new();
        for (name, got) in probe.drain() {
            seen.entry(name).or_default().push(got);
        }
        let all = (0..NUMBERS).flat_map(|number| [Got::Topic(number), Got::Group(number)]);
        let mut lost = 0;
        for seen in seen.values() {
            let mut expected = all.clone();
            for got in seen {
                // In order and without duplicates: each is found further on.
                assert!(expected.any(|one| one == *got), "{got:?} came out of order");
            }
            lost += all.clone().count() - seen.len();
        }
        assert_eq!(seen.len(), MEMBERS);
        assert_eq!(lost, struck, "one message for each end");
        assert_eq!(
            (group.len(), topics[0].info().subscribers),
            (MEMBERS, MEMBERS)
        );
    });
}

/// Streams from a task, and hands out readers at each start.
struct Streamer;

type Handed = Recipient<Reader<u64>>;

impl Actor for Streamer {
    type Msg = ();
    type Args = Handed;
    type Error = BoxError;

    async fn pre_start(to: Handed, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let mut source: Source<u64> = cx.source(SourceSpec::DEFAULT.window(4));
        for _ in 0..3 {
            to.try_tell(source.reader()?)
                .map_err(|_| "the probe ended")?;
        }
        cx.task("stream", async move {
            for number in 0..NUMBERS {
                if source.send(number).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            source.finish();
        });
        Ok(Self)
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), BoxError> {
        Ok(())
    }
}

#[test]
fn readers_see_contiguous_items_until_the_incarnation_ends() {
    TestSystem::check(0..100, |system| {
        let probe = system.probe::<Reader<u64>>();
        let child = ChildSpec::new::<Streamer>("streamer", probe.recipient());
        let top = Supervisor::new(Strategy::OneForOne);
        let top = system.supervise("top", top.child(child));
        let streamer = top.child::<()>("streamer").expect("it was started");
        let why = ["panicked", "failed", "killed"][place(system.seed(), 3)];
        let fault = match why {
            "panicked" => InjectedFault::panic("struck"),
            _ => InjectedFault::Error("struck".into()),
        };
        system.inject("/top/streamer", Hook::Handle, 1, fault);
        let mut readers = probe.drain();
        assert_eq!(readers.len(), 3);
        let struck = system.seed() * 7 % 150;
        let mut counts = [0_u64; 3];
        let mut ends = Vec::new();
        for moment in 0..400 {
            if moment == struck && why == "killed" {
                streamer.kill();
            } else if moment == struck {
                assert!(streamer.try_tell(()).is_ok());
            }
            system.advance(Duration::from_millis(1));
            for (place, reader) in readers.iter_mut().enumerate() {
                // Each reader reads at its own pace.
                if moment % (place as u64 + 1) != 0 && moment < 300 {
                    continue;
                }
                while let Poll::Ready(Some(item)) = reader.try_recv() {
                    match item {
                        Ok(number) => {
                            assert_eq!(number, counts[place], "without gaps, none twice");
                            counts[place] += 1;
                        }
                        Err(ReadError::Ended { exit, .. }) => ends.push(exit.kind()),
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
        assert_eq!(ends, [why; 3], "each learns why, once");
        assert_eq!(counts, [counts[0]; 3], "and had all that was sent");
        let next = probe.drain();
        assert_eq!(next.len(), 3, "the next incarnation has readers of its own");
    });
}
