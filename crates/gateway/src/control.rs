//! The control methods: information about a node's own actors, and actions on them.
//!
//! | method | parameters | answer |
//! |---|---|---|
//! | `ping` | none | `name`, `version`, `pid`, `actors` |
//! | `methods` | none | rows: `name`, `right`, `writes`, `roles` |
//! | `whoami` | none | `token`, `role`, `door`, `addresses`, `verbs` of the caller |
//! | `ps` | `path`, `sort`, `limit`, all optional | rows: the stats of actors |
//! | `tree` | `path`, `limit`, optional | rows: parents before children, at most `limit` of each |
//! | `inspect` | `path` | the stats of one actor, and `details` if there are any |
//! | `top` | `sort`, `limit`, `path`, optional | `totals, limits, late_asks`, `rows`: the busiest |
//! | `trace` | `path`, `max`, `within_ms`, the last two optional | rows, the last of them `end` |
//! | `exposed` | `address`, optional | rows: `address`, `messages`: each `name` and `pattern` |
//! | `kill` | `path`, `panic` optional | `path`, `exit` and `restarted` once it has ended |
//!
//! The stats are `path, id, kind, state, depth, capacity, high_water, dropped, handled, busy_us,
//! waited_us, memory, restarts, last_exit, children`. `sort` is the name of a number among them;
//! the greatest comes first. For `top` it is `depth`, `rate`, `busy`, `memory` or `restarts`, and
//! its rows also have `rate` (messages per second) and `load` (the share of a thread). `late_asks`
//! are the oldest of the asks that have been waiting for a second or longer: `asker` (null for a
//! task), `callee` and `age_ms`; `totals.late_asks` is their number. Applications may add members
//! for single actors. The paths of `top` and `trace` are patterns:
//! [`PathPattern`](strowger::PathPattern).

mod watch;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use strowger::{
    ActorInfo, ActorLifecycle, ActorPath, ActorSystem, Address, AnyRef, Fault, FaultCode,
};

use crate::access::{Operation, Resource, Role};
use crate::method::{Annotations, MethodOutput, Methods};

/// Interval at which `kill` checks if the actor has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Adds the control methods.
pub(crate) fn with_control_methods(methods: Methods) -> Methods {
    let described = Arc::new(methods.clone());
    let health = methods.health().clone();
    let [of_ps, of_tree, of_top] = std::array::from_fn(|_| methods.annotations());
    let methods = methods
        .add(PING, |request| async move { Ok(ping(&request.system)) })
        .add(PS, move |request| {
            let annotations = of_ps.clone();
            async move { ps(&request.system, &request.params, annotations) }
        })
        .add(TREE, move |request| {
            let annotations = of_tree.clone();
            async move { tree(&request.system, &request.params, annotations) }
        })
        .add(INSPECT, move |request| {
            let described = Arc::clone(&described);
            async move { inspect(&request.system, &described, &request.params).await }
        })
        .add(TOP, move |request| {
            let (health, annotations) = (health.clone(), of_top.clone());
            async move { watch::top(&request.system, &health, &annotations, &request.params).await }
        })
        .add(TRACE, |request| async move {
            watch::trace(&request.system, &request.params).await
        })
        .add(EXPOSED, |request| async move {
            exposed(&request.system, &request.params)
        })
        .add(KILL, |request| async move {
            kill(&request.system, &request.params).await
        });
    let methods =
        methods.register_for_caller(WHOAMI, |caller, _| async move { Ok(caller.to_json()) });
    let mut operations: Vec<Operation> = methods.operations().copied().collect();
    operations.push(METHODS);
    operations.sort_by_key(Operation::name);
    methods.register(METHODS, move |_| {
        let rows: Vec<Value> = operations.iter().map(operation_row).collect();
        async move { Ok(MethodOutput::rows(rows)) }
    })
}

