//! What can be called: methods by name, as values.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use serde_json::{Map, Value};
use strowger::{ActorSystem, Code, Fault, Path};

use crate::vital::Vitals;

/// What a method answers.
pub enum Answer {
    /// One value.
    Value(Value),
    /// A listing. Rows are made one by one, as the caller takes them.
    Rows(Box<dyn Iterator<Item = Value> + Send>),
    /// A listing whose rows come in their own time.
    Stream(Stream),
}

/// Rows that come in their own time: polled for the next one, ends with `None`.
pub type Stream = Box<dyn FnMut(&mut task::Context<'_>) -> Poll<Option<Value>> + Send>;

impl Answer {
    /// A listing of these rows.
    pub fn rows<I>(rows: I) -> Self
    where
        I: IntoIterator<Item = Value>,
        I::IntoIter: Send + 'static,
    {
        Self::Rows(Box::new(rows.into_iter()))
    }

    /// A listing of the rows that come when this function is polled, until it is ready with none.
    pub fn stream(
        poll: impl FnMut(&mut task::Context<'_>) -> Poll<Option<Value>> + Send + 'static,
    ) -> Self {
        Self::Stream(Box::new(poll))
    }
}

impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => write!(f, "Value({value})"),
            Self::Rows(_) => f.write_str("Rows(..)"),
            Self::Stream(_) => f.write_str("Stream(..)"),
        }
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<Answer, Fault>> + Send>>;
type Handler = dyn Fn(ActorSystem, Value) -> Answering + Send + Sync;
type Describing = Pin<Box<dyn Future<Output = Option<Value>> + Send>>;
type Describer = dyn Fn(Path) -> Describing + Send + Sync;
type Noter = dyn Fn(&Path) -> Option<Map<String, Value>> + Send + Sync;

/// The methods of a door.
///
/// A method runs as an actor of its own below its connection: its panic is the caller's fault
/// `failed` and nobody else's, and its deadline ends it.
///
/// ```
/// use serde_json::json;
/// use strowger_gateway::{Answer, Methods};
///
/// let methods = Methods::new()
///     .register("double", |params| async move {
///         let number = params["number"].as_i64().unwrap_or(0);
///         Ok(json!({ "number": number * 2 }))
///     })
///     .register("count", |_| async { Ok(Answer::rows((0..3).map(|n| json!(n)))) });
/// assert!(methods.names().any(|name| name == "double"));
/// ```
#[derive(Clone, Default)]
pub struct Methods {
    by_name: BTreeMap<Arc<str>, Arc<Handler>>,
    describers: Vec<Arc<Describer>>,
    notes: Notes,
    vitals: Vitals,
}

impl Methods {
    /// No methods yet; a door adds those of `control`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a method.
    ///
    /// # Panics
    /// When the name is taken.
    #[must_use]
    pub fn register<F, A>(
        self,
        name: &str,
        method: impl Fn(Value) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<A, Fault>> + Send + 'static,
        A: Into<Answer>,
    {
        self.with_system(name, move |_, params| method(params))
    }

    /// Lets `inspect` tell more of some actors: what the function returns for their path.
    #[must_use]
    pub fn describe<F>(mut self, describe: impl Fn(Path) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Option<Value>> + Send + 'static,
    {
        self.describers
            .push(Arc::new(move |path| Box::pin(describe(path))));
        self
    }

    /// Lets `ps`, `tree`, `top` and `inspect` say more of some actors: members that the function
    /// returns for their path. It is asked for each row, and so has to be quick.
    #[must_use]
    pub fn note(
        mut self,
        note: impl Fn(&Path) -> Option<Map<String, Value>> + Send + Sync + 'static,
    ) -> Self {
        self.notes.0.push(Arc::new(note));
        self
    }

    pub(crate) fn notes(&self) -> Notes {
        self.notes.clone()
    }

    /// Lets `top` show the limits of these vitals; without them, those of [`Vitals::new`].
    #[must_use]
    pub fn vitals(mut self, vitals: Vitals) -> Self {
        self.vitals = vitals;
        self
    }

    pub(crate) const fn vital(&self) -> &Vitals {
        &self.vitals
    }

    /// The names of all methods, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(AsRef::as_ref)
    }

    /// Adds a method that needs the system, which it must not keep up.
    pub(crate) fn with_system<F, A>(
        mut self,
        name: &str,
        method: impl Fn(ActorSystem, Value) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<A, Fault>> + Send + 'static,
        A: Into<Answer>,
    {
        let handler: Arc<Handler> = Arc::new(move |system, params| {
            let answer = method(system, params);
            Box::pin(async move { answer.await.map(Into::into) })
        });
        let before = self.by_name.insert(Arc::from(name), handler);
        assert!(before.is_none(), "the method {name} is registered twice");
        self
    }

    /// Calls a method.
    pub(crate) fn call(&self, name: &str, system: ActorSystem, params: Value) -> Answering {
        if let Some(handler) = self.by_name.get(name) {
            return handler(system, params);
        }
        let known: Vec<&str> = self.names().collect();
        let message = match known.as_slice() {
            [] => format!("no method {name:?}: there are none at this door"),
            known => format!("no method {name:?}; there are {}", known.join(", ")),
        };
        Box::pin(async move { Err(Fault::new(Code::UnknownTarget, message)) })
    }

    /// What there is to tell about an actor, from the first who knows.
    pub(crate) async fn described(&self, path: &Path) -> Option<Value> {
        for describe in &self.describers {
            if let Some(value) = describe(path.clone()).await {
                return Some(value);
            }
        }
        None
    }
}

/// What there is to say of single actors besides their figures.
#[derive(Clone, Default)]
pub(crate) struct Notes(Vec<Arc<Noter>>);

impl Notes {
    /// Adds to the figures of an actor what is known of it.
    pub(crate) fn add(&self, path: &Path, figures: &mut Value) {
        let Value::Object(into) = figures else {
            return;
        };
        for more in self.0.iter().filter_map(|note| note(path)) {
            into.extend(more);
        }
    }
}

impl fmt::Debug for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
