//! Functions that code is granted: its only access to anything outside its realm.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::json::parse_json;
use super::sandbox::{BoxFuture, CallOutcome, FunctionDecl};

type FunctionBody = dyn Fn(Vec<Value>) -> BoxFuture<'static, Result<Value, String>> + Send + Sync;

/// The functions that a run is granted; the code finds them in `fns`.
///
/// ```
/// use strowger_tools::code::GrantedFunctions;
///
/// let fns = GrantedFunctions::new()
///     .waiting("add", |values| {
///         let sum: i64 = values.iter().filter_map(|value| value.as_i64()).sum();
///         std::future::ready(Ok::<_, String>(sum))
///     })
///     .promise("later", |_| async { Err::<(), _>("not today".to_owned()) });
/// assert_eq!(format!("{fns:?}"), r#"["add", "later"]"#);
/// ```
#[derive(Clone, Default)]
pub struct GrantedFunctions(Vec<(FunctionDecl, Arc<FunctionBody>)>);

impl GrantedFunctions {
    /// Creates an empty set of functions.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a function that returns a promise, so the code can call others meanwhile.
    #[must_use]
    pub fn promise<F, T>(
        self,
        name: &str,
        work: impl Fn(Vec<Value>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<T, String>> + Send + 'static,
        T: Serialize,
    {
        self.add(name, false, work)
    }

    /// Adds a function that blocks the code until its answer arrives.
    #[must_use]
    pub fn waiting<F, T>(
        self,
        name: &str,
        work: impl Fn(Vec<Value>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<T, String>> + Send + 'static,
        T: Serialize,
    {
        self.add(name, true, work)
    }

    fn add<F, T>(
        mut self,
        name: &str,
        waits: bool,
        work: impl Fn(Vec<Value>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<T, String>> + Send + 'static,
        T: Serialize,
    {
        let name = FunctionDecl {
            name: name.to_owned(),
            waits,
        };
        let work = move |values| -> BoxFuture<'static, Result<Value, String>> {
            let working = work(values);
            Box::pin(async move {
                let value = working.await?;
                serde_json::to_value(value).map_err(|error| error.to_string())
            })
        };
        self.0.push((name, Arc::new(work)));
        self
    }

    /// The names of the functions, in order.
    pub(super) fn declarations(&self) -> Vec<FunctionDecl> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the first invalid name, if any: empty, longer than 64 bytes, used twice, or
    /// `__proto__`, which every object has.
    pub(crate) fn invalid_name(&self) -> Option<&str> {
        let is_valid = |name: &str| (1..=64).contains(&name.len()) && name != "__proto__";
        let mut names = self.0.iter().map(|(name, _)| &*name.name).enumerate();
        let twice = |at: usize, name: &str| self.0[..at].iter().any(|(n, _)| n.name == name);
        let invalid = names.find(|(at, name)| !is_valid(name) || twice(*at, name));
        invalid.map(|(_, name)| name)
    }

    /// Calls a function by its index.
    pub(super) fn call(&self, index: usize, arguments: &str) -> BoxFuture<'static, CallOutcome> {
        let refused = |why: String| -> BoxFuture<'static, CallOutcome> {
            Box::pin(std::future::ready(Err(why)))
        };
        let Some((_, work)) = self.0.get(index) else {
            return refused("no such function".to_owned());
        };
        let values = match parse_json(arguments) {
            Ok(values) => values,
            Err(why) => return refused(format!("the arguments cannot be passed: {why}")),
        };
        let working = work(values);
        Box::pin(async move { working.await.map(|value| value.to_string()) })
    }
}

impl fmt::Debug for GrantedFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| &name.name))
            .finish()
    }
}
