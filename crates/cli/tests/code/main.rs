//! Code in the sandbox of the node, through the actor.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use strowger::{ActorRef, ActorSystem, BoxError, Context, Request, handlers};
use strowger_tools::code::{
    AnswerCallRequest, Code, CodeBudget, CodeError, CodeLimit, CodeLimits, CodeMessage, CodeSpec,
    CodeUsage, CodeUsageRequest, ConsoleLevel, ExecuteRequest, FollowRunRequest,
    ForgetRealmRequest, GrantedFunctions, RunEvent, RunResult,
};
use strowger_wasm::{Host, HostLimits};

use sandbox::{Realms, TYPESCRIPT};

mod attack;
mod endpoints;
mod escape;
mod programs;
#[path = "../../src/compose/agents/sandbox.rs"]
mod sandbox;
mod scale;

/// The host of all tests, which compiles the engine once and caches it for the next run.
fn host() -> &'static (Host, Arc<Realms>) {
    static HOST: OnceLock<(Host, Arc<Realms>)> = OnceLock::new();
    HOST.get_or_init(|| host_of(HostLimits::default()))
}

/// A host within limits, with compiled code from the directory that all tests share.
fn host_of(mut limits: HostLimits) -> (Host, Arc<Realms>) {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("code-cache");
    let made = std::fs::DirBuilder::new().mode(0o700).create(&cache);
    assert!(made.is_ok() || cache.is_dir(), "there is a folder");
    limits.cache = Some(cache);
    limits.cached = 512 << 20;
    let host = Host::new(limits).expect("a host");
    let realms = Realms::new_blocking(&host).expect("the engine compiles");
    (host, realms)
}

/// A code actor, and another actor whose progress is counted.
struct CodeFixture {
    system: ActorSystem,
    code: ActorRef<CodeMessage>,
    heartbeat: ActorRef<HeartbeatMessage>,
}

impl CodeFixture {
    fn open(change: impl FnOnce(&mut CodeSpec)) -> Self {
        let system = ActorSystem::new("office").expect("it starts");
        let sandbox: Arc<Realms> = Arc::clone(&host().1);
        let mut spec = CodeSpec::new(sandbox).with_typescript(TYPESCRIPT);
        change(&mut spec);
        let code = system.spawn::<Code>("code", spec).expect("it starts");
        let heartbeat = system.spawn::<Heartbeat>("pulse", ()).expect("it starts");
        Self {
            system,
            code,
            heartbeat,
        }
    }

    /// An actor whose runs reach no limit of time: on a slow machine, that would strike before the
    /// limit that a test is about.
    fn without_time_limits() -> Self {
        Self::open(|spec| {
            spec.limits.time = HANG_GUARD;
            spec.limits.deadline = HANG_GUARD;
        })
    }

    /// Runs code while another actor on the same thread answers as often as it can; that actor must
    /// answer at least once, unless the run ends at once.
    async fn run(&self, execute: ExecuteRequest) -> Result<RunResult, CodeError> {
        let beats = async {
            loop {
                self.heartbeat.ask(Beat).await.expect("it answers");
                tokio::task::yield_now().await;
            }
        };
        let before = self.heartbeat.ask(Count).await.expect("it answers");
        let (begun, waited) = (Instant::now(), processor_wait());
        let asked = self.code.ask_within(execute, HANG_GUARD);
        let outcome = tokio::select! {
            outcome = asked => outcome.expect("it answers"),
            () = beats => unreachable!("it does not end"),
        };
        // Runs are cut into slices by the clock. While other programs have the processor, a slice
        // gets longer, so that a short run may end with its first one.
        let others = processor_wait().saturating_sub(waited);
        let took = begun.elapsed().saturating_sub(others);
        let after = self.heartbeat.ask(Count).await.expect("it answers");
        let moment = Duration::from_millis(5);
        assert!(
            after > before || took < moment,
            "the other one stood still for {took:?}"
        );
        outcome
    }

    async fn value(&self, execute: ExecuteRequest) -> Value {
        self.run(execute).await.expect("it has a value").value
    }

    async fn js(&self, code: &str) -> Value {
        self.value(ExecuteRequest::new(code)).await
    }

    async fn usage(&self) -> CodeUsage {
        self.code.ask(CodeUsageRequest).await.expect("it answers")
    }
}