/// Describes an operation to a caller.
fn operation_row(operation: &Operation) -> Value {
    let permission = operation.permission();
    let roles: Vec<&str> = permission.roles().map(Role::name).collect();
    json!({
        "name": operation.name(),
        "right": permission.name(),
        "writes": permission.is_write(),
        "roles": roles,
    })
}

const PING: Operation = Operation::basic("ping");
const METHODS: Operation = Operation::basic("methods");
const WHOAMI: Operation = Operation::basic("whoami");
const PS: Operation = Operation::reads("ps").with_resource(Resource::PerRow("path", ""));
const TREE: Operation = Operation::reads("tree").with_resource(Resource::PerRow("path", ""));
const INSPECT: Operation =
    Operation::reads("inspect").with_resource(Resource::AddressParam("path"));
const TOP: Operation = Operation::reads("top").with_resource(Resource::PerRow("path", ""));
const TRACE: Operation = Operation::reads("trace").with_resource(Resource::PerRow("path", ""));
const EXPOSED: Operation =
    Operation::reads("exposed").with_resource(Resource::PerRow("address", ""));
const KILL: Operation = Operation::manages("kill").with_resource(Resource::AddressParam("path"));

/// The operations of the control methods.
const CONTROL_OPERATIONS: [Operation; 10] = [
    PING, METHODS, WHOAMI, PS, TREE, INSPECT, TOP, TRACE, EXPOSED, KILL,
];

impl Operation {
    /// Returns the operations of the control methods, which every node has.
    #[must_use]
    pub const fn control_methods() -> &'static [Self] {
        &CONTROL_OPERATIONS
    }
}

fn ping(system: &ActorSystem) -> Value {
    json!({
        "name": system.name(),
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "actors": system.actors().len(),
    })
}

fn tree(
    system: &ActorSystem,
    params: &Value,
    annotations: Annotations,
) -> Result<MethodOutput, Fault> {
    let params = Params::parse(params, &["path", "limit"])?;
    let mut actors = subtree(system, &params)?;
    if let Some(limit) = params.number("limit")? {
        prune(&mut actors, limit);
    }
    Ok(rows(actors, annotations))
}

/// Lists the stats of actors, with the members added by notes.
fn rows(actors: Vec<ActorInfo>, annotations: Annotations) -> MethodOutput {
    let row = move |info: ActorInfo| annotated_stats(&info, &annotations);
    MethodOutput::rows(actors.into_iter().map(row))
}

fn annotated_stats(info: &ActorInfo, annotations: &Annotations) -> Value {
    let mut row = stats(info);
    annotations.add(&info.path, &mut row);
    row
}

/// Keeps at most `limit` children of each actor, with everything below them.
fn prune(actors: &mut Vec<ActorInfo>, limit: u64) {
    let mut children: HashMap<String, u64> = HashMap::new();
    let mut hidden: Option<String> = None;
    actors.retain(|info| {
        let path = info.path.as_str();
        // Actors are listed in depth-first order, so descendants follow their ancestor directly.
        if hidden.as_ref().is_some_and(|above| path.starts_with(above)) {
            return false;
        }
        hidden = None;
        let Some((parent, _)) = path
            .rsplit_once('/')
            .filter(|(parent, _)| !parent.is_empty())
        else {
            return true;
        };
        let count = children.entry(parent.to_owned()).or_default();
        *count += 1;
        let kept = *count <= limit;
        if !kept {
            hidden = Some(format!("{path}/"));
        }
        kept
    });
}

