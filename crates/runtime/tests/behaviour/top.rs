//! The busiest actors, listed while the system runs.

use std::time::Duration;

use strowger::testing::TestSystem;
use strowger::{
    Actor, ActorRef, BoxError, ChildSpec, Context, MailboxSpec, PathPattern, Strategy, Supervisor,
    TopQuery, TopRank, TopReport,
};

/// Takes numbers; on request, waits at the first one until it is told to continue.
struct Desk {
    _room: [u64; 64],
}

impl Actor for Desk {
    type Msg = u64;
    type Args = ();
    type Error = BoxError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(20);

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self { _room: [0; 64] })
    }

    async fn handle(&mut self, number: u64, _: &mut Context<Self>) -> Result<(), BoxError> {
        match number {
            0 => Err("refused".into()),
            1 => std::future::pending().await,
            _ => Ok(()),
        }
    }
}

fn desk(system: &TestSystem, key: &str) -> ActorRef<u64> {
    system.spawn::<Desk>(key.to_owned(), ())
}

fn tell(desk: &ActorRef<u64>, number: u64, times: usize) {
    for _ in 0..times {
        desk.try_tell(number).expect("there is room");
    }
}

fn paths(top: &TopReport) -> Vec<&str> {
    top.rows.iter().map(|row| row.info.path.as_str()).collect()
}

#[test]
fn rows_are_ranked_by_mailbox_depth() {
    TestSystem::check(0..5, |system| {
        for (key, waiting) in [("a", 3), ("b", 17), ("c", 0), ("d", 9)] {
            let desk = desk(system, key);
            tell(&desk, 1, 1);
            system.run_until_idle();
            tell(&desk, 2, waiting);
        }
        let mut observer = system.system().observer();
        let top = system.run(observer.top(&TopQuery::new(TopRank::Depth).rows(3)));
        assert_eq!(paths(&top), ["/b", "/d", "/a"]);
        assert_eq!(top.totals.actors, 4);
        assert_eq!(top.totals.depth, 29);
        assert_eq!(top.totals.nearly_full, 1, "17 of 20 are 85 %");
    });
}

#[test]
fn rates_are_computed_between_readings() {
    TestSystem::check(0..5, |system| {
        let (idle, busy) = (desk(system, "idle"), desk(system, "busy"));
        tell(&idle, 2, 9);
        system.run_until_idle();
        let mut observer = system.system().observer();
        let query = TopQuery::new(TopRank::Rate);
        let first = system.run(observer.top(&query));
        assert_eq!(first.totals.rate, 0.0, "there is nothing to count from");
        for _ in 0..4 {
            tell(&busy, 2, 10);
            system.advance(Duration::from_secs(1));
        }
        let top = system.run(observer.top(&query));
        assert_eq!(top.span, Duration::from_secs(4));
        assert_eq!(paths(&top), ["/busy", "/idle"]);
        assert_eq!(top.rows[0].rate, 10.0);
        assert_eq!(top.rows[1].rate, 0.0);
        assert_eq!(top.totals.rate, 10.0);
        assert_eq!(top.totals.handled, 49);
    });
}

#[test]
fn reused_slot_starts_with_zero_counters() {
    TestSystem::check(0..5, |system| {
        let first = desk(system, "first");
        tell(&first, 2, 20);
        system.run_until_idle();
        let mut observer = system.system().observer();
        let query = TopQuery::new(TopRank::Rate);
        system.run(observer.top(&query));
        first.stop();
        system.run(first.stopped());
        let second = desk(system, "second");
        assert_eq!(second.id().slot, first.id().slot);
        tell(&second, 2, 5);
        system.advance(Duration::from_secs(1));
        let top = system.run(observer.top(&query));
        assert_eq!(top.rows[0].rate, 5.0);
    });
}

#[test]
fn frequent_readings_keep_the_rate_interval() {
    TestSystem::check(0..5, |system| {
        let desk = desk(system, "desk");
        let mut observer = system.system().observer();
        let query = TopQuery::new(TopRank::Rate);
        system.run(observer.top(&query));
        for spans in 1..=4 {
            tell(&desk, 2, 10);
            system.advance(Duration::from_millis(100));
            let top = system.run(observer.top(&query));
            assert_eq!(top.span, Duration::from_millis(100 * spans));
            assert_eq!(top.totals.rate, 100.0);
        }
    });
}