/// The time for which this thread was ready to run and had no processor; zero where the kernel does
/// not tell it.
fn processor_wait() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').nth(1).and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// A guard against hanging.
const HANG_GUARD: Duration = Duration::from_secs(120);

struct Heartbeat(u64);

struct Beat;
impl Request for Beat {
    type Reply = u64;
}

struct Count;
impl Request for Count {
    type Reply = u64;
}

#[handlers]
impl strowger::Actor for Heartbeat {
    type Args = ();
    type Error = BoxError;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self(0))
    }

    async fn beat(&mut self, _: Beat) -> u64 {
        self.0 += 1;
        self.0
    }

    async fn count(&mut self, _: Count) -> u64 {
        self.0
    }
}

#[tokio::test]
async fn expression_has_a_value() {
    let fixture = CodeFixture::open(|_| {});
    assert_eq!(fixture.js("1+1").await, json!(2));
    assert_eq!(
        fixture.js("({a: [1, 'x', null]})").await,
        json!({"a": [1, "x", null]})
    );
    assert_eq!(fixture.js("undefined").await, json!(null));
    assert_eq!(fixture.js("'\\ud83d\\ude00'").await, json!("😀"));
    assert_eq!(fixture.js("").await, json!(null));
    let thrown = fixture.run(ExecuteRequest::new("null.x")).await;
    let Err(CodeError::Thrown(thrown)) = thrown else {
        panic!("{thrown:?}");
    };
    assert_eq!(thrown.name, "TypeError");
    assert!(thrown.stack.contains("code:1"), "{}", thrown.stack);
    let thrown = fixture.run(ExecuteRequest::new("const = 3")).await;
    assert!(
        matches!(&thrown, Err(CodeError::Thrown(t)) if t.name == "SyntaxError"),
        "{thrown:?}"
    );
    let thrown = fixture.run(ExecuteRequest::new("throw 'text'")).await;
    assert_eq!(thrown.expect_err("it fails").to_string(), "threw text");
}

#[tokio::test]
async fn promises_are_resolved() {
    let fixture = CodeFixture::open(|_| {});
    assert_eq!(fixture.js("await Promise.resolve(3)").await, json!(3));
    assert_eq!(
        fixture.js("(async () => { await null; return 4 })()").await,
        json!(4)
    );
    let code = "let all = []; for await (const x of (async function*() { yield 1; yield 2 })()) \
                all.push(x); all";
    assert_eq!(fixture.js(code).await, json!([1, 2]));
    let failed = fixture
        .run(ExecuteRequest::new("await Promise.reject(new Error('no'))"))
        .await;
    assert_eq!(failed.expect_err("it fails").to_string(), "Error: no");
    let failed = fixture
        .run(ExecuteRequest::new("await new Promise(() => {})"))
        .await;
    assert_eq!(failed.expect_err("it fails"), CodeError::Unsettled);
}

#[tokio::test]
async fn granted_functions_are_called() {
    let fixture = CodeFixture::open(|_| {});
    let functions = GrantedFunctions::new()
        .waiting("add", |values| async move {
            let sum: i64 = values.iter().filter_map(Value::as_i64).sum();
            Ok(sum)
        })
        .promise("later", |values| async move {
            tokio::task::yield_now().await;
            Ok(values)
        })
        .promise("never", |_| async { Err::<(), _>("not today".to_owned()) })
        .waiting("no", |_| async { Err::<(), _>("not at all".to_owned()) });
    let run = |code: &str| ExecuteRequest::new(code).with_functions(functions.clone());
    assert_eq!(fixture.value(run("fns.add(1, 2, 3)")).await, json!(6));
    let code = "const [a, b] = await Promise.all([fns.later('x'), fns.later(7)]); [a, b]";
    assert_eq!(fixture.value(run(code)).await, json!([["x"], [7]]));
    let code = "try { await fns.never() } catch (error) { error.message }";
    assert_eq!(fixture.value(run(code)).await, json!("not today"));
    let failed = fixture.run(run("fns.no()")).await;
    assert_eq!(
        failed.expect_err("it fails").to_string(),
        "Error: not at all"
    );
    assert_eq!(
        fixture.value(run("Object.keys(fns)")).await,
        json!(["add", "later", "never", "no"])
    );
    assert_eq!(fixture.js("Object.keys(fns)").await, json!([]));
}

