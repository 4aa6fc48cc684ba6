//! Methods that clients can call by name.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use serde_json::{Map, Value};
use strowger::{ActorPath, ActorSystem, Fault, FaultCode};
use tokio::time::Instant;

use crate::access::{Caller, Operation, RowFilter};
use crate::health::HealthRegistry;

/// The output of a method.
pub enum MethodOutput {
    /// A single value.
    Value(Value),
    /// A listing whose rows are produced one by one, as the caller takes them.
    Rows(Box<dyn Iterator<Item = Value> + Send>),
    /// A listing whose rows arrive over time.
    Stream(RowStream),
}

/// A stream of rows: polled for the next row, and over when it returns `None`.
pub type RowStream = Box<dyn FnMut(&mut task::Context<'_>) -> Poll<Option<Value>> + Send>;

impl MethodOutput {
    /// Creates a listing of these rows.
    pub fn rows<I>(rows: I) -> Self
    where
        I: IntoIterator<Item = Value>,
        I::IntoIter: Send + 'static,
    {
        Self::Rows(Box::new(rows.into_iter()))
    }

    /// Creates a listing from a function that is polled for rows until it returns `None`.
    pub fn stream(
        poll: impl FnMut(&mut task::Context<'_>) -> Poll<Option<Value>> + Send + 'static,
    ) -> Self {
        Self::Stream(Box::new(poll))
    }
}

impl From<Value> for MethodOutput {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl fmt::Debug for MethodOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => write!(f, "Value({value})"),
            Self::Rows(_) => f.write_str("Rows(..)"),
            Self::Stream(_) => f.write_str("Stream(..)"),
        }
    }
}

type MethodFuture = Pin<Box<dyn Future<Output = Result<MethodOutput, Fault>> + Send>>;
type MethodHandler = dyn Fn(MethodRequest) -> MethodFuture + Send + Sync;
type DescribeFuture = Pin<Box<dyn Future<Output = Option<Value>> + Send>>;
type DescribeFn = dyn Fn(ActorPath) -> DescribeFuture + Send + Sync;
type AnnotateFn = dyn Fn(&ActorPath) -> Option<Map<String, Value>> + Send + Sync;

/// A call of a method.
pub(crate) struct MethodRequest {
    pub(crate) system: ActorSystem,
    pub(crate) caller: Caller,
    pub(crate) params: Value,
}

/// A method: its description and its implementation.
#[derive(Clone)]
struct Method {
    operation: Operation,
    handler: Arc<MethodHandler>,
}

/// The methods of an endpoint.
///
/// Each method has an [`Operation`], which decides who may call it.
///
/// A method runs as an actor of its own below its connection: if it panics, only its caller
/// notices, by the fault `failed`; if its deadline passes, it is ended.
///
/// ```
/// use serde_json::json;
/// use strowger_gateway::access::Operation;
/// use strowger_gateway::method::{MethodOutput, Methods};
///
/// let methods = Methods::new()
///     .register(Operation::reads("double"), |params| async move {
///         let number = params["number"].as_i64().unwrap_or(0);
///         Ok(json!({ "number": number * 2 }))
///     })
///     .register(Operation::reads("count"), |_| async {
///         Ok(MethodOutput::rows((0..3).map(|n| json!(n))))
///     });
/// assert!(methods.names().any(|name| name == "double"));
/// ```
#[derive(Clone, Default)]
pub struct Methods {
    by_name: BTreeMap<&'static str, Method>,
    describers: Vec<Arc<DescribeFn>>,
    annotations: Annotations,
    health: HealthRegistry,
}

