//! Traces of single actors, recorded while somebody is watching.

use std::borrow::Cow;
use std::time::Duration;

use strowger::testing::TestSystem;
use strowger::{
    Actor, ActorRef, BoxError, ChildSpec, Context, Event, PathPattern, Strategy, Supervisor,
    TraceEnd, TraceLimits, TraceReader, TraceRecord, TraceStep,
};

/// Spends as many milliseconds on each message as it says; fails on zero.
struct Clerk;

impl Actor for Clerk {
    type Msg = u64;
    type Args = ();
    type Error = BoxError;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }

    async fn handle(&mut self, time: u64, _: &mut Context<Self>) -> Result<(), BoxError> {
        if time == 0 {
            return Err("nothing to do".into());
        }
        tokio::time::sleep(Duration::from_millis(time)).await;
        Ok(())
    }

    fn describe(time: &u64) -> Cow<'static, str> {
        assert_ne!(*time, 13, "unlucky");
        match time {
            99 => "x".repeat(10_000).into(),
            time => format!("{time} ms").into(),
        }
    }
}

fn trace(system: &TestSystem, pattern: &str, limits: TraceLimits) -> TraceReader {
    let pattern: PathPattern = pattern.parse().expect("a pattern");
    system.run(system.system().trace(pattern, limits))
}

fn records(most: u64) -> TraceLimits {
    let mut limits = TraceLimits::default();
    limits.records = most;
    limits
}

/// Reads all records that are available.
fn read(system: &TestSystem, tracer: &mut TraceReader) -> Vec<TraceRecord> {
    system.run(async {
        let mut read = Vec::new();
        while let Ok(Some(record)) =
            tokio::time::timeout(Duration::from_millis(1), tracer.next()).await
        {
            read.push(record);
        }
        read
    })
}

fn lines(records: &[TraceRecord]) -> Vec<String> {
    let line = |record: &TraceRecord| format!("{} {}", record.path, record.step);
    records.iter().map(line).collect()
}

fn tell(clerk: &ActorRef<u64>, time: u64, times: u64) {
    for _ in 0..times {
        clerk.try_tell(time).expect("there is room");
    }
}

#[test]
fn messages_of_matching_actors_are_recorded_with_time() {
    TestSystem::check(0..5, |system| {
        let left = system.spawn::<Clerk>("left", ());
        let right = system.spawn::<Clerk>("right", ());
        system.run_until_idle();
        let mut tracer = trace(system, "/l*", TraceLimits::default());
        tell(&left, 20, 2);
        tell(&right, 20, 2);
        system.advance(Duration::from_millis(100));
        let read = read(system, &mut tracer);
        let took = "done after 20ms";
        assert_eq!(
            lines(&read),
            [
                "/left handles 20 ms, 1 queued".to_owned(),
                format!("/left {took}"),
                "/left handles 20 ms".to_owned(),
                format!("/left {took}"),
            ]
        );
        assert_eq!(read[2].at - read[0].at, Duration::from_millis(20));
        assert_eq!((tracer.lost(), tracer.end_reason()), (0, None));
    });
}

#[test]
fn actors_that_start_later_are_traced_from_their_first_message() {
    TestSystem::check(0..5, |system| {
        let mut tracer = trace(system, "/later", TraceLimits::default());
        let later = system.spawn::<Clerk>("later", ());
        tell(&later, 1, 1);
        system.advance(Duration::from_millis(10));
        later.stop();
        system.run_until_idle();
        let lines = lines(&read(system, &mut tracer));
        assert_eq!(
            lines,
            [
                "/later started",
                "/later handles 1 ms",
                "/later done after 1ms",
                "/later stopped: shutdown",
            ]
        );
    });
}

#[test]
fn restarts_are_recorded_and_tracing_continues() {
    TestSystem::check(0..5, |system| {
        let office = Supervisor::new(Strategy::OneForOne).child(ChildSpec::new::<Clerk>("c", ()));
        let office = system.supervise("office", office);
        let clerk = office.child::<u64>("c").expect("it was started");
        let mut tracer = trace(system, "/office/**", TraceLimits::default());
        tell(&clerk, 0, 1);
        tell(&clerk, 1, 1);
        system.advance(Duration::from_millis(10));
        let read = read(system, &mut tracer);
        let of_clerk = |record: &&TraceRecord| record.path.key() == "c";
        let steps: Vec<&TraceStep> = read.iter().filter(of_clerk).map(|one| &one.step).collect();
        assert!(
            matches!(
                steps.as_slice(),
                [
                    TraceStep::Message { .. },
                    TraceStep::Handled { failed: true, .. },
                    TraceStep::Event(Event::DeadLetter { count: 1, .. }),
                    TraceStep::Event(Event::Restarted { .. }),
                    TraceStep::Message { .. },
                    TraceStep::Handled { failed: false, .. },
                ]
            ),
            "{steps:?}"
        );
        // The child is restarted in place: its supervisor receives no message.
        assert!(read.iter().all(|record| record.path.key() != "office"));
    });
}