#[tokio::test]
async fn typescript_types_are_stripped() {
    let fixture = CodeFixture::open(|_| {});
    let code = "enum Kind { A, B }\n\
                interface Point { x: number; y?: string }\n\
                const point: Point = { x: 1 } as Point;\n\
                function twice<T extends number>(value: T): number { return value! * 2 }\n\
                [twice<number>(point.x), Kind.B satisfies number]";
    assert_eq!(
        fixture.value(ExecuteRequest::new(code).typescript()).await,
        json!([2, 1])
    );
    let failed = fixture
        .run(ExecuteRequest::new("let x: = 3").typescript())
        .await;
    assert!(
        matches!(&failed, Err(CodeError::Thrown(t)) if t.name == "SyntaxError"),
        "{failed:?}"
    );
    // The position is one in the code, not in the parser.
    let Err(CodeError::Thrown(thrown)) = failed else {
        unreachable!("it was looked at")
    };
    assert_eq!(thrown.location(), Some((1, 8)), "{thrown:?}");
    // A parser that recurses this deeply ends the run, and nothing else.
    let deep = format!("let x = {}1", "(".repeat(100_000));
    let failed = fixture.run(ExecuteRequest::new(deep).typescript()).await;
    let failed = failed.expect_err("it fails");
    assert_eq!(failed.limit(), Some(CodeLimit::Stack));
    assert!(
        failed.to_string().contains("the TypeScript parser"),
        "{failed}"
    );
    assert_eq!(
        fixture
            .value(ExecuteRequest::new("(1 as number)").typescript())
            .await,
        json!(1)
    );
}

#[tokio::test]
async fn unsupported_typescript_is_named_with_its_position() {
    let fixture = CodeFixture::open(|_| {});
    for (code, why, place) in [
        (
            "namespace A { export const x = 1 } 1",
            "a namespace is not run",
            (1, 1),
        ),
        (
            "1;\n export module A.B { console.log(1) }",
            "a namespace is not run",
            (2, 9),
        ),
        ("@sealed class A {}", "decorators are not run", (1, 1)),
        (
            "class A {\n  @log() m() {} }",
            "decorators are not run",
            (2, 3),
        ),
    ] {
        let failed = fixture.run(ExecuteRequest::new(code).typescript()).await;
        let Err(CodeError::Thrown(thrown)) = failed else {
            panic!("{code}: {failed:?}")
        };
        assert_eq!(
            (&*thrown.name, thrown.location()),
            ("SyntaxError", Some(place)),
            "{code}"
        );
        assert!(thrown.message.starts_with(why), "{thrown:?}");
    }
    for (code, value) in [
        (
            "declare namespace A { namespace B { const x: number } } 'a@b'",
            json!("a@b"),
        ),
        ("declare module 'x' { const y: number } 1", json!(1)),
        (
            "const namespace = 1, module = { at: '@' }; [namespace, module.at]",
            json!([1, "@"]),
        ),
    ] {
        assert_eq!(
            fixture.value(ExecuteRequest::new(code).typescript()).await,
            value,
            "{code}"
        );
    }
}

/// Runs that exceed a limit: the run, the limit, its value with the wanted amount, and `true` if
/// that amount is known.
fn runs_over_a_limit() -> Vec<(ExecuteRequest, &'static str, &'static str, bool)> {
    let never = || {
        GrantedFunctions::new().waiting("never", |_| std::future::pending::<Result<(), String>>())
    };
    let given = |code: &str| ExecuteRequest::new(code).with_functions(never());
    vec![
        (given("for (;;);"), "time", "200 ms", false),
        (given("fns.never()"), "deadline", "300 ms", false),
        (
            given("'x'.repeat(2 ** 25).length"),
            "memory",
            "16777216 bytes",
            true,
        ),
        (
            given("(function f() { f() })()"),
            "stack",
            "524288 bytes",
            false,
        ),
        (
            given("for (;;) Promise.resolve().then(() => {})"),
            "jobs",
            "500 jobs (requested 501)",
            true,
        ),
        (
            given("console.log('x'.repeat(2 ** 21))"),
            "output",
            "262144 bytes (requested 2097184",
            true,
        ),
        (
            given("'x'.repeat(2 ** 21)"),
            "result",
            "1048576 bytes (requested 2097154",
            true,
        ),
        (
            given("fns.never('x'.repeat(2 ** 21))"),
            "result",
            "1048576 bytes (requested 2097156",
            true,
        ),
        (
            given(&"x".repeat(300_000)),
            "source",
            "262144 bytes (requested 300000",
            true,
        ),
    ]
}