impl Methods {
    /// Creates an empty set; an endpoint adds the control methods.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a method.
    ///
    /// # Panics
    /// Panics if the name is taken.
    #[must_use]
    pub fn register<F, A>(
        self,
        operation: Operation,
        method: impl Fn(Value) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<A, Fault>> + Send + 'static,
        A: Into<MethodOutput>,
    {
        self.add(operation, move |request| method(request.params))
    }

    /// Adds a method that needs to know its caller, for example to forward calls or to report the
    /// caller's permissions.
    ///
    /// # Panics
    /// Panics if the name is taken.
    #[must_use]
    pub fn register_for_caller<F, A>(
        self,
        operation: Operation,
        method: impl Fn(Caller, Value) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<A, Fault>> + Send + 'static,
        A: Into<MethodOutput>,
    {
        self.add(operation, move |request| {
            method(request.caller, request.params)
        })
    }

    /// Adds details about some actors to `inspect`: the value that the function returns for their
    /// path.
    #[must_use]
    pub fn describe<F>(mut self, describe: impl Fn(ActorPath) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Option<Value>> + Send + 'static,
    {
        self.describers
            .push(Arc::new(move |path| Box::pin(describe(path))));
        self
    }

    /// Adds members to the entries for some actors in `ps`, `tree`, `top` and `inspect`: those that
    /// the function returns for their path. The function is called for each row, so it must be
    /// fast.
    #[must_use]
    pub fn annotate(
        mut self,
        annotate: impl Fn(&ActorPath) -> Option<Map<String, Value>> + Send + Sync + 'static,
    ) -> Self {
        self.annotations.0.push(Arc::new(annotate));
        self
    }

    pub(crate) fn annotations(&self) -> Annotations {
        self.annotations.clone()
    }

    /// Sets the limits that `top` shows; the default is [`HealthRegistry::new`].
    #[must_use]
    pub fn with_health(mut self, health: HealthRegistry) -> Self {
        self.health = health;
        self
    }

    pub(crate) const fn health(&self) -> &HealthRegistry {
        &self.health
    }

    /// Returns the names of all methods, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().copied()
    }

    /// Returns the operations of all methods, in the order of their names.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.by_name.values().map(|method| &method.operation)
    }

    /// Adds a method that needs the system. The method must not keep the system alive.
    pub(crate) fn add<F, A>(
        mut self,
        operation: Operation,
        method: impl Fn(MethodRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<A, Fault>> + Send + 'static,
        A: Into<MethodOutput>,
    {
        let handler: Arc<MethodHandler> = Arc::new(move |request| {
            let answer = method(request);
            Box::pin(async move { answer.await.map(Into::into) })
        });
        let name = operation.name();
        let before = self.by_name.insert(name, Method { operation, handler });
        assert!(before.is_none(), "the method {name} is registered twice");
        self
    }

    /// Calls a method if its caller may. Returns a filter with the answer if the caller may see
    /// only some of the rows. No code of the method runs before the decision.
    pub(crate) async fn call(
        &self,
        name: &str,
        request: MethodRequest,
    ) -> Result<(MethodOutput, Option<RowFilter>), Fault> {
        let Some(Method { operation, handler }) = self.by_name.get(name) else {
            return Err(self.unknown(name));
        };
        let (caller, address) = (request.caller.clone(), operation.address(&request.params));
        let mut record = caller.authorize(operation, address.as_ref(), Instant::now())?;
        let answer = handler(request).await;
        if let Some(record) = &mut record {
            record.close(answer.as_ref().map(|_| ()).map_err(|fault| fault.code));
        }
        let answer =
            answer.map_err(|fault| without_neighbours(fault, &caller, address.as_ref()))?;
        filtered(answer, RowFilter::for_caller(&caller, operation))
    }

    fn unknown(&self, name: &str) -> Fault {
        let known: Vec<&str> = self.names().collect();
        let message = match known.as_slice() {
            [] => format!("unknown method {name:?}: this endpoint has no methods"),
            known => format!(
                "unknown method {name:?}; expected one of {}",
                known.join(", ")
            ),
        };
        Fault::new(FaultCode::UnknownTarget, message)
    }

    /// Returns the details about an actor, from the first describer that has some.
    pub(crate) async fn description(&self, path: &ActorPath) -> Option<Value> {
        for describe in &self.describers {
            if let Some(value) = describe(path.clone()).await {
                return Some(value);
            }
        }
        None
    }
}

/// Hides details of a fault from a caller with limited reach: an unknown target lists its
/// neighbours, which may be out of reach.
fn without_neighbours(fault: Fault, caller: &Caller, address: Option<&ActorPath>) -> Fault {
    if fault.code != FaultCode::UnknownTarget || !caller.has_address_limits() {
        return fault;
    }
    let message = match address {
        Some(address) => format!("no actor is exposed at {address}"),
        None => "no actor is exposed there".to_owned(),
    };
    Fault::new(FaultCode::UnknownTarget, message)
}

/// Filters the rows of a complete value; rows of a listing are filtered as they arrive.
fn filtered(
    answer: MethodOutput,
    filter: Option<RowFilter>,
) -> Result<(MethodOutput, Option<RowFilter>), Fault> {
    match (answer, filter) {
        (MethodOutput::Value(mut value), Some(mut filter)) => {
            if let Some(rows) = value["rows"].as_array_mut() {
                rows.retain(|row| filter.shows(row));
            }
            filter.finish()?;
            Ok((MethodOutput::Value(value), None))
        }
        (answer, filter) => Ok((answer, filter)),
    }
}

/// Functions that add members to the entries of single actors.
#[derive(Clone, Default)]
pub(crate) struct Annotations(Vec<Arc<AnnotateFn>>);

impl Annotations {
    /// Adds the members for an actor to its stats.
    pub(crate) fn add(&self, path: &ActorPath, stats: &mut Value) {
        let Value::Object(into) = stats else {
            return;
        };
        for more in self.0.iter().filter_map(|annotate| annotate(path)) {
            into.extend(more);
        }
    }
}

impl fmt::Debug for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
