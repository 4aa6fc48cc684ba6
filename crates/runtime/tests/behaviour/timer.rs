//! Timers belong to an incarnation and end with it.

use std::convert::Infallible;
use std::time::Duration;

use strowger::testing::{ScriptCommand, ScriptedActor, TestSystem};
use strowger::{
    Actor, ChildSpec, Context, EarliestTimer, Recipient, Strategy, Supervisor, TimerKey,
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn timers_fire_in_time_order() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let scripted = system.spawn::<ScriptedActor>("p", probe.recipient());
    for (seconds, number) in [(3, 3), (1, 1), (2, 2), (1, 10)] {
        scripted
            .try_tell(ScriptCommand::NoteAfter(seconds * SECOND, number))
            .unwrap();
    }
    system.run_until_idle();
    let _ = probe.event_lines();
    system.advance(SECOND);
    assert_eq!(probe.event_lines(), ["/p noted 1", "/p noted 10"]);
    system.advance(2 * SECOND);
    assert_eq!(probe.event_lines(), ["/p noted 2", "/p noted 3"]);
}

#[test]
fn timers_do_not_outlive_their_incarnation() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let child = ChildSpec::new::<ScriptedActor>("p", probe.recipient());
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
    let supervisor = system.supervise("s", supervisor);
    let child = supervisor.child::<ScriptCommand>("p").unwrap();
    child.try_tell(ScriptCommand::NoteAfter(SECOND, 1)).unwrap();
    child.try_tell(ScriptCommand::Error).unwrap();
    system.run_until_idle();
    let _ = probe.event_lines();
    system.advance(2 * SECOND);
    assert!(probe.event_lines().is_empty());
}

#[test]
fn due_timer_overtakes_queued_messages() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let scripted = system.spawn::<ScriptedActor>("p", probe.recipient());
    scripted
        .try_tell(ScriptCommand::NoteAfter(SECOND, 1))
        .unwrap();
    scripted.try_tell(ScriptCommand::Sleep(2 * SECOND)).unwrap();
    for number in 100..300 {
        scripted.try_tell(ScriptCommand::Note(number)).unwrap();
    }
    system.advance(3 * SECOND);
    let story = probe.event_lines();
    let timer = story.iter().position(|line| line == "/p noted 1").unwrap();
    assert!(timer < 100, "it was {timer} messages late");
}

/// Ticks every second and counts; cancels its timer when told to.
struct Clock {
    to: Recipient<u64>,
    ticks: u64,
    timer: TimerKey,
}

#[derive(Clone, Copy)]
enum ClockMsg {
    Tick,
    Busy(Duration),
    Cancel,
}

impl Actor for Clock {
    type Msg = ClockMsg;
    type Args = Recipient<u64>;
    type Error = Infallible;

    async fn pre_start(to: Recipient<u64>, cx: &mut Context<Self>) -> Result<Self, Infallible> {
        let timer = cx.send_every(SECOND, || ClockMsg::Tick);
        Ok(Self {
            to,
            ticks: 0,
            timer,
        })
    }

    async fn handle(&mut self, msg: ClockMsg, cx: &mut Context<Self>) -> Result<(), Infallible> {
        match msg {
            ClockMsg::Tick => {
                self.ticks += 1;
                let _told = self.to.try_tell(self.ticks);
            }
            ClockMsg::Busy(time) => tokio::time::sleep(time).await,
            ClockMsg::Cancel => {
                assert!(cx.cancel(self.timer));
                assert!(!cx.cancel(self.timer));
            }
        }
        Ok(())
    }
}

#[test]
fn periodic_timer_ticks_until_it_is_cancelled() {
    let system = TestSystem::new(1);
    let probe = system.probe::<u64>();
    let clock = system.spawn::<Clock>("clock", probe.recipient());
    system.run_until_idle();
    system.advance(5 * SECOND + SECOND / 2);
    assert_eq!(probe.drain(), [1, 2, 3, 4, 5]);
    clock.try_tell(ClockMsg::Cancel).unwrap();
    system.advance(5 * SECOND);
    assert!(probe.drain().is_empty());
}

#[test]
fn missed_ticks_are_skipped_and_the_phase_is_kept() {
    let system = TestSystem::new(1);
    let probe = system.probe::<u64>();
    let clock = system.spawn::<Clock>("clock", probe.recipient());
    system.run_until_idle();
    clock.try_tell(ClockMsg::Busy(SECOND * 7 / 2)).unwrap();
    system.advance(SECOND * 18 / 5);
    assert_eq!(probe.drain(), [1], "three were due, one is told");
    system.advance(SECOND / 2);
    assert_eq!(probe.drain(), [2], "the next comes at four seconds");
}

#[test]
fn timer_beyond_the_clock_range_never_fires() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let scripted = system.spawn::<ScriptedActor>("p", probe.recipient());
    scripted
        .try_tell(ScriptCommand::NoteAfter(Duration::MAX, 1))
        .unwrap();
    scripted
        .try_tell(ScriptCommand::NoteAfter(SECOND, 2))
        .unwrap();
    system.run_until_idle();
    system.advance(10 * SECOND);
    assert_eq!(probe.event_lines(), ["/p started", "/p noted 2"]);
}

#[test]
fn pending_timer_does_not_keep_a_dropped_system_alive() {
    let system = TestSystem::new(1);
    let probe = system.probe::<u64>();
    let clock = system.spawn::<Clock>("clock", probe.recipient());
    system.advance(SECOND);
    drop((clock, probe));
    assert!(system.into_is_leak_free());
}

/// Arms its timer for a number of seconds, and reports each time that it fires.
struct Reminder {
    to: Recipient<u64>,
    timer: EarliestTimer,
}

enum ReminderMsg {
    Arm(u32),
    Due(u64),
}

impl Actor for Reminder {
    type Msg = ReminderMsg;
    type Args = Recipient<u64>;
    type Error = Infallible;

    async fn pre_start(to: Recipient<u64>, _: &mut Context<Self>) -> Result<Self, Infallible> {
        let timer = EarliestTimer::new();
        Ok(Self { to, timer })
    }

    async fn handle(
        &mut self,
        message: ReminderMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        match message {
            ReminderMsg::Arm(seconds) => {
                let due = ReminderMsg::Due(seconds.into());
                self.timer.arm(cx.now() + seconds * SECOND, due, cx);
            }
            ReminderMsg::Due(seconds) => {
                self.timer.clear();
                let _ = self.to.try_tell(seconds);
            }
        }
        Ok(())
    }
}

#[test]
fn earliest_timer_fires_once_for_the_earliest_time() {
    let system = TestSystem::new(1);
    let probe = system.probe();
    let reminder = system.spawn::<Reminder>("r", probe.recipient());
    for seconds in [5, 2, 3] {
        reminder.try_tell(ReminderMsg::Arm(seconds)).unwrap();
    }
    assert_eq!(probe.expect(2 * SECOND + Duration::from_millis(2)), 2);
    probe.expect_none(10 * SECOND);
    reminder.try_tell(ReminderMsg::Arm(1)).unwrap();
    assert_eq!(probe.expect(2 * SECOND), 1);
}
