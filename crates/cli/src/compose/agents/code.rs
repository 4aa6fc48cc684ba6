//! The sandbox and the actors for code and programs among the tools of a node.

use std::sync::Arc;

use strowger_tools::code::CodeSpec;
use strowger_tools::program::ProgramsSpec;
use strowger_wasm::Host;

use super::sandbox::{Realms, TYPESCRIPT};
use crate::config::agents::{CodeSection, ProgramsSection, ToolsSection};
use crate::exit::{CliResult, Failure};

/// Returns the realms for the configured tools, if any of them runs code. The engine is compiled,
/// or loaded from the cache, unless that is left to the first call.
pub(crate) async fn realms(host: &Host, section: &ToolsSection) -> CliResult<Option<Arc<Realms>>> {
    if !section.runs_code() {
        return Ok(None);
    }
    if section.on_demand {
        return Ok(Some(Arc::new(Realms::on_demand(host))));
    }
    let host = host.clone();
    let realms = tokio::task::spawn_blocking(move || Realms::new_blocking(&host)).await;
    let realms = realms.map_err(|error| Failure::outside(error.to_string()))?;
    let realms = realms.map_err(|error| Failure::outside(format!("tools.code: {error}")))?;
    Ok(Some(realms))
}

/// Returns the specification of the actor that runs code.
pub(super) fn code_spec(section: &CodeSection, realms: &Arc<Realms>) -> CodeSpec {
    let sandbox: Arc<Realms> = Arc::clone(realms);
    let mut spec = CodeSpec::new(sandbox).with_typescript(TYPESCRIPT);
    section.limits_into(&mut spec);
    spec
}

/// Returns the specification of the actor that stores programs.
pub(super) fn programs_spec(section: &ProgramsSection, realms: &Arc<Realms>) -> ProgramsSpec {
    let sandbox: Arc<Realms> = Arc::clone(realms);
    let mut spec = ProgramsSpec::new(sandbox);
    spec.typescript = Some(TYPESCRIPT.into());
    section.limits_into(&mut spec);
    spec
}
