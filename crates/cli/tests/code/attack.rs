//! Code that uses more than its share. Each attack has a twin with the limit raised, which then
//! succeeds; while the code runs, another actor on the same thread keeps answering.

use std::time::Duration;

use serde_json::{Value, json};
use strowger_tools::code::{CodeBudget, CodeError, CodeLimit, ExecuteRequest, GrantedFunctions};

use super::{CodeFixture, HANG_GUARD, time};

/// Runs code under a tight budget, and again with the budget of the actor.
async fn assert_limited(
    code: &str,
    tight: impl FnOnce(&mut CodeBudget),
    limit: CodeLimit,
) -> Value {
    let fixture = CodeFixture::without_time_limits();
    let mut budget = CodeBudget::default();
    tight(&mut budget);
    let cut = fixture
        .run(ExecuteRequest::new(code).with_budget(budget))
        .await;
    let cut = cut.expect_err("it is cut off");
    assert_eq!(cut.limit(), Some(limit), "{code}");
    // The message names the limit, its value, and the setting that raises it.
    let text = cut.to_string();
    let of_call = |said: &str| text.contains(&format!("raise the call's `{said}"));
    assert!(
        text.starts_with(&format!("exceeded the limit `{limit}` of ")),
        "{text}"
    );
    assert!(of_call(limit.name()), "{text}");
    let usage = fixture.usage().await;
    assert_eq!(usage.limits, [(limit.name(), 1)].into());
    fixture.js(code).await
}

#[tokio::test]
async fn endless_loop_hits_the_time_limit() {
    let code = "let n = 0; while (n < 2e6) n++; n";
    let value = assert_limited(code, |budget| budget.time_ms = Some(5), CodeLimit::Time);
    assert_eq!(value.await, json!(2_000_000));
    let fixture = CodeFixture::open(|_| {});
    let endless = fixture
        .run(ExecuteRequest::new("while (1);").with_budget(time(20)))
        .await;
    assert_eq!(
        endless.expect_err("it does not end").limit(),
        Some(CodeLimit::Time)
    );
    // The code cannot catch any of this.
    let code = "for (;;) try { for (;;); } catch {} finally { for (;;); }";
    let endless = fixture
        .run(ExecuteRequest::new(code).with_budget(time(20)))
        .await;
    assert_eq!(
        endless.expect_err("it does not end").limit(),
        Some(CodeLimit::Time)
    );
}

#[tokio::test]
async fn oversized_string_is_refused() {
    let code = "'x'.repeat(2 ** 22).length";
    let tight = |budget: &mut CodeBudget| budget.memory = Some(4 << 20);
    assert_eq!(
        assert_limited(code, tight, CodeLimit::Memory).await,
        json!(1 << 22)
    );
    let fixture = CodeFixture::without_time_limits();
    for code in ["'x'.repeat(2 ** 29)", "'x'.repeat(2 ** 30)"] {
        let failed = fixture
            .run(ExecuteRequest::new(code))
            .await
            .expect_err("it is refused");
        let refused = failed.limit() == Some(CodeLimit::Memory)
            || matches!(&failed, CodeError::Thrown(t) if t.name == "RangeError");
        assert!(refused, "{code}: {failed:?}");
    }
}

#[tokio::test]
async fn backtracking_pattern_hits_the_time_limit() {
    let code = "/^(a+)+$/.test('a'.repeat(18) + 'b')";
    let value = assert_limited(code, |budget| budget.time_ms = Some(3), CodeLimit::Time);
    assert_eq!(value.await, json!(false));
    let fixture = CodeFixture::open(|_| {});
    let endless = ExecuteRequest::new("/^(a+)+$/.test('a'.repeat(60) + 'b')").with_budget(time(20));
    let endless = fixture.run(endless).await.expect_err("it does not end");
    assert_eq!(endless.limit(), Some(CodeLimit::Time));
}

#[tokio::test]
async fn slow_sort_hits_the_time_limit() {
    let code = "const all = []; for (let i = 0; i < 5e4; i++) all.push((i * 7919) % 50021); \
                all.sort()[0]";
    let value = assert_limited(code, |budget| budget.time_ms = Some(5), CodeLimit::Time);
    assert_eq!(value.await, json!(0));
}

