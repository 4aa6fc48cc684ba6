//! Programs: published, kept, checked, restarted, stopped for good, passivated.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use strowger::{ActorRef, ActorSystem, AskError};
use strowger_tools::code::{CodeError, CodeLimit};
use strowger_tools::program::{
    ListProgramsRequest, PerformRequest, ProgramError, ProgramInfo, ProgramMessage, ProgramState,
    Programs, ProgramsMessage, ProgramsSpec, PublishRequest, SchemaSide, WithdrawRequest,
};

use super::sandbox::{Realms, TYPESCRIPT};
use super::{HANG_GUARD, host};

pub(super) struct ProgramsFixture {
    system: ActorSystem,
    pub(super) programs: ActorRef<ProgramsMessage>,
}

const COUNTER: &str = "state.n ??= 0; function handle(by) { return state.n += by }";

impl ProgramsFixture {
    pub(super) fn open(change: impl FnOnce(&mut ProgramsSpec)) -> Self {
        let system = ActorSystem::new("office").expect("it starts");
        let sandbox: Arc<Realms> = Arc::clone(&host().1);
        let mut spec = ProgramsSpec::new(sandbox);
        spec.typescript = Some(TYPESCRIPT.into());
        change(&mut spec);
        let programs = system
            .spawn::<Programs>("programs", spec)
            .expect("it starts");
        Self { system, programs }
    }

    pub(super) async fn publish(&self, publish: PublishRequest) -> Result<(), ProgramError> {
        let asked = self.programs.ask_within(publish, HANG_GUARD).await;
        asked.expect("it answers")
    }

    pub(super) fn program(&self, name: &str) -> Option<ActorRef<ProgramMessage>> {
        let path = format!("/programs/published/{name}/program");
        self.system.find(path.as_str())?.downcast()
    }

    async fn perform(&self, name: &str, input: Value) -> Result<Value, ProgramError> {
        let program = self.program(name).expect("it is published");
        let asked = program.ask_within(PerformRequest(input), HANG_GUARD).await;
        asked.expect("it answers")
    }

    async fn list(&self) -> Vec<ProgramInfo> {
        self.programs
            .ask(ListProgramsRequest)
            .await
            .expect("it answers")
    }

    async fn one(&self, name: &str) -> ProgramInfo {
        let list = self.list().await;
        let one = list.into_iter().find(|one| one.name == name);
        one.expect("it is published")
    }
}

#[tokio::test]
async fn program_keeps_its_state() {
    let fixture = ProgramsFixture::open(|_| {});
    fixture
        .publish(PublishRequest::new("counter", COUNTER))
        .await
        .expect("it is valid");
    assert_eq!(fixture.perform("counter", json!(2)).await, Ok(json!(2)));
    assert_eq!(fixture.perform("counter", json!(3)).await, Ok(json!(5)));
    let mut typed =
        PublishRequest::new("typed", "async function handle(n: number) { return n * 2 }");
    typed.language = strowger_tools::code::Language::TypeScript;
    fixture.publish(typed).await.expect("it is valid");
    assert_eq!(fixture.perform("typed", json!(21)).await, Ok(json!(42)));
    // A thrown error is an answer, and the state is unchanged.
    let code =
        "let n = 0; function handle(by) { if (!by) throw new TypeError('by'); return n += by }";
    fixture
        .publish(PublishRequest::new("strict", code))
        .await
        .expect("it is valid");
    assert_eq!(fixture.perform("strict", json!(1)).await, Ok(json!(1)));
    let failed = fixture
        .perform("strict", json!(0))
        .await
        .expect_err("it throws");
    assert_eq!(failed.to_string(), "TypeError: by");
    assert_eq!(fixture.perform("strict", json!(1)).await, Ok(json!(2)));
    let info = fixture.one("strict").await;
    assert_eq!((info.calls, info.failed, info.restarts), (3, 1, 0));
    assert_eq!(info.state, ProgramState::Resident);
    assert!(
        fixture
            .programs
            .ask(WithdrawRequest {
                name: "counter".into()
            })
            .await
            .expect("it answers")
    );
    assert!(fixture.program("counter").is_none());
    assert!(
        !fixture
            .programs
            .ask(WithdrawRequest {
                name: "counter".into()
            })
            .await
            .expect("it answers")
    );
}

#[tokio::test]
async fn program_has_an_address() {
    let fixture = ProgramsFixture::open(|_| {});
    fixture
        .publish(PublishRequest::new("counter", COUNTER))
        .await
        .expect("it is valid");
    let exposed = fixture.system.exports();
    let addresses: Vec<_> = exposed.iter().map(|one| one.address.to_string()).collect();
    assert_eq!(addresses, ["@(programs/counter)"]);
    fixture
        .programs
        .ask(WithdrawRequest {
            name: "counter".into(),
        })
        .await
        .expect("it answers");
    assert!(fixture.system.exports().is_empty());
}

