//! Code and programs among the tools of a node.

use std::sync::Arc;

use strowger::{ActorSystem, ChildSpec, Door};
use strowger_tools::{
    Code, CodeMessage, CodeSpec, Programs, ProgramsMessage, ProgramsSpec, code_door, programs_door,
};

use super::components::Components;
use super::sandbox::{Realms, TYPESCRIPT};
use crate::config::ToolsSection;
use crate::exit::{Done, Failure};

/// The keys of their actors.
const CODE: &str = "code";
const PROGRAMS: &str = "programs";

/// The actors that are configured, to be started below the supervisor of tools. The engine is
/// compiled for them, or found compiled.
pub(super) async fn children(
    components: &Components,
    section: &ToolsSection,
) -> Done<Vec<ChildSpec>> {
    let mut children = Vec::new();
    let (code, programs) = (&section.code, &section.programs);
    if !code.enabled && !programs.enabled {
        return Ok(children);
    }
    let host = components.host().clone();
    let realms = tokio::task::spawn_blocking(move || Realms::new_blocking(&host)).await;
    let realms = realms.map_err(|error| Failure::outside(error.to_string()))?;
    let realms = realms.map_err(|error| Failure::outside(format!("tools.code: {error}")))?;
    if code.enabled {
        let sandbox: Arc<Realms> = Arc::clone(&realms);
        let mut spec = CodeSpec::new(sandbox).with_typescript(TYPESCRIPT);
        code.limits_into(&mut spec);
        children.push(ChildSpec::new::<Code>(CODE, spec));
    }
    if programs.enabled {
        let mut spec = ProgramsSpec::new(realms);
        spec.typescript = Some(TYPESCRIPT.into());
        programs.limits_into(&mut spec);
        children.push(ChildSpec::new::<Programs>(PROGRAMS, spec));
    }
    Ok(children)
}

/// Lets those outside reach them.
pub(super) fn open(system: &ActorSystem, section: &ToolsSection) -> Done {
    if section.code.enabled {
        expose::<CodeMessage>(system, CODE, code_door(system))?;
    }
    if section.programs.enabled {
        expose::<ProgramsMessage>(system, PROGRAMS, programs_door(system))?;
    }
    Ok(())
}

fn expose<M: Send + 'static>(system: &ActorSystem, key: &str, door: Door<M>) -> Done {
    let failed = |error: String| Failure::outside(format!("the tool {key}: {error}"));
    let path = format!("/tools/{key}");
    let actor = system
        .find(path.as_str())
        .and_then(|actor| actor.downcast::<M>());
    let actor = actor.ok_or_else(|| failed("it has ended".to_owned()))?;
    let exposed = system.expose(&actor, door);
    exposed.map_err(|error| failed(error.to_string()))?;
    Ok(())
}