#[tokio::test]
async fn limit_error_names_the_limit_the_request_and_the_setting() {
    let quick = CodeFixture::open(|spec| {
        spec.limits.time = Duration::from_millis(200);
        spec.limits.deadline = Duration::from_millis(300);
    });
    // The other limits must be met before the time is up, also on a busy machine.
    let patient = CodeFixture::open(|spec| spec.limits.jobs = 500);
    for (execute, limit, most, used) in runs_over_a_limit() {
        let is_timed = matches!(limit, "time" | "deadline");
        let fixture = if is_timed { &quick } else { &patient };
        let failed = fixture.run(execute).await.expect_err("it is too much");
        let text = failed.to_string();
        let begins = format!("exceeded the limit `{limit}` of {most}");
        assert!(text.starts_with(&begins), "{text}");
        let raise =
            format!("or raise `{limit}` in [tools.code.limits], or with --limit code.{limit}=");
        assert!(text.contains(&raise), "{text}");
        let details = &failed.to_fault().to_json()["details"];
        assert_eq!(details["reason"], limit);
        assert!(details["most"].is_u64(), "{details}");
        assert_eq!(details["used"].is_u64(), used, "{details}");
        assert!(
            details["remedy"]
                .as_str()
                .is_some_and(|remedy| text.ends_with(remedy)),
            "{details}"
        );
    }
}

#[tokio::test]
async fn result_limit_does_not_shorten_errors() {
    let fixture = CodeFixture::open(|_| {});
    let mut little = CodeBudget::default();
    little.result = Some(10);
    let failed = fixture
        .run(ExecuteRequest::new("null.x").with_budget(little))
        .await;
    let failed = failed.expect_err("it fails");
    assert!(
        matches!(&failed, CodeError::Thrown(t) if t.name == "TypeError"),
        "{failed:?}"
    );
}

#[tokio::test]
async fn lone_surrogates_are_replaced_everywhere() {
    let fixture = CodeFixture::open(|_| {});
    let half = "\u{fffd}";
    let failed = fixture
        .run(ExecuteRequest::new("throw new Error('😀'.slice(0, 1))"))
        .await;
    assert_eq!(
        failed.expect_err("it fails").to_string(),
        format!("Error: {half}")
    );
    let failed = fixture
        .run(ExecuteRequest::new("throw '😀'.slice(0, 1)"))
        .await;
    assert_eq!(
        failed.expect_err("it fails").to_string(),
        format!("threw {half}")
    );
    let ran = fixture
        .run(ExecuteRequest::new(
            "console.log('a', '😀'.slice(0, 1), '😀')",
        ))
        .await;
    assert_eq!(ran.expect("it runs").output[0].text, format!("a {half} 😀"));
    let echo = GrantedFunctions::new()
        .waiting("echo", |values| std::future::ready(Ok::<_, String>(values)));
    let run = ExecuteRequest::new("fns.echo('😀'.slice(0, 1))").with_functions(echo);
    assert_eq!(fixture.value(run).await, json!([half]));
}