fn ps(
    system: &ActorSystem,
    params: &Value,
    annotations: Annotations,
) -> Result<MethodOutput, Fault> {
    let params = Params::parse(params, &["path", "sort", "limit"])?;
    let mut actors = subtree(system, &params)?;
    if let Some(key) = params.text("sort")? {
        let number = sort_key(key)?;
        actors.sort_by_key(|info| Reverse(number(info)));
    }
    if let Some(limit) = params.number("limit")? {
        actors.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    Ok(rows(actors, annotations))
}

fn exposed(system: &ActorSystem, params: &Value) -> Result<MethodOutput, Fault> {
    let params = Params::parse(params, &["address"])?;
    let mut exposed = system.exports();
    if let Some(wanted) = params.text("address")? {
        let wanted: Address = wanted.parse()?;
        exposed.retain(|exposed| exposed.covers(&wanted));
        // An actor that is exposed by itself is preferred to one that is found by its key.
        exposed.sort_by_key(|exposed| exposed.is_keyed);
        exposed.truncate(1);
        for found in &mut exposed {
            (found.address, found.is_keyed) = (wanted.clone(), false);
        }
        if exposed.is_empty() {
            let text = format!("no actor is exposed at {wanted}");
            return Err(Fault::new(FaultCode::UnknownTarget, text));
        }
    }
    Ok(MethodOutput::rows(exposed.into_iter().map(|exposed| {
        let messages = exposed.messages.iter();
        let messages = messages
            .map(|(name, pattern)| json!({ "name": &**name, "pattern": pattern.to_string() }));
        let messages: Vec<Value> = messages.collect();
        let mut row = json!({ "address": exposed.address.to_string(), "messages": messages });
        if exposed.is_keyed {
            row["keyed"] = true.into();
        }
        row
    })))
}

async fn inspect(system: &ActorSystem, methods: &Methods, params: &Value) -> Result<Value, Fault> {
    let actor = find_actor(system, &Params::parse(params, &["path"])?)?;
    let mut value = annotated_stats(&actor.info(), &methods.annotations());
    if let Some(details) = methods.description(&actor.path()).await {
        value["details"] = details;
    }
    Ok(value)
}

async fn kill(system: &ActorSystem, params: &Value) -> Result<Value, Fault> {
    let params = Params::parse(params, &["path", "panic"])?;
    let actor = find_actor(system, &params)?;
    let (path, before) = (actor.path(), actor.info().restarts);
    if params.flag("panic")? {
        actor.inject_panic("requested through the control socket");
    } else {
        actor.kill();
    }
    // Wait for the new incarnation, so that a caller that looks next does not see the hooks in
    // between. Stats are polled because events are lossy. Hooks that do not end are bounded by the
    // deadline of the call.
    let info = loop {
        let info = actor.info();
        let restarted = info.restarts > before && info.state == ActorLifecycle::Running;
        if restarted || info.state == ActorLifecycle::Ended {
            break info;
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    };
    let exit = info.last_exit.map(|exit| exit.to_string());
    let restarted = info.state == ActorLifecycle::Running;
    Ok(json!({ "path": path.as_str(), "exit": exit, "restarted": restarted }))
}

/// The stats of an actor as a JSON object.
fn stats(info: &ActorInfo) -> Value {
    json!({
        "path": info.path.as_str(),
        "id": format!("{}.{}", info.id.slot, info.id.generation),
        "kind": info.type_name,
        "state": info.state.to_string(),
        "depth": info.mailbox_len,
        "capacity": info.capacity,
        "high_water": info.high_water,
        "dropped": info.dropped,
        "handled": info.handled,
        "busy_us": micros(info.busy_time),
        "waited_us": micros(info.queue_time),
        "memory": info.memory,
        "restarts": info.restarts,
        "last_exit": info.last_exit.as_ref().map(ToString::to_string),
        "children": info.children,
    })
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

fn sort_key(key: &str) -> Result<fn(&ActorInfo) -> u64, Fault> {
    Ok(match key {
        "depth" => |info| info.mailbox_len as u64,
        "high_water" => |info| info.high_water as u64,
        "dropped" => |info| info.dropped,
        "handled" => |info| info.handled,
        "busy_us" => |info| micros(info.busy_time),
        "waited_us" => |info| micros(info.queue_time),
        "memory" => |info| info.memory as u64,
        "restarts" => |info| info.restarts.into(),
        "children" => |info| info.children as u64,
        _ => {
            let text = format!(
                "cannot sort by {key:?}; expected depth, high_water, dropped, handled, busy_us, \
                 waited_us, memory, restarts or children"
            );
            return Err(Fault::new(FaultCode::BadRequest, text));
        }
    })
}

/// Returns the actor at `path`, which must exist.
fn find_actor(system: &ActorSystem, params: &Params<'_>) -> Result<AnyRef, Fault> {
    let Some(path) = params.text("path")? else {
        let text = "missing parameter \"path\", such as \"/gateway/control\"";
        return Err(Fault::new(FaultCode::BadRequest, text));
    };
    let found = system.find(path);
    found.ok_or_else(|| Fault::new(FaultCode::UnknownTarget, not_found_text(system, path)))
}

/// Returns the actor at `path` and its descendants, or all actors.
fn subtree(system: &ActorSystem, params: &Params<'_>) -> Result<Vec<ActorInfo>, Fault> {
    let mut actors = system.actors();
    let path = params.text("path")?.map(ActorPath::from);
    let Some(path) = path.filter(|path| *path != ActorPath::root()) else {
        return Ok(actors);
    };
    let inside = format!("{path}/");
    actors.retain(|info| info.path == path || info.path.as_str().starts_with(&inside));
    if actors.is_empty() {
        let text = not_found_text(system, path.as_str());
        return Err(Fault::new(FaultCode::UnknownTarget, text));
    }
    Ok(actors)
}

/// Describes which part of a path exists, and what is below it.
fn not_found_text(system: &ActorSystem, path: &str) -> String {
    let path = ActorPath::from(path);
    let mut reached = String::new();
    for key in path.keys() {
        let next = format!("{reached}/{key}");
        if system.find(next.as_str()).is_none() {
            break;
        }
        reached = next;
    }
    let inside = format!("{reached}/");
    let actors = system.actors();
    let keys = actors.iter().filter_map(|info| {
        let key = info.path.as_str().strip_prefix(&inside)?;
        (!key.contains('/')).then_some(key)
    });
    const SHOWN: usize = 8;
    let keys: Vec<&str> = keys.take(SHOWN + 1).collect();
    let more = if keys.len() > SHOWN { ", ..." } else { "" };
    let shown = keys[..keys.len().min(SHOWN)].join(", ");
    match shown.as_str() {
        "" => format!("no actor at {path}; nothing is below {inside}"),
        shown => format!("no actor at {path}; below {inside} there are {shown}{more}"),
    }
}

/// The parameters of a method: an object with known keys, or nothing.
struct Params<'a>(Option<&'a Map<String, Value>>);

impl<'a> Params<'a> {
    fn parse(value: &'a Value, known: &[&str]) -> Result<Self, Fault> {
        let wrong = |text| Err(Fault::new(FaultCode::BadRequest, text));
        let object = match value {
            Value::Null => return Ok(Self(None)),
            Value::Object(object) => object,
            _ => return wrong("parameters must be an object".to_owned()),
        };
        match object.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => wrong(format!(
                "unknown parameter {key:?}; expected one of {}",
                known.join(", ")
            )),
            None => Ok(Self(Some(object))),
        }
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        let value = self.0?.get(key)?;
        (!value.is_null()).then_some(value)
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, Fault> {
        self.typed(key, Value::as_str, "text")
    }

    fn number(&self, key: &str) -> Result<Option<u64>, Fault> {
        self.typed(key, Value::as_u64, "a number")
    }

    fn flag(&self, key: &str) -> Result<bool, Fault> {
        let flag = self.typed(key, Value::as_bool, "true or false")?;
        Ok(flag.unwrap_or(false))
    }

    fn typed<T>(
        &self,
        key: &str,
        read: impl Fn(&'a Value) -> Option<T>,
        what: &str,
    ) -> Result<Option<T>, Fault> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match read(value) {
            Some(value) => Ok(Some(value)),
            None => {
                let text = format!("parameter {key:?} must be {what}");
                Err(Fault::new(FaultCode::BadRequest, text))
            }
        }
    }
}