#[tokio::test]
async fn invalid_programs_are_not_published() {
    let fixture = ProgramsFixture::open(|spec| spec.programs = 1);
    let failed = fixture.publish(PublishRequest::new("a/b", COUNTER)).await;
    assert_eq!(failed, Err(ProgramError::InvalidName("a/b".to_owned())));
    let failed = fixture
        .publish(PublishRequest::new("bad", "function handle( {"))
        .await;
    assert!(
        matches!(failed, Err(ProgramError::Code(CodeError::Thrown(_)))),
        "{failed:?}"
    );
    let failed = fixture
        .publish(PublishRequest::new("endless", "for (;;);"))
        .await;
    let failed = failed.expect_err("it does not end").to_string();
    for said in [
        "the limit `time` of 1000 ms",
        "raise `time` in [tools.programs.limits]",
        "--limit code.time=TIME",
    ] {
        assert!(failed.contains(said), "{failed}");
    }
    let mut tight = PublishRequest::new("endless", "for (;;);");
    tight.budget.time_ms = Some(20);
    let failed = fixture.publish(tight).await.expect_err("it does not end");
    let failed = failed.to_string();
    assert!(
        failed.contains("of 20 ms") && failed.contains("raise the call's `time_ms`"),
        "{failed}"
    );
    let schema =
        PublishRequest::new("schema", COUNTER).with_schemas(Some(json!({"type": 7})), None);
    let failed = fixture.publish(schema).await;
    assert!(
        matches!(
            failed,
            Err(ProgramError::InvalidSchema(SchemaSide::Input, _))
        ),
        "{failed:?}"
    );
    let far = json!({"$ref": "https://example.org/schema.json"});
    let far = PublishRequest::new("far", COUNTER).with_schemas(None, Some(far));
    let failed = fixture.publish(far).await;
    assert!(
        matches!(
            failed,
            Err(ProgramError::InvalidSchema(SchemaSide::Output, _))
        ),
        "{failed:?}"
    );
    assert!(fixture.list().await.is_empty());
    fixture
        .publish(PublishRequest::new("one", COUNTER))
        .await
        .expect("there is room");
    assert_eq!(
        fixture.publish(PublishRequest::new("two", COUNTER)).await,
        Err(ProgramError::TooManyPrograms(1))
    );
    // A new version replaces the program, with a state of its own.
    assert_eq!(fixture.perform("one", json!(7)).await, Ok(json!(7)));
    fixture
        .publish(PublishRequest::new("one", COUNTER))
        .await
        .expect("it is there already");
    assert_eq!(fixture.perform("one", json!(1)).await, Ok(json!(1)));
    // A version that does not run leaves the previous one in place.
    let bad = PublishRequest::new("one", "throw new Error('no')");
    fixture.publish(bad).await.expect_err("it throws");
    let answer = fixture.perform("one", json!(1)).await;
    assert!(answer.is_ok(), "{answer:?}");
}

#[tokio::test]
async fn draft_does_not_run() {
    let fixture = ProgramsFixture::open(|_| {});
    fixture
        .publish(PublishRequest::new("plan", "for (;;);").draft())
        .await
        .expect("it is not run");
    let failed = fixture.perform("plan", json!(1)).await;
    assert_eq!(failed, Err(ProgramError::Draft("plan".to_owned())));
    assert_eq!(fixture.one("plan").await.state, ProgramState::Draft);
    fixture
        .publish(PublishRequest::new("plan", COUNTER))
        .await
        .expect("it is valid");
    assert_eq!(fixture.perform("plan", json!(1)).await, Ok(json!(1)));
}

#[tokio::test]
async fn schemas_are_enforced() {
    let fixture = ProgramsFixture::open(|_| {});
    let input = json!({"type": "object", "required": ["n"],
        "properties": {"n": {"type": "integer", "minimum": 0}}});
    let code =
        "let seen = 0; function handle(input) { seen++; return input.n > 9 ? 'many' : seen }";
    let publish = PublishRequest::new("checked", code);
    let publish = publish.with_schemas(Some(input), Some(json!({"type": "integer"})));
    fixture.publish(publish).await.expect("it is valid");
    assert_eq!(
        fixture.perform("checked", json!({"n": 1})).await,
        Ok(json!(1))
    );
    let failed = fixture
        .perform("checked", json!({"n": -1}))
        .await
        .expect_err("it is negative");
    let ProgramError::SchemaMismatch(SchemaSide::Input, why) = &failed else {
        panic!("{failed:?}");
    };
    assert!(why.starts_with("/n"), "{why}");
    // The program did not see the invalid input.
    assert_eq!(
        fixture.perform("checked", json!({"n": 2})).await,
        Ok(json!(2))
    );
    let failed = fixture
        .perform("checked", json!({"n": 10}))
        .await
        .expect_err("it gives a text");
    assert!(
        matches!(failed, ProgramError::SchemaMismatch(SchemaSide::Output, _)),
        "{failed:?}"
    );
    assert_eq!(fixture.one("checked").await.failed, 2);
    // The twin without schemas accepts and returns both.
    fixture
        .publish(PublishRequest::new("free", code))
        .await
        .expect("it is valid");
    assert_eq!(
        fixture.perform("free", json!({"n": -1})).await,
        Ok(json!(1))
    );
    assert_eq!(
        fixture.perform("free", json!({"n": 10})).await,
        Ok(json!("many"))
    );
}