#[tokio::test]
async fn unserializable_value_names_its_cause() {
    let fixture = CodeFixture::open(|_| {});
    let half = "\u{fffd}";
    for (code, value) in [
        ("'😀 hello'.slice(0, 1)", json!(half)),
        ("'😀 hello'.slice(1)", json!(format!("{half} hello"))),
        (
            "({ ['😀'[0]]: ['\\\\ud83d', '😀'] })",
            json!({ half: ["\\ud83d", "😀"] }),
        ),
        ("undefined", Value::Null),
        (
            "let deep = 1; for (let i = 0; i < 127; i++) deep = [deep]; deep.length",
            json!(1),
        ),
    ] {
        assert_eq!(fixture.js(code).await, value, "{code}");
    }
    let deep = "let deep = 1; for (let i = 0; i < 500; i++) deep = [deep]; deep";
    let failed = fixture
        .run(ExecuteRequest::new(deep))
        .await
        .expect_err("it is deep");
    assert!(
        matches!(&failed, CodeError::InvalidValue(why) if why.contains("127")),
        "{failed:?}"
    );
    assert_eq!(failed.to_fault().to_json()["details"]["reason"], "value");
    for (code, name) in [
        ("const ring = []; ring.push(ring); ring", "TypeError"),
        ("10n", "TypeError"),
        (
            "({ toJSON() { throw new RangeError('mine') } })",
            "RangeError",
        ),
    ] {
        let failed = fixture
            .run(ExecuteRequest::new(code))
            .await
            .expect_err("it fails");
        assert!(
            matches!(&failed, CodeError::Thrown(t) if t.name == name),
            "{code}: {failed:?}"
        );
    }
    let echo =
        GrantedFunctions::new().waiting("echo", |values| async move { Ok::<_, String>(values) });
    let given = ExecuteRequest::new("fns.echo('😀'[1])").with_functions(echo.clone());
    assert_eq!(fixture.value(given).await, json!([half]));
    let deep = format!("{deep}; try {{ fns.echo(deep) }} catch (error) {{ error.message }}");
    let why = fixture
        .value(ExecuteRequest::new(deep).with_functions(echo))
        .await;
    assert!(why.as_str().is_some_and(|why| why.contains("127")), "{why}");
}

#[test]
fn documented_limits_match() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/code.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let limits = CodeLimits::default();
    let span = |span: Duration| format!("{}s", span.as_secs_f64());
    let size = |bytes: usize| match bytes.trailing_zeros() {
        20.. => format!("{} MiB", bytes >> 20),
        _ => format!("{} KiB", bytes >> 10),
    };
    let stack = usize::try_from(limits.stack).expect("it is small");
    for (name, default) in [
        ("time", span(limits.time)),
        ("deadline", span(limits.deadline)),
        ("memory", size(limits.memory)),
        ("stack", size(stack)),
        (
            "jobs",
            format!("{} {:03}", limits.jobs / 1000, limits.jobs % 1000),
        ),
        ("output", size(limits.output)),
        ("result", size(limits.result)),
        ("calls", limits.calls.to_string()),
        ("source", size(limits.source)),
    ] {
        let row = format!("| `{name}` | {default} |");
        assert!(page.contains(&row), "docs/code.md has no {row}");
    }
    for limit in CodeLimit::ALL {
        let row = format!("| `{}` | ", limit.name());
        assert!(page.contains(&row), "docs/code.md has no {row}");
    }
}

#[tokio::test]
async fn kept_realm_keeps_its_state() {
    let fixture = CodeFixture::open(|spec| spec.realms = 2);
    let run = |code: &str, realm: &str| ExecuteRequest::new(code).in_realm(realm);
    let first = fixture
        .run(run("let n = 1; var m = 2; n", "a"))
        .await
        .expect("it runs");
    assert!(first.fresh);
    let second = fixture
        .run(run("n += 1; n + m", "a"))
        .await
        .expect("it runs");
    assert_eq!((second.value, second.fresh), (json!(4), false));
    assert_eq!(
        fixture.value(run("typeof n", "b")).await,
        json!("undefined")
    );
    assert_eq!(fixture.js("typeof n").await, json!("undefined"));
    // An error keeps the state; a limit ends the realm.
    let failed = fixture.run(run("n = 9; throw 1", "a")).await;
    assert!(matches!(failed, Err(CodeError::Thrown(_))), "{failed:?}");
    assert_eq!(fixture.value(run("n", "a")).await, json!(9));
    let failed = fixture
        .run(run("for (;;);", "a").with_budget(time(5)))
        .await;
    assert_eq!(failed.expect_err("it fails").limit(), Some(CodeLimit::Time));
    let fresh = fixture.run(run("typeof n", "a")).await.expect("it runs");
    assert_eq!((fresh.value, fresh.fresh), (json!("undefined"), true));
    // A third realm ends the realm that was idle for longest.
    assert_eq!(fixture.usage().await.realms, 2);
    assert!(fixture.run(run("0", "c")).await.expect("it runs").fresh);
    assert!(fixture.run(run("0", "b")).await.expect("it runs").fresh);
    assert!(!fixture.run(run("0", "c")).await.expect("it runs").fresh);
    let forget = |realm: &str| ForgetRealmRequest {
        realm: realm.to_owned(),
    };
    assert!(fixture.code.ask(forget("c")).await.expect("it answers"));
    assert!(!fixture.code.ask(forget("c")).await.expect("it answers"));
}