#[test]
fn trace_ends_at_the_record_limit() {
    TestSystem::check(0..5, |system| {
        let clerk = system.spawn::<Clerk>("clerk", ());
        let mut tracer = trace(system, "clerk", records(5));
        tell(&clerk, 1, 100);
        system.advance(Duration::from_secs(1));
        assert_eq!(read(system, &mut tracer).len(), 5);
        assert_eq!(tracer.end_reason(), Some(TraceEnd::Records));
        assert!(system.run(tracer.next()).is_none());
    });
}

#[test]
fn trace_ends_at_the_byte_limit() {
    TestSystem::check(0..5, |system| {
        let clerk = system.spawn::<Clerk>("clerk", ());
        let mut limits = TraceLimits::default();
        limits.bytes = 300;
        let mut tracer = trace(system, "clerk", limits);
        tell(&clerk, 1, 100);
        system.advance(Duration::from_secs(1));
        assert_eq!(read(system, &mut tracer).len(), 4);
        assert_eq!(tracer.end_reason(), Some(TraceEnd::Bytes));
    });
}

#[test]
fn trace_ends_at_the_time_limit() {
    TestSystem::check(0..5, |system| {
        let clerk = system.spawn::<Clerk>("clerk", ());
        let mut limits = TraceLimits::default();
        limits.duration = Duration::from_secs(2);
        let (mut idle, mut busy) = (trace(system, "x", limits), trace(system, "clerk", limits));
        let began = system.elapsed();
        assert!(system.run(idle.next()).is_none());
        assert_eq!(system.elapsed() - began, Duration::from_secs(2));
        tell(&clerk, 1, 1);
        system.advance(Duration::from_secs(1));
        assert!(system.run(busy.next()).is_none());
        assert_eq!(busy.end_reason(), Some(TraceEnd::Time));
    });
}

#[test]
fn unread_records_are_dropped_and_counted() {
    TestSystem::check(0..2, |system| {
        let clerk = system.spawn::<Clerk>("clerk", ());
        system.run_until_idle();
        let mut tracer = trace(system, "clerk", records(1_000_000));
        for _ in 0..3 {
            tell(&clerk, 1, 1000);
            system.advance(Duration::from_secs(5));
        }
        let info = clerk.erase().info();
        assert_eq!((info.handled, info.mailbox_len), (3000, 0));
        let read = read(system, &mut tracer).len() as u64;
        assert_eq!(read + tracer.lost(), 6000);
        assert_eq!(read, 1024);
    });
}

#[test]
fn dropped_tracer_clears_the_actors_trace_flag() {
    TestSystem::check(0..5, |system| {
        let clerk = system.spawn::<Clerk>("clerk", ());
        let mut stays = trace(system, "clerk", TraceLimits::default());
        let goes = trace(system, "clerk", TraceLimits::default());
        drop(goes);
        tell(&clerk, 1, 1);
        system.advance(Duration::from_millis(10));
        assert_eq!(read(system, &mut stays).len(), 2);
        drop(stays);
        // A message that panics when it is formatted shows that nobody formats messages any longer.
        tell(&clerk, 13, 1);
        system.advance(Duration::from_millis(100));
        let mut again = trace(system, "clerk", TraceLimits::default());
        tell(&clerk, 1, 1);
        system.advance(Duration::from_millis(10));
        assert_eq!(lines(&read(system, &mut again)).len(), 2);
    });
}

#[test]
fn bad_message_names_are_replaced_or_truncated() {
    TestSystem::check(0..5, |system| {
        let clerk = system.spawn::<Clerk>("clerk", ());
        let mut tracer = trace(system, "clerk", TraceLimits::default());
        tell(&clerk, 13, 1);
        tell(&clerk, 99, 1);
        system.advance(Duration::from_secs(1));
        let read = read(system, &mut tracer);
        let names: Vec<&str> = read
            .iter()
            .filter_map(|record| match &record.step {
                TraceStep::Message { name, .. } => Some(name.as_ref()),
                _ => None,
            })
            .collect();
        assert_eq!(names[0], "<panic in `Debug`>");
        assert_eq!(names[1].len(), 256);
        assert_eq!(clerk.erase().info().restarts, 0);
    });
}

#[test]
fn a_shutdown_ends_a_trace() {
    TestSystem::check(0..5, |system| {
        system.spawn::<Clerk>("clerk", ());
        let mut tracer = trace(system, "clerk", TraceLimits::default());
        system.shutdown(Duration::from_secs(1));
        let last = read(system, &mut tracer);
        assert_eq!(last.len(), 1);
        assert_eq!(tracer.end_reason(), Some(TraceEnd::Closed));
    });
}