const RUNAWAY: &str = "let n = 0; function handle(m) { if (m === 'run') for (;;); return ++n }";

#[tokio::test]
async fn runaway_program_is_restarted_and_finally_stopped() {
    let fixture = ProgramsFixture::open(|spec| {
        spec.limits.time = Duration::from_millis(150);
        spec.restarts = 2;
    });
    fixture
        .publish(PublishRequest::new("runaway", RUNAWAY))
        .await
        .expect("it is valid");
    fixture
        .publish(PublishRequest::new("neighbour", RUNAWAY))
        .await
        .expect("it is valid");
    let is_time = |failed: Result<Value, ProgramError>| match failed {
        Err(ProgramError::Code(error)) => error.limit() == Some(CodeLimit::Time),
        _ => false,
    };
    for restarts in 1..=2 {
        assert!(is_time(fixture.perform("runaway", json!("run")).await));
        assert_eq!(
            fixture.perform("runaway", json!(0)).await,
            Ok(json!(1)),
            "it began anew"
        );
        assert_eq!(fixture.perform("runaway", json!(0)).await, Ok(json!(2)));
        assert_eq!(fixture.one("runaway").await.restarts, restarts);
    }
    let program = fixture.program("runaway").expect("it runs");
    assert!(is_time(fixture.perform("runaway", json!("run")).await));
    program.stopped().await;
    let asked = program.ask(PerformRequest(json!(1))).await;
    assert!(matches!(asked, Err(AskError::Closed)), "{asked:?}");
    while fixture.one("runaway").await.state != ProgramState::Stopped {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.perform("neighbour", json!(1)).await, Ok(json!(1)));
    // Publishing a corrected version repairs it.
    fixture
        .publish(PublishRequest::new("runaway", COUNTER))
        .await
        .expect("it is valid");
    assert_eq!(fixture.perform("runaway", json!(4)).await, Ok(json!(4)));
}

#[tokio::test]
async fn idle_programs_release_their_realm_and_keep_their_state() {
    let fixture = ProgramsFixture::open(|spec| spec.residents = 3);
    let names: Vec<_> = (0..12).map(|n| format!("counter-{n}")).collect();
    for name in &names {
        fixture
            .publish(PublishRequest::new(name, COUNTER))
            .await
            .expect("there is room");
    }
    for round in 1..=3 {
        for name in &names {
            assert_eq!(
                fixture.perform(name, json!(1)).await,
                Ok(json!(round)),
                "{name}"
            );
        }
    }
    let residents = |list: Vec<ProgramInfo>| {
        let states = list.iter().map(|info| info.state);
        states
            .filter(|state| *state == ProgramState::Resident)
            .count()
    };
    assert_eq!(residents(fixture.list().await), 3);
    // All at the same time: they take turns.
    let asks = names.iter().map(|name| {
        let program = fixture.program(name).expect("it is published");
        tokio::spawn(async move {
            program
                .ask_within(PerformRequest(json!(1)), HANG_GUARD)
                .await
        })
    });
    let asks: Vec<_> = asks.collect();
    for ask in asks {
        let outcome = ask.await.expect("no panic").expect("it answers");
        assert_eq!(outcome, Ok(json!(4)));
    }
    assert_eq!(residents(fixture.list().await), 3);
}

#[tokio::test]
async fn cancelled_message_does_not_end_the_program() {
    let fixture = ProgramsFixture::open(|spec| {
        spec.limits.time = HANG_GUARD;
        spec.restarts = 0;
    });
    fixture
        .publish(PublishRequest::new("runaway", RUNAWAY))
        .await
        .expect("it is valid");
    let program = fixture.program("runaway").expect("it runs");
    let mut asked = Box::pin(program.ask_within(PerformRequest(json!("run")), HANG_GUARD));
    let begun = tokio::time::timeout(Duration::from_millis(20), &mut asked).await;
    assert!(begun.is_err(), "it has no end");
    drop(asked);
    assert_eq!(fixture.perform("runaway", json!(1)).await, Ok(json!(1)));
    assert_eq!(fixture.one("runaway").await.restarts, 0);
}
