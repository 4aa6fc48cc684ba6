//! Ten thousand programs, of which five hundred have a realm at a time.

use std::sync::Arc;

use serde_json::json;
use strowger_tools::program::{
    ListProgramsRequest, PerformRequest, ProgramError, ProgramState, PublishRequest,
};
use strowger_wasm::HostLimits;

use super::programs::ProgramsFixture;
use super::{HANG_GUARD, host_of};

const PROGRAMS: usize = 10_000;
const RESIDENTS: usize = 500;

/// Number of programs that have a realm now.
async fn residents(fixture: &ProgramsFixture) -> usize {
    let listed = fixture
        .programs
        .ask_within(ListProgramsRequest, HANG_GUARD)
        .await;
    let listed = listed.expect("it answers");
    assert_eq!(listed.len(), PROGRAMS);
    let states = listed.iter().map(|info| info.state);
    states
        .filter(|state| *state == ProgramState::Resident)
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_programs_share_five_hundred_realms() {
    // A host without room for another realm: one too many would be refused.
    let mut limits = HostLimits::default();
    limits.instances = RESIDENTS;
    let (host, realms) = host_of(limits);
    let fixture = Arc::new(ProgramsFixture::open(|spec| {
        spec.sandbox = realms;
        spec.programs = PROGRAMS;
        spec.residents = RESIDENTS;
        spec.restarts = 0;
    }));
    for number in 0..PROGRAMS {
        let code = format!("state.n ??= {number}; function handle(by) {{ return state.n += by }}");
        let publish = PublishRequest::new(format!("program-{number}"), code);
        fixture.publish(publish).await.expect("there is room");
    }
    let full = PublishRequest::new("one-more", "function handle() {}");
    assert_eq!(
        fixture.publish(full).await,
        Err(ProgramError::TooManyPrograms(PROGRAMS))
    );
    assert_eq!(residents(&fixture).await, RESIDENTS);
    // In the second round, all programs that are asked have been passivated, and come back with
    // their state.
    for (round, step) in [(1, 1), (2, 17)] {
        let asking = (0..2).map(|half| {
            let fixture = Arc::clone(&fixture);
            tokio::spawn(async move {
                for number in (half * step..PROGRAMS).step_by(2 * step) {
                    let program = fixture.program(&format!("program-{number}"));
                    let asked = program.expect("it is published");
                    let answered = asked.ask_within(PerformRequest(json!(1)), HANG_GUARD).await;
                    let sum = number + round;
                    assert_eq!(answered.expect("it answers"), Ok(json!(sum)), "{number}");
                }
            })
        });
        let asking: Vec<_> = asking.collect();
        for asking in asking {
            asking.await.expect("each had its own");
        }
        assert_eq!(residents(&fixture).await, RESIDENTS);
        assert_eq!(host.live(), RESIDENTS);
    }
}
