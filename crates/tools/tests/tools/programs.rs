//! Allocation of realms to programs, on virtual time, in simulated realms that only take time.
//!
//! Code in real realms is tested where they are created, in the crate of the command line.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use strowger::ActorRef;
use strowger::testing::TestSystem;
use strowger_tools::code::{
    BoxFuture, CodeError, CodeHost, CodeLimits, CodeRealm, CodeStep, FunctionDecl, Sandbox,
};
use strowger_tools::program::{
    ListProgramsRequest, PerformRequest, ProgramMessage, ProgramState, Programs, ProgramsMessage,
    ProgramsSpec, PublishRequest, WithdrawRequest,
};
use tokio::task::JoinSet;

/// Realms whose code returns `null` after the given number of milliseconds.
#[derive(Debug, Default)]
struct RealmCounts {
    live: Arc<AtomicUsize>,
    max: AtomicUsize,
}

#[derive(Debug)]
struct CountedRealm(Arc<AtomicUsize>);

impl Sandbox for RealmCounts {
    fn realm(&self, _: usize) -> BoxFuture<'_, Result<Box<dyn CodeRealm>, CodeError>> {
        let live = self.live.fetch_add(1, Ordering::SeqCst) + 1;
        self.max.fetch_max(live, Ordering::SeqCst);
        let realm: Box<dyn CodeRealm> = Box::new(CountedRealm(Arc::clone(&self.live)));
        Box::pin(async { Ok(realm) })
    }
}

impl CodeRealm for CountedRealm {
    fn run<'a>(
        &'a mut self,
        step: CodeStep<'a>,
        _: &'a [FunctionDecl],
        _: &'a CodeLimits,
        _: Box<dyn CodeHost>,
    ) -> BoxFuture<'a, Result<Option<String>, CodeError>> {
        let time = match step {
            CodeStep::Call { arguments, .. } => {
                let arguments: Vec<u64> = serde_json::from_str(arguments).expect("a number");
                Duration::from_millis(arguments[0])
            }
            _ => Duration::from_millis(1),
        };
        Box::pin(async move {
            tokio::time::sleep(time).await;
            Ok(None)
        })
    }

    fn is_lost(&self) -> bool {
        false
    }

    fn memory(&self) -> usize {
        0
    }
}

impl Drop for CountedRealm {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A registry of programs, and the counts of its realms.
struct Fixture<'a> {
    system: &'a TestSystem,
    registry: ActorRef<ProgramsMessage>,
    realms: Arc<RealmCounts>,
}

const RESIDENTS: usize = 3;
const PROGRAMS: usize = 12;
const LONG: Duration = Duration::from_secs(3600);

impl<'a> Fixture<'a> {
    fn open(system: &'a TestSystem) -> Self {
        let realms = Arc::new(RealmCounts::default());
        let sandbox: Arc<RealmCounts> = Arc::clone(&realms);
        let mut spec = ProgramsSpec::new(sandbox);
        spec.residents = RESIDENTS;
        spec.mailbox = 4;
        spec.limits.time = LONG;
        let registry = system.spawn::<Programs>("programs", spec);
        for number in 0..PROGRAMS {
            let publish = PublishRequest::new(format!("p{number}"), "code");
            let published = system.run(registry.ask_within(publish, LONG));
            published.expect("it answers").expect("there is room");
        }
        Self {
            system,
            registry,
            realms,
        }
    }

    fn program(&self, number: usize) -> ActorRef<ProgramMessage> {
        let found = Programs::find(self.system.system(), &self.registry, &format!("p{number}"));
        found.expect("it is published")
    }

    /// Checks that nothing is left to do: as many programs as possible have a realm, and there were
    /// never more.
    fn assert_full(&self) {
        self.system.run_until_idle();
        self.system.advance(LONG / 2);
        let listed = self
            .system
            .run(self.registry.ask_within(ListProgramsRequest, LONG));
        let listed = listed.expect("it answers");
        let states = listed.iter().map(|info| info.state);
        let resident = states.filter(|state| *state == ProgramState::Resident);
        assert_eq!(resident.count(), RESIDENTS);
        assert_eq!(self.realms.live.load(Ordering::SeqCst), RESIDENTS);
        assert_eq!(self.realms.max.load(Ordering::SeqCst), RESIDENTS);
    }
}

