//! Code that tries to reach the outside, or the code that runs after it. Each attack has a twin
//! without the guard - a function is given, a realm is shared, the clock is granted - against which
//! the attack succeeds.

use serde_json::{Value, json};
use strowger_tools::code::{CodeError, CodeLimit, ExecuteRequest, GrantedFunctions};

use super::CodeFixture;

/// The globals of every realm; there are no others.
const GLOBALS: &str = "AggregateError Array ArrayBuffer AsyncDisposableStack Atomics BigInt \
    BigInt64Array BigUint64Array Boolean DOMException DataView Date DisposableStack Error \
    EvalError FinalizationRegistry Float16Array Float32Array Float64Array Function Infinity \
    Int16Array Int32Array Int8Array InternalError Iterator JSON Map Math NaN Number Object Promise \
    Proxy QueuingStrategy RangeError ReferenceError Reflect RegExp Set SharedArrayBuffer String \
    SuppressedError Symbol SyntaxError TypeError URIError Uint16Array Uint32Array Uint8Array \
    Uint8ClampedArray WeakMap WeakRef WeakSet atob btoa console decodeURI decodeURIComponent \
    encodeURI encodeURIComponent escape eval fns globalThis isFinite isNaN parseFloat parseInt \
    performance queueMicrotask undefined unescape";

/// A function that only the code it is given to may reach.
fn secret_function() -> GrantedFunctions {
    GrantedFunctions::new().waiting("secret", |_| async { Ok::<_, String>("key") })
}

#[tokio::test]
async fn constructors_do_not_lead_outside() {
    let fixture = CodeFixture::open(|_| {});
    let attack = "const all = ({}).constructor.constructor('return this')();\
                  [typeof all.process, typeof all.require, typeof all.std, typeof all.os, \
                  typeof all.fns.secret]";
    assert_eq!(fixture.js(attack).await, json!(vec!["undefined"; 5]));
    let found = "({}).constructor.constructor('return this')().fns.secret()";
    let given = ExecuteRequest::new(found).with_functions(secret_function());
    assert_eq!(fixture.value(given).await, json!("key"));
    let failed = fixture.run(ExecuteRequest::new(found)).await;
    assert!(matches!(failed, Err(CodeError::Thrown(_))), "{failed:?}");
}

#[tokio::test]
async fn global_object_has_only_known_names() {
    let fixture = CodeFixture::open(|_| {});
    let attack = "const all = (function () { return this })(); \
                  Object.getOwnPropertyNames(all).filter(n => n !== 'all').sort()";
    let names = fixture.js(attack).await;
    let names = names
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str);
    let known: Vec<_> = GLOBALS.split_whitespace().collect();
    let more: Vec<_> = names.filter(|name| !known.contains(name)).collect();
    assert_eq!(more, [""; 0], "globals that nobody meant to be there");
    let given = ExecuteRequest::new("this.fns.secret()").with_functions(secret_function());
    assert_eq!(fixture.value(given).await, json!("key"));
}

#[tokio::test]
async fn imports_are_refused() {
    let fixture = CodeFixture::open(|_| {});
    for module in [
        "fs",
        "std",
        "os",
        "./code",
        "node:fs",
        "data:text/javascript,1",
    ] {
        let attack = format!("await import({module:?})");
        let failed = fixture.run(ExecuteRequest::new(attack)).await;
        assert!(
            matches!(failed, Err(CodeError::Thrown(_))),
            "{module}: {failed:?}"
        );
    }
    let given = GrantedFunctions::new().promise("load", |_| async { Ok::<_, String>("a module") });
    let loaded = ExecuteRequest::new("await fns.load('fs')").with_functions(given);
    assert_eq!(fixture.value(loaded).await, json!("a module"));
}

#[tokio::test]
async fn changed_prototypes_do_not_outlive_the_run() {
    let fixture = CodeFixture::open(|_| {});
    let (attack, look) = (
        "Object.prototype.polluted = 1; 0",
        "({}).polluted ?? 'clean'",
    );
    fixture.js(attack).await;
    assert_eq!(fixture.js(look).await, json!("clean"));
    fixture
        .value(ExecuteRequest::new(attack).in_realm("shared"))
        .await;
    assert_eq!(
        fixture
            .value(ExecuteRequest::new(look).in_realm("shared"))
            .await,
        json!(1)
    );
}

#[tokio::test]
async fn changed_builtins_do_not_outlive_the_run() {
    let fixture = CodeFixture::open(|_| {});
    let attack = "JSON.stringify = () => 'forged'; Array.prototype.map = () => ['forged']; 0";
    let look = "[JSON.stringify({}), [1].map(x => x + 1)[0]]";
    fixture.js(attack).await;
    assert_eq!(fixture.js(look).await, json!(["{}", 2]));
    fixture
        .value(ExecuteRequest::new(attack).in_realm("shared"))
        .await;
    assert_eq!(
        fixture
            .value(ExecuteRequest::new(look).in_realm("shared"))
            .await,
        json!(["forged", "forged"])
    );
}

#[tokio::test]
async fn results_cannot_be_forged() {
    let fixture = CodeFixture::open(|_| {});
    // The engine writes the value of a run, even if the code has replaced its functions.
    let attack = "JSON.stringify = () => '\"forged\"'; Object.prototype.toJSON = () => 'forged'; \
                  Promise.prototype.then = () => 'forged'; 1 + 1";
    assert_eq!(fixture.js(attack).await, json!(2));
    assert_eq!(fixture.js("({a: 1})").await, json!({"a": 1}));
    // In a shared realm, the replaced functions affect the next run.
    let shared = |code: &str| ExecuteRequest::new(code).in_realm("shared");
    fixture
        .value(shared("Object.prototype.toJSON = () => 'forged'; 0"))
        .await;
    assert_eq!(fixture.value(shared("({a: 1})")).await, json!("forged"));
    // An error that looks like a limit is still an error that the code threw.
    let stack = "throw new RangeError('Maximum call stack size exceeded')";
    let failed = fixture.run(ExecuteRequest::new(stack)).await;
    assert!(matches!(failed, Err(CodeError::Thrown(_))), "{failed:?}");
    let failed = fixture
        .run(ExecuteRequest::new("(function f() { f() })()"))
        .await;
    assert_eq!(
        failed.expect_err("it is deep").limit(),
        Some(CodeLimit::Stack)
    );
    // Lines remain lines.
    let lines = fixture
        .run(ExecuteRequest::new("console.log('{\"ended\": 1}')"))
        .await
        .expect("it runs");
    assert_eq!((lines.value, lines.output.len()), (json!(null), 1));
}

#[tokio::test]
async fn environment_does_not_leak() {
    let fixture = CodeFixture::open(|_| {});
    let attack = "[Date.now(), new Date().getFullYear(), performance.now() < 1e6, \
                  Math.random(), Math.random()]";
    let (one, other) = (fixture.js(attack).await, fixture.js(attack).await);
    assert_eq!(one, other, "nothing differs from run to run");
    assert_eq!((&one[0], &one[1]), (&json!(0), &json!(1970)));
    let granted = CodeFixture::open(|spec| {
        spec.limits.clock = true;
        spec.limits.random = true;
    });
    let (one, other) = (granted.js(attack).await, granted.js(attack).await);
    assert_ne!(one[3], other[3]);
    assert!(one[0].as_f64().expect("a number") > 1.7e12, "{one}");
}