#[test]
fn restarts_are_ranked_and_summed() {
    TestSystem::check(0..5, |system| {
        let offices = Supervisor::new(Strategy::OneForOne)
            .intensity(100, Duration::from_secs(1))
            .child(ChildSpec::new::<Desk>("calm", ()))
            .child(ChildSpec::new::<Desk>("wild", ()));
        let offices = system.supervise("offices", offices);
        let wild = offices.child::<u64>("wild").expect("it was started");
        tell(&wild, 0, 3);
        system.advance(Duration::from_secs(60));
        let mut observer = system.system().observer();
        let top = system.run(observer.top(&TopQuery::new(TopRank::Restarts).rows(1)));
        assert_eq!(paths(&top), ["/offices/wild"]);
        assert_eq!(top.rows[0].info.restarts, 3);
        assert_eq!(top.totals.restarts, 3);
        assert_eq!(top.totals.actors, 3);
    });
}

#[test]
fn memory_includes_value_and_mailbox_capacity() {
    TestSystem::check(0..5, |system| {
        let desk = desk(system, "desk");
        system.run_until_idle();
        let memory = || {
            let mut observer = system.system().observer();
            let top = system.run(observer.top(&TopQuery::new(TopRank::Memory)));
            assert_eq!(top.rows[0].info.memory, top.totals.memory);
            top.totals.memory
        };
        let idle = memory();
        assert!(idle >= size_of::<Desk>(), "{idle} bytes");
        tell(&desk, 1, 1);
        system.run_until_idle();
        tell(&desk, 2, 20);
        let full = memory();
        assert!(full >= idle + 20 * size_of::<u64>(), "{idle}, then {full}");
    });
}

/// Takes zero-sized messages.
struct Bell;

impl Actor for Bell {
    type Msg = ();
    type Args = ();
    type Error = BoxError;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), BoxError> {
        Ok(())
    }
}

#[test]
fn zero_sized_messages_use_no_memory() {
    TestSystem::check(0..5, |system| {
        let bell = system.spawn::<Bell>("bell", ());
        let idle = bell.erase().info().memory;
        bell.try_tell(()).expect("there is room");
        assert_eq!(bell.erase().info().memory, idle);
    });
}

#[test]
fn pattern_restricts_the_reading() {
    TestSystem::check(0..5, |system| {
        for key in ["left-1", "left-2", "right"] {
            desk(system, key);
        }
        let pattern: PathPattern = "/left-*".parse().expect("a pattern");
        let mut observer = system.system().observer();
        let top = system.run(observer.top(&TopQuery::new(TopRank::Depth).within_pattern(pattern)));
        assert_eq!(paths(&top), ["/left-1", "/left-2"]);
        assert_eq!(top.totals.actors, 2);
    });
}

#[test]
fn row_count_is_capped() {
    TestSystem::check(0..1, |system| {
        let desks: Vec<_> = (0..3000)
            .map(|number| desk(system, &number.to_string()))
            .collect();
        desks.iter().for_each(|desk| tell(desk, 1, 1));
        system.run_until_idle();
        for (number, desk) in desks.iter().enumerate() {
            tell(desk, 2, number % 20);
        }
        let mut observer = system.system().observer();
        let top = system.run(observer.top(&TopQuery::new(TopRank::Depth).rows(usize::MAX)));
        assert_eq!(top.rows.len(), TopQuery::MAX_ROWS);
        assert_eq!(top.totals.actors, 3000);
        let depths: Vec<usize> = top.rows.iter().map(|row| row.info.mailbox_len).collect();
        assert!(depths.is_sorted_by(|a, b| a >= b), "{depths:?}");
        assert_eq!(depths[1023], 13);
        let none = system.run(observer.top(&TopQuery::new(TopRank::Depth).rows(0)));
        assert!(none.rows.is_empty());
        assert_eq!(none.totals.actors, 3000);
    });
}
