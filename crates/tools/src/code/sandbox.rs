//! The interface between a code actor and the engine that runs its code.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use super::error::CodeError;
use super::message::ConsoleLevel;
use super::spec::CodeLimits;

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An engine that runs untrusted code in isolated realms.
///
/// An implementation must enforce its limits against hostile code, leave nothing of a run behind
/// once the run has ended, and yield to other tasks while a run computes.
pub trait Sandbox: fmt::Debug + Send + Sync + 'static {
    /// Creates a fresh realm with at most `memory` bytes of memory.
    fn realm(&self, memory: usize) -> BoxFuture<'_, Result<Box<dyn CodeRealm>, CodeError>>;
}

/// A realm: global variables and the state that code left in them.
pub trait CodeRealm: fmt::Debug + Send {
    /// Performs a step. The result is JSON, or `None`. Dropping the future cancels the step.
    fn run<'a>(
        &'a mut self,
        step: CodeStep<'a>,
        functions: &'a [FunctionDecl],
        limits: &'a CodeLimits,
        host: Box<dyn CodeHost>,
    ) -> BoxFuture<'a, Result<Option<String>, CodeError>>;

    /// Returns `true` if a run was interrupted, so that the realm cannot be used again.
    fn is_lost(&self) -> bool;

    /// Memory of the realm, in bytes.
    fn memory(&self) -> usize;
}

/// A step to perform in a realm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeStep<'a> {
    /// Run JavaScript.
    Script {
        /// The name of the script in stack traces.
        name: &'a str,
        /// The source.
        code: &'a str,
    },
    /// Call a global function.
    Call {
        /// The name of the function.
        function: &'a str,
        /// The arguments, as a JSON array.
        arguments: &'a str,
    },
    /// Set a global variable.
    Set {
        /// The name of the variable.
        name: &'a str,
        /// The value, in JSON.
        value: &'a str,
    },
}

/// A function that a run is granted, as described to its realm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionDecl {
    /// The name of the function in `fns`.
    pub name: String,
    /// `true` if a call blocks the code until its answer arrives; else it returns a promise.
    pub waits: bool,
}

/// The services that a realm needs from its host.
pub trait CodeHost: Send + 'static {
    /// Takes a line of output.
    fn print(&mut self, level: ConsoleLevel, text: String);

    /// Calls the granted function at this index with a JSON array of arguments. The result is a
    /// value in JSON, or an error message.
    fn call(&mut self, function: usize, arguments: String) -> BoxFuture<'static, CallOutcome>;

    /// Returns `true` while the result is still wanted.
    fn is_wanted(&self) -> bool;
}

/// The outcome of a function call: a value in JSON, or an error message.
pub type CallOutcome = Result<String, String>;
