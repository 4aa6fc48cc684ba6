//! What the control socket answers about components.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use strowger::{Code, Fault};
use strowger_gateway::{Answer, Methods};

use super::Components;
use super::figures::milliseconds;
use crate::config::ComponentSection;
use crate::exit::{Failure, Status};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deploy {
    manifest: PathBuf,
    name: Option<String>,
    #[serde(default)]
    expose: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Upgrade {
    manifest: PathBuf,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Name {
    name: String,
}

/// Adds the methods of components.
pub(crate) fn register(methods: Methods, components: &Components) -> Methods {
    let [
        listed,
        deployed,
        upgraded,
        rolled,
        removed,
        described,
        noted,
    ] = std::array::from_fn(|_| components.clone());
    methods
        .register("component.list", move |_| {
            let list = listed.0.registry.list();
            let rows: Vec<Value> = list.iter().map(|one| listed.row(one)).collect();
            async move { Ok(Answer::rows(rows)) }
        })
        .register("component.deploy", move |params| {
            let components = deployed.clone();
            async move {
                let Deploy {
                    manifest,
                    name,
                    expose,
                } = read(params)?;
                let mut section = ComponentSection::new(manifest);
                (section.name, section.expose) = (name, expose);
                components.told(components.deploy(section).await)
            }
        })
        .register("component.upgrade", move |params| {
            let components = upgraded.clone();
            async move {
                let Upgrade { manifest, name } = read(params)?;
                components.told(components.upgrade(manifest, name).await)
            }
        })
        .register("component.rollback", move |params| {
            let components = rolled.clone();
            async move {
                let Name { name } = read(params)?;
                components.told(components.rollback(&name).await.map(|()| name))
            }
        })
        .register("component.remove", move |params| {
            let components = removed.clone();
            async move {
                let Name { name } = read(params)?;
                components.remove(&name).await.map_err(fault)?;
                Ok(json!({ "name": name }))
            }
        })
        .note(move |path| {
            let info = noted.at(path)?.info;
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
            let row = described.at(&path).map(|one| described.row(&one));
            async move { Some(json!({ "component": row? })) }
        })
}

fn read<T: for<'de> Deserialize<'de>>(params: Value) -> Result<T, Fault> {
    let read = T::deserialize(params);
    read.map_err(|error| Fault::new(Code::BadRequest, error.to_string()))
}

impl Components {
    /// The row of a component that something was done to, or why it was not done.
    fn told(&self, done: Result<String, Failure>) -> Result<Value, Fault> {
        let name = done.map_err(fault)?;
        Ok(self.one(&name).map_or(Value::Null, |one| self.row(&one)))
    }
}

/// A failure as those who asked for it get it: `strowger component` makes the same of it again.
fn fault(failure: Failure) -> Fault {
    let (status, what, hint) = match failure {
        Failure::Told { status, what, hint } => (status, what, hint),
        Failure::Unread => return Fault::new(Code::Failed, "nobody reads what is said"),
    };
    let code = match status {
        Status::Found => Code::Refused,
        Status::Input => Code::BadRequest,
        Status::Outside => Code::Failed,
    };
    let fault = Fault::new(code, what);
    match hint {
        Some(hint) => fault.with_details(json!({ "hint": hint })),
        None => fault,
    }
}
