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
use super::{PATIENCE, host};

pub(super) struct Desk {
    system: ActorSystem,
    pub(super) desk: ActorRef<ProgramsMessage>,
}

const COUNTER: &str = "state.n ??= 0; function handle(by) { return state.n += by }";

impl Desk {
    pub(super) fn open(change: impl FnOnce(&mut ProgramsSpec)) -> Self {
        let system = ActorSystem::new("office").expect("it starts");
        let sandbox: Arc<Realms> = Arc::clone(&host().1);
        let mut spec = ProgramsSpec::new(sandbox);
        spec.typescript = Some(TYPESCRIPT.into());
        change(&mut spec);
        let desk = system
            .spawn::<Programs>("programs", spec)
            .expect("it starts");
        Self { system, desk }
    }

    pub(super) async fn publish(&self, publish: PublishRequest) -> Result<(), ProgramError> {
        let asked = self.desk.ask_within(publish, PATIENCE).await;
        asked.expect("it answers")
    }

    pub(super) fn program(&self, name: &str) -> Option<ActorRef<ProgramMessage>> {
        let path = format!("/programs/published/{name}/program");
        self.system.find(path.as_str())?.downcast()
    }

    async fn perform(&self, name: &str, input: Value) -> Result<Value, ProgramError> {
        let program = self.program(name).expect("it is published");
        let asked = program.ask_within(PerformRequest(input), PATIENCE).await;
        asked.expect("it answers")
    }

