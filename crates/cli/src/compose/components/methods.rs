//! The methods of the control socket for components.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use strowger::{Fault, FaultCode};
use strowger_gateway::method::{MethodOutput, Methods};
use strowger_wasm::manifest::AccessChange;
use strowger_wasm::registry::WiderAccess;

use super::deployment::CallerGuard;
use super::stats::milliseconds;
use super::{Components, ReplaceError};
use crate::compose::verbs;
use crate::config::component::ComponentSection;
use crate::exit::{ExitStatus, Failure};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeployParams {
    manifest: PathBuf,
    name: Option<String>,
    #[serde(default)]
    expose: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpgradeParams {
    manifest: PathBuf,
    name: Option<String>,
    #[serde(default)]
    grant: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RollbackParams {
    name: String,
    #[serde(default)]
    grant: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RemoveParams {
    name: String,
}

/// A method to begin, and its time limit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BeginParams {
    method: String,
    #[serde(default)]
    params: Value,
    within_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WatchParams {
    id: u64,
    #[serde(default)]
    wait_ms: u64,
}

type MethodFuture = Pin<Box<dyn Future<Output = Result<Value, Fault>> + Send>>;

/// Returns a method that is cancelled when its caller goes away, as far as it can be.
fn cancelled_with_caller(
    method: &'static str,
    components: &Components,
) -> impl Fn(Value) -> MethodFuture + Send + Sync + 'static {
    let components = components.clone();
    move |params| {
        let begun = components.perform(method, params, None);
        Box::pin(async move { begun?.1.finished().await })
    }
}

/// Adds the methods for components.
pub(crate) fn register(methods: Methods, components: &Components) -> Methods {
    let [listed, begun, watched, cancelled, described, noted] =
        std::array::from_fn(|_| components.clone());
    methods
        .register(verbs::LIST, move |_| {
            let list = listed.0.registry.list();
            let rows: Vec<Value> = list.iter().map(|one| listed.row(one)).collect();
            async move { Ok(MethodOutput::rows(rows)) }
        })
        .register(
            verbs::DEPLOY,
            cancelled_with_caller("component.deploy", components),
        )
        .register(
            verbs::UPGRADE,
            cancelled_with_caller("component.upgrade", components),
        )
        .register(
            verbs::ROLLBACK,
            cancelled_with_caller("component.rollback", components),
        )
        .register(
            verbs::REMOVE,
            cancelled_with_caller("component.remove", components),
        )
        .register(verbs::BEGIN, move |params| {
            let components = begun.clone();
            async move {
                let BeginParams {
                    method,
                    params,
                    within_ms,
                } = read(params)?;
                let within = within_ms.map(Duration::from_millis);
                let (id, begun) = components.perform(&method, params, within)?;
                begun.detach();
                Ok(json!({ "id": id }))
            }
        })
        .register(verbs::WATCH, move |params| {
            let components = watched.clone();
            async move {
                let WatchParams { id, wait_ms } = read(params)?;
                let wait = Duration::from_millis(wait_ms);
                components.0.deployments.watch(id, wait).await
            }
        })
        .register(verbs::CANCEL, move |params| {
            let components = cancelled.clone();
            async move {
                let WatchParams { id, .. } = read(params)?;
                components.0.deployments.cancel(id)
            }
        })
        .annotate(move |path| {
            let info = noted.by_path(path)?.info;
            let noted = json!({
                "calls": info.calls,
                "faults": info.faults,
                "memory": info.memory,
                "cpu_ms": milliseconds(info.cpu),
                "heavy": info.heavy,
                "throttled": info.throttled,
            });
            Some(Map::from_iter([("component".to_owned(), noted)]))
        })
        .describe(move |path| {
            let row = described.by_path(&path).map(|one| described.row(&one));
            async move { Some(json!({ "component": row? })) }
        })
}

fn read<T: for<'de> Deserialize<'de>>(params: Value) -> Result<T, Fault> {
    let read = T::deserialize(params);
    read.map_err(|error| Fault::new(FaultCode::BadRequest, error.to_string()))
}

impl Components {
    /// Performs an operation on a component as a task of the node.
    fn perform(
        &self,
        method: &str,
        params: Value,
        within: Option<Duration>,
    ) -> Result<(u64, CallerGuard), Fault> {
        let components = self.clone();
        let work: fn(Self, Value) -> MethodFuture = match method {
            "component.deploy" => |components, params| Box::pin(components.handle_deploy(params)),
            "component.upgrade" => |components, params| Box::pin(components.handle_upgrade(params)),
            "component.rollback" => {
                |components, params| Box::pin(components.handle_rollback(params))
            }
            "component.remove" => |components, params| Box::pin(components.handle_remove(params)),
            method => {
                let text = format!("unknown deployment method {method:?}");
                return Err(Fault::new(FaultCode::BadRequest, text));
            }
        };
        self.0.deployments.begin(within, move |deployment| {
            work(Self(components.0, Some(deployment)), params)
        })
    }

    async fn handle_deploy(self, params: Value) -> Result<Value, Fault> {
        let DeployParams {
            manifest,
            name,
            expose,
        } = read(params)?;
        let mut section = ComponentSection::new(manifest);
        (section.name, section.expose) = (name, expose);
        self.row_or_fault(self.deploy(section).await)
    }

    async fn handle_upgrade(self, params: Value) -> Result<Value, Fault> {
        let to: UpgradeParams = read(params)?;
        let upgraded = self.upgrade(to.manifest, to.name, widening(to.grant));
        self.replacement_row_or_fault(upgraded.await)
    }

    async fn handle_rollback(self, params: Value) -> Result<Value, Fault> {
        let RollbackParams { name, grant } = read(params)?;
        self.set_starting().map_err(fault)?;
        let rolled_back = self.rollback(&name, widening(grant)).await;
        self.replacement_row_or_fault(rolled_back.map(|changes| (name, changes)))
    }

    async fn handle_remove(self, params: Value) -> Result<Value, Fault> {
        let RemoveParams { name } = read(params)?;
        self.set_starting().map_err(fault)?;
        self.remove(&name).await.map_err(fault)?;
        Ok(json!({ "name": name }))
    }

    /// Returns the row of a component after an operation, or the reason why it failed.
    fn row_or_fault(&self, done: Result<String, Failure>) -> Result<Value, Fault> {
        let name = done.map_err(fault)?;
        Ok(self.one(&name).map_or(Value::Null, |one| self.row(&one)))
    }

    /// Returns the row of a component after its version was replaced, with the differences in what
    /// it may do; or the reason why it was not replaced.
    fn replacement_row_or_fault(
        &self,
        done: Result<(String, Vec<AccessChange>), ReplaceError>,
    ) -> Result<Value, Fault> {
        match done {
            Ok((name, changes)) => {
                let mut row = self.row_or_fault(Ok(name))?;
                if let Value::Object(row) = &mut row {
                    row.insert("changes".to_owned(), rows(&changes));
                }
                Ok(row)
            }
            Err(ReplaceError { failure, changes }) if changes.is_empty() => Err(fault(failure)),
            Err(ReplaceError { failure, changes }) => {
                let fault = fault(failure);
                let details = fault.details.clone();
                let mut details = details.map_or_else(|| json!({}), |details| *details);
                details["changes"] = rows(&changes);
                Err(fault.with_details(details))
            }
        }
    }
}

const fn widening(grant: bool) -> WiderAccess {
    match grant {
        true => WiderAccess::Granted,
        false => WiderAccess::Refused,
    }
}

fn rows(changes: &[AccessChange]) -> Value {
    let rows = changes.iter().map(|change| {
        json!({
            "key": change.key,
            "change": change.kind.name(),
            "wider": change.wider,
            "before": change.before,
            "after": change.after,
        })
    });
    rows.collect()
}

/// Converts a failure to a fault, which `strowger component` converts back.
fn fault(failure: Failure) -> Fault {
    let (status, what, hint) = match failure {
        Failure::Reported { status, what, hint } => (status, what, hint),
        Failure::Unread => return Fault::new(FaultCode::Failed, "reply discarded"),
    };
    let code = match status {
        ExitStatus::Check => FaultCode::Refused,
        ExitStatus::Input => FaultCode::BadRequest,
        ExitStatus::Outside => FaultCode::Failed,
    };
    let fault = Fault::new(code, what);
    match hint {
        Some(hint) => fault.with_details(json!({ "hint": hint })),
        None => fault,
    }
}