#[tokio::test]
async fn output_belongs_to_its_run() {
    let fixture = CodeFixture::open(|_| {});
    let code = "console.log('a', 1, {b: [2]}); console.warn(new Error('e').message); 5";
    let executed = fixture
        .run(ExecuteRequest::new(code))
        .await
        .expect("it runs");
    let lines: Vec<_> = executed
        .output
        .iter()
        .map(|line| (line.level, &*line.text))
        .collect();
    assert_eq!(
        lines,
        [
            (ConsoleLevel::Log, r#"a 1 {"b":[2]}"#),
            (ConsoleLevel::Warn, "e")
        ]
    );
    let silent = fixture
        .run(ExecuteRequest::new("5"))
        .await
        .expect("it runs");
    assert!(silent.output.is_empty());
    // Work that a run defers is done before the run ends, and none of it in the next run.
    let late = "Promise.resolve().then(() => console.log('late')); 0";
    let executed = fixture
        .run(ExecuteRequest::new(late).in_realm("a"))
        .await
        .expect("it runs");
    assert_eq!(executed.output.len(), 1);
    let next = fixture
        .run(ExecuteRequest::new("0").in_realm("a"))
        .await
        .expect("it runs");
    assert!(next.output.is_empty());
}

#[tokio::test]
async fn follower_of_a_run_answers_its_calls() {
    let fixture = CodeFixture::open(|spec| spec.limits.calls = 2);
    let code = "const all = await Promise.allSettled([fns.a(args.x), fns.b(2, 'y'), fns.a(3)]);
                all.map(({ status, value, reason }) => value ?? reason?.message ?? status)";
    let execute = ExecuteRequest::new(code).with_args(json!({ "x": 1 }));
    let follow = FollowRunRequest::new(execute)
        .with_follower_function("a")
        .with_follower_function("b");
    let told = fixture.code.ask_within(follow, HANG_GUARD).await;
    let mut told = told.expect("it answers").expect("a reader");
    let mut calls = Vec::new();
    while calls.len() < 2 {
        let Some(Ok(RunEvent::Call(called))) = told.recv().await else {
            panic!("it was to call");
        };
        calls.push(called);
    }
    let said: Vec<_> = calls
        .iter()
        .map(|called| (&*called.name, called.arguments.clone()))
        .collect();
    assert_eq!(
        said,
        [("a", vec![json!(1)]), ("b", vec![json!(2), json!("y")])]
    );
    assert_ne!(calls[0].call, calls[1].call);
    let answer = |call: &str, outcome: Result<Value, String>| {
        let call = call.to_owned();
        fixture.code.ask(AnswerCallRequest { call, outcome })
    };
    // A guessed identifier is not accepted, and neither is a second answer.
    assert!(!answer("1", Ok(json!("forged"))).await.expect("it answers"));
    let well = answer(&calls[0].call, Ok(json!({ "n": 1 }))).await;
    assert!(well.expect("it answers"));
    assert!(
        !answer(&calls[0].call, Ok(json!(2)))
            .await
            .expect("it answers")
    );
    let badly = answer(&calls[1].call, Err("not today".to_owned())).await;
    assert!(badly.expect("it answers"));
    let Some(Ok(RunEvent::Ended(Ok(ended)))) = told.recv().await else {
        panic!("it was to end");
    };
    let [one, two, three] = ended.value.as_array().expect("a list").as_slice() else {
        panic!("{ended:?}");
    };
    assert_eq!((one, two), (&json!({ "n": 1 }), &json!("not today")));
    // One call more than may be pending; the run continued.
    assert!(three.as_str().is_some(), "{three}");

    // A call ends with its run: a later answer is ignored.
    let execute = ExecuteRequest::new("await fns.a()");
    let follow = FollowRunRequest::new(execute).with_follower_function("a");
    let told = fixture.code.ask_within(follow, HANG_GUARD).await;
    let mut told = told.expect("it answers").expect("a reader");
    let Some(Ok(RunEvent::Call(called))) = told.recv().await else {
        panic!("it was to call");
    };
    drop(told);
    while fixture.usage().await.running > 0 {
        tokio::task::yield_now().await;
    }
    assert!(
        !answer(&called.call, Ok(json!(1)))
            .await
            .expect("it answers")
    );
    assert_eq!(fixture.usage().await.cancelled, 1);
    // A name can be given only once, no matter by which side.
    let functions = GrantedFunctions::new().promise("a", |_| async { Ok::<_, String>(1) });
    let twice = FollowRunRequest::new(ExecuteRequest::new("1").with_functions(functions))
        .with_follower_function("a");
    let told = fixture.code.ask(twice).await.expect("it answers");
    let Some(Ok(RunEvent::Ended(ended))) = told.expect("a reader").recv().await else {
        panic!("it was to end");
    };
    let name = "a".to_owned();
    assert_eq!(
        ended.expect_err("it fails"),
        CodeError::InvalidFunctionName(name)
    );
}

#[tokio::test]
async fn output_is_streamed_while_code_runs() {
    let fixture = CodeFixture::open(|_| {});
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let receiver = Arc::new(parking_lot::Mutex::new(Some(receiver)));
    let functions = GrantedFunctions::new().promise("gate", move |_| {
        let receiver = receiver.lock().take();
        async move {
            receiver
                .expect("once")
                .await
                .map_err(|error| error.to_string())
        }
    });
    let code = "console.log('before'); await fns.gate(); console.log('after'); 1";
    let execute = ExecuteRequest::new(code).with_functions(functions);
    let told = fixture
        .code
        .ask(FollowRunRequest::new(execute))
        .await
        .expect("it answers");
    let mut told = told.expect("a reader");
    let Some(Ok(RunEvent::Line(line))) = told.recv().await else {
        panic!("a line");
    };
    assert_eq!(line.text, "before");
    // It waits for the gate, which opens only now.
    sender.send(()).expect("it waits");
    let Some(Ok(RunEvent::Line(line))) = told.recv().await else {
        panic!("a line");
    };
    assert_eq!(line.text, "after");
    let Some(Ok(RunEvent::Ended(Ok(ended)))) = told.recv().await else {
        panic!("an end");
    };
    assert_eq!(ended.value, json!(1));
    assert!(told.recv().await.is_none());
}

#[tokio::test]
async fn functions_belong_to_their_run() {
    let fixture = CodeFixture::open(|_| {});
    let functions = GrantedFunctions::new().waiting("secret", |_| async { Ok::<_, String>("key") });
    let keep = ExecuteRequest::new("globalThis.kept = fns.secret; kept()").in_realm("a");
    assert_eq!(
        fixture.value(keep.with_functions(functions)).await,
        json!("key")
    );
    let failed = fixture
        .run(ExecuteRequest::new("kept()").in_realm("a"))
        .await;
    let failed = failed.expect_err("it fails").to_string();
    assert_eq!(
        failed,
        "TypeError: the run that this function was given to is over"
    );
}

#[tokio::test]
async fn refusals_state_their_reason() {
    let fixture = CodeFixture::open(|spec| {
        spec.typescript = None;
        spec.limits.source = 100;
    });
    let failed = fixture
        .code
        .ask(ExecuteRequest::new("x".repeat(101)))
        .await
        .expect("it answers");
    assert_eq!(
        failed.expect_err("too long").limit(),
        Some(CodeLimit::Source)
    );
    let failed = fixture
        .code
        .ask(ExecuteRequest::new("1").typescript())
        .await
        .expect("it answers");
    assert_eq!(
        failed.expect_err("no types").to_string(),
        "this actor does not run TypeScript"
    );
    let twice = GrantedFunctions::new()
        .waiting("f", |_| async { Ok::<_, String>(()) })
        .waiting("f", |_| async { Ok::<_, String>(()) });
    let failed = fixture
        .code
        .ask(ExecuteRequest::new("1").with_functions(twice))
        .await;
    let failed = failed.expect("it answers").expect_err("twice");
    assert_eq!(failed, CodeError::InvalidFunctionName("f".to_owned()));
    let usage = fixture.usage().await;
    assert_eq!((usage.runs, usage.failed, usage.running), (3, 2, 0));
    assert_eq!(usage.limits, [("source", 1)].into());
    drop(fixture.system);
}

fn time(ms: u64) -> CodeBudget {
    let mut budget = CodeBudget::default();
    budget.time_ms = Some(ms);
    budget
}