    async fn list(&self) -> Vec<ProgramInfo> {
        self.desk
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
async fn a_program_keeps_its_state() {
    let desk = Desk::open(|_| {});
    desk.publish(PublishRequest::new("counter", COUNTER))
        .await
        .expect("it is well");
    assert_eq!(desk.perform("counter", json!(2)).await, Ok(json!(2)));
    assert_eq!(desk.perform("counter", json!(3)).await, Ok(json!(5)));
    let mut typed =
        PublishRequest::new("typed", "async function handle(n: number) { return n * 2 }");
    typed.language = strowger_tools::code::Language::TypeScript;
    desk.publish(typed).await.expect("it is well");
    assert_eq!(desk.perform("typed", json!(21)).await, Ok(json!(42)));
    // A thrown error is an answer, and the state is unchanged.
    let code =
        "let n = 0; function handle(by) { if (!by) throw new TypeError('by'); return n += by }";
    desk.publish(PublishRequest::new("strict", code))
        .await
        .expect("it is well");
    assert_eq!(desk.perform("strict", json!(1)).await, Ok(json!(1)));
    let failed = desk
        .perform("strict", json!(0))
        .await
        .expect_err("it throws");
    assert_eq!(failed.to_string(), "TypeError: by");
    assert_eq!(desk.perform("strict", json!(1)).await, Ok(json!(2)));
    let info = desk.one("strict").await;
    assert_eq!((info.calls, info.failed, info.restarts), (3, 1, 0));
    assert_eq!(info.state, ProgramState::Resident);
    assert!(
        desk.desk
            .ask(WithdrawRequest {
                name: "counter".into()
            })
            .await
            .expect("it answers")
    );
    assert!(desk.program("counter").is_none());
    assert!(
        !desk
            .desk
            .ask(WithdrawRequest {
                name: "counter".into()
            })
            .await
            .expect("it answers")
    );
}

#[tokio::test]
async fn a_program_has_an_address() {
    let desk = Desk::open(|_| {});
    desk.publish(PublishRequest::new("counter", COUNTER))
        .await
        .expect("it is well");
    let exposed = desk.system.exports();
    let addresses: Vec<_> = exposed.iter().map(|one| one.address.to_string()).collect();
    assert_eq!(addresses, ["@(programs/counter)"]);
    desk.desk
        .ask(WithdrawRequest {
            name: "counter".into(),
        })
        .await
        .expect("it answers");
    assert!(desk.system.exports().is_empty());
}

#[tokio::test]
async fn what_is_no_program_is_not_published() {
    let desk = Desk::open(|spec| spec.programs = 1);
    let failed = desk.publish(PublishRequest::new("a/b", COUNTER)).await;
    assert_eq!(failed, Err(ProgramError::InvalidName("a/b".to_owned())));
    let failed = desk
        .publish(PublishRequest::new("bad", "function handle( {"))
        .await;
    assert!(
        matches!(failed, Err(ProgramError::Code(CodeError::Thrown(_)))),
        "{failed:?}"
    );
    let failed = desk
        .publish(PublishRequest::new("endless", "for (;;);"))
        .await;
    let failed = failed.expect_err("it has no end").to_string();
    for said in [
        "the limit `time` of 1000 ms",
        "raise `time` in [tools.programs.limits]",
        "--limit code.time=TIME",
    ] {
        assert!(failed.contains(said), "{failed}");
    }
    let mut tight = PublishRequest::new("endless", "for (;;);");
    tight.budget.time_ms = Some(20);
    let failed = desk.publish(tight).await.expect_err("it has no end");
    let failed = failed.to_string();
    assert!(
        failed.contains("of 20 ms") && failed.contains("raise the call's `time_ms`"),
        "{failed}"
    );
    let schema =
        PublishRequest::new("schema", COUNTER).with_schemas(Some(json!({"type": 7})), None);
    let failed = desk.publish(schema).await;
    assert!(
        matches!(
            failed,
            Err(ProgramError::InvalidSchema(SchemaSide::Input, _))
        ),
        "{failed:?}"
    );
    let far = json!({"$ref": "https://example.org/schema.json"});
    let far = PublishRequest::new("far", COUNTER).with_schemas(None, Some(far));
    let failed = desk.publish(far).await;
    assert!(
        matches!(
            failed,
            Err(ProgramError::InvalidSchema(SchemaSide::Output, _))
        ),
        "{failed:?}"
    );
    assert!(desk.list().await.is_empty());
    desk.publish(PublishRequest::new("one", COUNTER))
        .await
        .expect("there is room");
    assert_eq!(
        desk.publish(PublishRequest::new("two", COUNTER)).await,
        Err(ProgramError::TooManyPrograms(1))
    );
    // A new version replaces the program, with a state of its own.
    assert_eq!(desk.perform("one", json!(7)).await, Ok(json!(7)));
    desk.publish(PublishRequest::new("one", COUNTER))
        .await
        .expect("it is there already");
    assert_eq!(desk.perform("one", json!(1)).await, Ok(json!(1)));
    // A version that does not run leaves the previous one in place.
    let bad = PublishRequest::new("one", "throw new Error('no')");
    desk.publish(bad).await.expect_err("it throws");
    let answer = desk.perform("one", json!(1)).await;
    assert!(answer.is_ok(), "{answer:?}");
}

#[tokio::test]
async fn a_draft_does_not_run() {
    let desk = Desk::open(|_| {});
    desk.publish(PublishRequest::new("plan", "for (;;);").draft())
        .await
        .expect("it is not run");
    let failed = desk.perform("plan", json!(1)).await;
    assert_eq!(failed, Err(ProgramError::Draft("plan".to_owned())));
    assert_eq!(desk.one("plan").await.state, ProgramState::Draft);
    desk.publish(PublishRequest::new("plan", COUNTER))
        .await
        .expect("it is well");
    assert_eq!(desk.perform("plan", json!(1)).await, Ok(json!(1)));
}

#[tokio::test]
async fn schemas_are_enforced() {
    let desk = Desk::open(|_| {});
    let input = json!({"type": "object", "required": ["n"],
        "properties": {"n": {"type": "integer", "minimum": 0}}});
    let code =
        "let seen = 0; function handle(input) { seen++; return input.n > 9 ? 'many' : seen }";
    let publish = PublishRequest::new("checked", code);
    let publish = publish.with_schemas(Some(input), Some(json!({"type": "integer"})));
    desk.publish(publish).await.expect("it is well");
    assert_eq!(desk.perform("checked", json!({"n": 1})).await, Ok(json!(1)));
    let failed = desk
        .perform("checked", json!({"n": -1}))
        .await
        .expect_err("it is negative");
    let ProgramError::SchemaMismatch(SchemaSide::Input, why) = &failed else {
        panic!("{failed:?}");
    };
    assert!(why.starts_with("/n"), "{why}");
    // The program did not see the invalid input.
    assert_eq!(desk.perform("checked", json!({"n": 2})).await, Ok(json!(2)));
    let failed = desk
        .perform("checked", json!({"n": 10}))
        .await
        .expect_err("it gives a text");
    assert!(
        matches!(failed, ProgramError::SchemaMismatch(SchemaSide::Output, _)),
        "{failed:?}"
    );
    assert_eq!(desk.one("checked").await.failed, 2);
    // The twin without schemas accepts and returns both.
    desk.publish(PublishRequest::new("free", code))
        .await
        .expect("it is well");
    assert_eq!(desk.perform("free", json!({"n": -1})).await, Ok(json!(1)));
    assert_eq!(
        desk.perform("free", json!({"n": 10})).await,
        Ok(json!("many"))
    );
}

const RUNAWAY: &str = "let n = 0; function handle(m) { if (m === 'run') for (;;); return ++n }";

#[tokio::test]
async fn a_runaway_is_restarted_and_in_the_end_stopped() {
    let desk = Desk::open(|spec| {
        spec.limits.time = Duration::from_millis(150);
        spec.restarts = 2;
    });
    desk.publish(PublishRequest::new("runaway", RUNAWAY))
        .await
        .expect("it is well");
    desk.publish(PublishRequest::new("neighbour", RUNAWAY))
        .await
        .expect("it is well");
    let is_time = |failed: Result<Value, ProgramError>| match failed {
        Err(ProgramError::Code(error)) => error.limit() == Some(CodeLimit::Time),
        _ => false,
    };
    for restarts in 1..=2 {
        assert!(is_time(desk.perform("runaway", json!("run")).await));
        assert_eq!(
            desk.perform("runaway", json!(0)).await,
            Ok(json!(1)),
            "it began anew"
        );
        assert_eq!(desk.perform("runaway", json!(0)).await, Ok(json!(2)));
        assert_eq!(desk.one("runaway").await.restarts, restarts);
    }
    let program = desk.program("runaway").expect("it runs");
    assert!(is_time(desk.perform("runaway", json!("run")).await));
    program.stopped().await;
    let asked = program.ask(PerformRequest(json!(1))).await;
    assert!(matches!(asked, Err(AskError::Closed)), "{asked:?}");
    while desk.one("runaway").await.state != ProgramState::Stopped {
        tokio::task::yield_now().await;
    }
    assert_eq!(desk.perform("neighbour", json!(1)).await, Ok(json!(1)));
    // Publishing a corrected version repairs it.
    desk.publish(PublishRequest::new("runaway", COUNTER))
        .await
        .expect("it is well");
    assert_eq!(desk.perform("runaway", json!(4)).await, Ok(json!(4)));
}

#[tokio::test]
async fn the_idle_give_their_realm_up_and_keep_their_state() {
    let desk = Desk::open(|spec| spec.residents = 3);
    let names: Vec<_> = (0..12).map(|n| format!("counter-{n}")).collect();
    for name in &names {
        desk.publish(PublishRequest::new(name, COUNTER))
            .await
            .expect("there is room");
    }
    for round in 1..=3 {
        for name in &names {
            assert_eq!(
                desk.perform(name, json!(1)).await,
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
    assert_eq!(residents(desk.list().await), 3);
    // All at the same time: they take turns.
    let asks = names.iter().map(|name| {
        let program = desk.program(name).expect("it is published");
        tokio::spawn(async move { program.ask_within(PerformRequest(json!(1)), PATIENCE).await })
    });
    let asks: Vec<_> = asks.collect();
    for ask in asks {
        let outcome = ask.await.expect("no panic").expect("it answers");
        assert_eq!(outcome, Ok(json!(4)));
    }
    assert_eq!(residents(desk.list().await), 3);
}

#[tokio::test]
async fn a_message_that_nobody_wants_ends_no_program() {
    let desk = Desk::open(|spec| {
        spec.limits.time = PATIENCE;
        spec.restarts = 0;
    });
    desk.publish(PublishRequest::new("runaway", RUNAWAY))
        .await
        .expect("it is well");
    let program = desk.program("runaway").expect("it runs");
    let mut asked = Box::pin(program.ask_within(PerformRequest(json!("run")), PATIENCE));
    let begun = tokio::time::timeout(Duration::from_millis(20), &mut asked).await;
    assert!(begun.is_err(), "it has no end");
    drop(asked);
    assert_eq!(desk.perform("runaway", json!(1)).await, Ok(json!(1)));
    assert_eq!(desk.one("runaway").await.restarts, 0);
}