#[tokio::test]
async fn deep_recursion_is_stopped() {
    let code = "(function f(n) { return n ? 1 + f(n - 1) : 0 })(300)";
    let tight = |budget: &mut CodeBudget| budget.stack = Some(16 << 10);
    assert_eq!(
        assert_limited(code, tight, CodeLimit::Stack).await,
        json!(300)
    );
    let fixture = CodeFixture::open(|_| {});
    for code in [
        "(function f() { f() })()",
        "const a = []; a[0] = a; let b = a; for (let i = 0; i < 1e5; i++) b = [b]; \
         JSON.stringify(b)",
        "let b = []; for (let i = 0; i < 1e5; i++) b = [b]; b.flat(Infinity)",
        "const p = new Proxy({}, { get: (t, k, r) => r[k] }); p.x",
        "eval('('.repeat(1e5))",
        "new RegExp('('.repeat(1e5))",
        "JSON.parse('['.repeat(1e5))",
    ] {
        let failed = fixture
            .run(ExecuteRequest::new(code))
            .await
            .expect_err("it is deep");
        let ended = matches!(failed.limit(), Some(CodeLimit::Stack | CodeLimit::Time))
            || matches!(&failed, CodeError::Thrown(_));
        assert!(ended, "{code}: {failed:?}");
    }
    // Nothing of it is left for other runs.
    assert_eq!(fixture.js("1+1").await, json!(2));
}

#[tokio::test]
async fn endless_promises_are_stopped() {
    let code = "for (let i = 0; i < 5000; i++) Promise.resolve(i).then(() => {}); 'calm'";
    let tight = |budget: &mut CodeBudget| budget.jobs = Some(1000);
    assert_eq!(
        assert_limited(code, tight, CodeLimit::Jobs).await,
        json!("calm")
    );
    let fixture = CodeFixture::without_time_limits();
    let storm = fixture
        .run(ExecuteRequest::new(
            "for (;;) Promise.resolve().then(() => {})",
        ))
        .await;
    assert_eq!(
        storm.expect_err("it is a storm").limit(),
        Some(CodeLimit::Jobs)
    );
    // A promise chain that never ends is a loop.
    let chain = "const f = () => Promise.resolve().then(f); await f()";
    let chain = fixture
        .run(ExecuteRequest::new(chain).with_budget(time(20)))
        .await;
    assert_eq!(
        chain.expect_err("it does not end").limit(),
        Some(CodeLimit::Time)
    );
}

#[tokio::test]
async fn memory_limit_is_enforced() {
    let code = "const all = []; for (let i = 0; i < 100; i++) all.push(new Array(5000).fill(i)); \
                all.length";
    let tight = |budget: &mut CodeBudget| budget.memory = Some(4 << 20);
    assert_eq!(
        assert_limited(code, tight, CodeLimit::Memory).await,
        json!(100)
    );
    let fixture = CodeFixture::without_time_limits();
    for code in [
        "const all = []; for (;;) all.push(new Array(1000).fill(0))",
        "const all = []; for (let i = 0;; i++) all.push('text ' + i)",
        "const all = {}; for (let i = 0;; i++) all['key' + i] = i",
        "const all = []; for (;;) all.push(new Uint8Array(1 << 20))",
        "const all = new Map(); for (let i = 0;; i++) all.set(i, i)",
        "let all; for (;;) { const before = all; all = () => before }",
    ] {
        let failed = fixture
            .run(ExecuteRequest::new(code))
            .await
            .expect_err("it is too much");
        assert_eq!(failed.limit(), Some(CodeLimit::Memory), "{code}");
    }
    assert_eq!(fixture.js("1+1").await, json!(2));
}

#[tokio::test]
async fn output_limit_is_enforced() {
    let code = "for (let i = 0; i < 100; i++) console.log('x'.repeat(1000)); 'written'";
    let tight = |budget: &mut CodeBudget| budget.output = Some(10_000);
    assert_eq!(
        assert_limited(code, tight, CodeLimit::Output).await,
        json!("written")
    );
    let fixture = CodeFixture::without_time_limits();
    for code in [
        "for (;;) console.log('')",
        "for (;;) console.error('x'.repeat(1e5))",
        // A single line is longer than all output that a run may produce.
        "console.log('x'.repeat(2 ** 21))",
    ] {
        let flood = fixture
            .run(ExecuteRequest::new(code))
            .await
            .expect_err("it is a flood");
        assert_eq!(flood.limit(), Some(CodeLimit::Output), "{code}");
    }
}

