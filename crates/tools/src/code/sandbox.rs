//! Where code runs: what a code actor wants of a machine that it does not know.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use super::error::CodeError;
use super::message::Level;
use super::spec::CodeLimits;

/// A future behind a pointer.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A machine that runs code of others: it makes realms, which share nothing.
///
/// It owes the actor that its limits hold whatever the code does, that nothing of a run outlives
/// it, and that a run gives way to others while it computes.
pub trait Sandbox: fmt::Debug + Send + Sync + 'static {
    /// Makes a fresh realm with so many octets of memory.
    fn realm(&self, memory: usize) -> Boxed<'_, Result<Box<dyn CodeRealm>, CodeError>>;
}

/// A realm: globals, and what code left in them.
pub trait CodeRealm: fmt::Debug + Send {
    /// Does a step. What it comes to is JSON, or nothing. A run that is dropped ends.
    fn run<'a>(
        &'a mut self,
        step: CodeStep<'a>,
        functions: &'a [FunctionName],
        limits: &'a CodeLimits,
        host: Box<dyn CodeHost>,
    ) -> Boxed<'a, Result<Option<String>, CodeError>>;

    /// Whether a run ended in the middle, so that nothing can run here again.
    fn is_lost(&self) -> bool;

    /// The octets of its memory.
    fn memory(&self) -> usize;
}

/// What a realm is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeStep<'a> {
    /// Run JavaScript.
    Script {
        /// Its name in stack traces.
        name: &'a str,
        /// What it says.
        code: &'a str,
    },
    /// Call a global function.
    Call {
        /// Which.
        function: &'a str,
        /// With these: a list in JSON.
        arguments: &'a str,
    },
    /// Set a global variable.
    Set {
        /// Which.
        name: &'a str,
        /// To this, in JSON.
        value: &'a str,
    },
}

/// A function that a run is given, as the realm has to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionName {
    /// Its name in `fns`.
    pub name: String,
    /// Whether the code waits for its answer; else it gets a promise.
    pub waits: bool,
}

/// What a realm wants of whoever runs it.
pub trait CodeHost: Send + 'static {
    /// Takes a line that the run wrote.
    fn print(&mut self, level: Level, text: String);

    /// Calls a function that the run was given, by its place, with a list of values in JSON. It
    /// comes to a value in JSON, or to what went wrong.
    fn call(&mut self, function: usize, arguments: String) -> Boxed<'static, CallOutcome>;

    /// Whether anybody still wants the result.
    fn is_wanted(&self) -> bool;
}

/// What a function comes to: a value in JSON, or what went wrong.
pub type CallOutcome = Result<String, String>;