/// Numbers derived from a seed (Knuth's MMIX generator, upper half).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 32).expect("it is small") % end
    }
}

/// Asks programs one after the other for up to eight milliseconds of work each. Unless `patient`,
/// some asks time out earlier than that.
async fn ask_all(programs: Vec<ActorRef<ProgramMessage>>, seed: u64, patient: bool) {
    let mut random = Random(seed);
    for _ in 0..20 {
        let program = &programs[random.below(programs.len())];
        let work = PerformRequest(json!(random.below(8)));
        let patience = match patient || random.below(2) == 0 {
            true => LONG,
            false => Duration::from_millis(random.below(8) as u64),
        };
        match program.ask_within(work, patience).await {
            Ok(answer) => assert_eq!(answer, Ok(json!(null))),
            Err(error) => assert!(patience < LONG, "{error}"),
        }
    }
}

fn check_concurrent_asks(askers: u64, patient: bool) {
    TestSystem::check(0..100, |system| {
        let fixture = Fixture::open(system);
        fixture.assert_full();
        let programs: Vec<_> = (0..PROGRAMS)
            .map(|number| fixture.program(number))
            .collect();
        let asking = async {
            let mut asking = JoinSet::new();
            for asker in 0..askers {
                let seed = system.seed() * askers + asker;
                asking.spawn(ask_all(programs.clone(), seed, patient));
            }
            asking.join_all().await
        };
        system.run(asking);
        // A program whose asks were all abandoned may have left its realm again.
        for program in programs.iter().filter(|_| !patient) {
            let asked = system.run(program.ask_within(PerformRequest(json!(1)), LONG));
            assert_eq!(asked.expect("it answers"), Ok(json!(null)));
        }
        fixture.assert_full();
    });
}

#[test]
fn one_waiter_evicts_one_program() {
    check_concurrent_asks(2, true);
}

#[test]
fn each_waiter_evicts_one_program() {
    check_concurrent_asks(9, true);
}

#[test]
fn cancelled_waiters_hold_no_slot() {
    check_concurrent_asks(9, false);
}

/// Work of ten seconds.
async fn busy(program: ActorRef<ProgramMessage>) {
    drop(
        program
            .ask_within(PerformRequest(json!(10_000)), LONG)
            .await,
    );
}

#[test]
fn idle_programs_are_evicted_before_busy_ones() {
    TestSystem::check(0..100, |system| {
        let fixture = Fixture::open(system);
        // The programs that were published last have a realm. The first of them would lose it next.
        let first = fixture.program(PROGRAMS - RESIDENTS);
        let (mut working, fixture) = (JoinSet::new(), &fixture);
        system.run(async {
            working.spawn(busy(first));
            tokio::task::yield_now().await;
            let asked = fixture.program(0);
            let asked = asked.ask_within(PerformRequest(json!(1)), LONG);
            assert_eq!(asked.await.expect("it answers"), Ok(json!(null)));
        });
        assert!(system.elapsed() < Duration::from_secs(1));
        system.run(working.join_all());
        fixture.assert_full();
    });
}

#[test]
fn withdrawn_program_frees_its_slot() {
    TestSystem::check(0..100, |system| {
        let fixture = Fixture::open(system);
        let (mut working, fixture) = (JoinSet::new(), &fixture);
        system.run(async {
            for number in PROGRAMS - RESIDENTS..PROGRAMS {
                working.spawn(busy(fixture.program(number)));
            }
            tokio::task::yield_now().await;
            let programs = vec![fixture.program(0), fixture.program(1)];
            let name = format!("p{}", PROGRAMS - 1);
            let withdrawn = fixture.registry.ask_within(WithdrawRequest { name }, LONG);
            let asking = ask_all(programs, system.seed(), true);
            let (withdrawn, ()) = tokio::join!(withdrawn, asking);
            assert!(withdrawn.expect("it answers"));
        });
        assert!(system.elapsed() < Duration::from_secs(10));
        system.run(working.join_all());
        fixture.assert_full();
    });
}