#[tokio::test]
async fn result_limit_is_enforced() {
    let code = "'x'.repeat(100000)";
    let tight = |budget: &mut CodeBudget| budget.result = Some(10_000);
    let value = assert_limited(code, tight, CodeLimit::Result).await;
    assert_eq!(value.as_str().map(str::len), Some(100_000));
}

#[tokio::test]
async fn run_ends_when_its_caller_goes_away() {
    let fixture = CodeFixture::without_time_limits();
    let waits =
        GrantedFunctions::new().promise("wait", |_| std::future::pending::<Result<(), String>>());
    for execute in [
        ExecuteRequest::new("for (;;);"),
        ExecuteRequest::new("await fns.wait()").with_functions(waits),
        ExecuteRequest::new("for (;;);").in_realm("kept"),
    ] {
        let before = fixture.usage().await.cancelled;
        let mut asked = Box::pin(fixture.code.ask_within(execute, HANG_GUARD));
        while fixture.usage().await.running == 0 {
            let begun = tokio::time::timeout(Duration::from_millis(1), &mut asked).await;
            assert!(begun.is_err(), "it has no end");
        }
        drop(asked);
        while fixture.usage().await.running > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(fixture.usage().await.cancelled, before + 1);
    }
    assert_eq!(fixture.usage().await.realms, 0, "the realm went with it");
    // While a caller waits for it, it runs to its limit.
    let wanted = fixture
        .run(ExecuteRequest::new("for (;;);").with_budget(time(30)))
        .await;
    assert_eq!(
        wanted.expect_err("it does not end").limit(),
        Some(CodeLimit::Time)
    );
}

#[tokio::test]
async fn waiting_run_hits_its_deadline() {
    let fixture = CodeFixture::open(|_| {});
    let waits =
        GrantedFunctions::new().waiting("wait", |_| std::future::pending::<Result<(), String>>());
    let mut budget = CodeBudget::default();
    budget.deadline_ms = Some(20);
    let execute = ExecuteRequest::new("fns.wait()")
        .with_functions(waits)
        .with_budget(budget);
    let late = fixture.run(execute).await.expect_err("it waits for ever");
    assert_eq!(late.limit(), Some(CodeLimit::Deadline));
}

#[tokio::test]
async fn call_limit_is_enforced() {
    let fixture = CodeFixture::open(|spec| spec.limits.calls = 4);
    let waits = GrantedFunctions::new().promise("f", |_| async {
        tokio::task::yield_now().await;
        Ok::<_, String>(1)
    });
    let run = |count: u32| {
        let code = format!(
            "const all = await Promise.allSettled(Array.from({{length: {count}}}, () => fns.f()));\
             all.filter(one => one.status === 'fulfilled').length"
        );
        ExecuteRequest::new(code).with_functions(waits.clone())
    };
    assert_eq!(fixture.value(run(4)).await, json!(4));
    assert_eq!(fixture.value(run(10)).await, json!(4));
}

#[tokio::test]
async fn killed_run_leaves_nothing_behind() {
    let fixture = CodeFixture::open(|spec| spec.typescript = None);
    // Other tests of this program use the host too: only the runs of this actor are counted.
    for _ in 0..50 {
        let killed = fixture
            .run(ExecuteRequest::new("for (;;);").with_budget(time(1)))
            .await;
        assert_eq!(
            killed.expect_err("it does not end").limit(),
            Some(CodeLimit::Time)
        );
    }
    let usage = fixture.usage().await;
    assert_eq!((usage.running, usage.realms, usage.memory), (0, 0, 0));
    assert_eq!(usage.limits, [("time", 50)].into());
}

#[tokio::test]
async fn excess_runs_wait_or_are_refused() {
    let fixture = CodeFixture::open(|spec| {
        spec.runs = 2;
        spec.waiting = 3;
    });
    let asks: Vec<_> = (0..8)
        .map(|_| {
            let code = fixture.code.clone();
            let execute = ExecuteRequest::new("for (;;);").with_budget(time(20));
            tokio::spawn(async move { code.ask_within(execute, HANG_GUARD).await })
        })
        .collect();
    let mut ends = Vec::new();
    for ask in asks {
        let outcome = ask.await.expect("no panic").expect("it answers");
        ends.push(outcome.expect_err("it does not end").name());
    }
    ends.sort_unstable();
    assert_eq!(
        ends,
        [
            "full", "full", "full", "time", "time", "time", "time", "time"
        ]
    );
}
