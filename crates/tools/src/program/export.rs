//! The external interface of programs: message names and their JSON.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use strowger::{ActorSystem, Export, Fault, Payload};

use super::message::{
    ListProgramsRequest, PerformRequest, ProgramError, PublishRequest, WithdrawRequest,
};
use super::registry::{Programs, ProgramsMessage};
use super::{Program, ProgramMessage};
use crate::code::{CodeBudget, FunctionTarget, Language, granted_functions};

impl Program {
    /// The message that the program accepts from external callers: `perform`, whose payload is the
    /// input and whose answer is the output.
    pub fn export() -> Export<ProgramMessage> {
        let input = |payload: &Payload| Ok(PerformRequest(payload.decode::<Value>()?));
        Export::new().ask_with::<PerformRequest>("perform", input, plain)
    }
}

impl Programs {
    /// The messages that the registry accepts from external callers.
    ///
    /// | message | payload | answer |
    /// |---|---|---|
    /// | `publish` | `{name, code, language?, input?, output?, draft?, fns?, limits?}` | nothing |
    /// | `withdraw` | `{name}` | `true` if the program existed |
    /// | `list` | none | `[{name, state, calls, failed, restarts}]` |
    ///
    /// `input` and `output` are JSON schemas; `language`, `fns` and `limits` are as in
    /// [`Code::export`](crate::code::Code::export). A program is exposed as `@(programs/NAME)`.
    pub fn export(system: &ActorSystem) -> Export<ProgramsMessage> {
        let system = system.clone();
        let publish = move |payload: &Payload| payload.decode::<PublishPayload>()?.publish(&system);
        Export::new()
            .ask_with::<PublishRequest>("publish", publish, plain)
            .ask::<WithdrawRequest>("withdraw")
            .ask::<ListProgramsRequest>("list")
    }
}

fn plain<T: serde::Serialize + 'static>(
    outcome: Result<T, ProgramError>,
) -> Result<Payload, Fault> {
    Payload::from_json(&outcome.map_err(|error| error.to_fault())?)
}

/// The JSON of a publish request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishPayload {
    name: String,
    code: String,
    #[serde(default)]
    language: Language,
    #[serde(default)]
    input: Option<Value>,
    #[serde(default)]
    output: Option<Value>,
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    fns: BTreeMap<String, FunctionTarget>,
    #[serde(default)]
    limits: CodeBudget,
}

impl PublishPayload {
    fn publish(self, system: &ActorSystem) -> Result<PublishRequest, Fault> {
        Ok(PublishRequest {
            functions: granted_functions(self.fns, system)?,
            name: self.name,
            code: self.code,
            language: self.language,
            input: self.input,
            output: self.output,
            draft: self.draft,
            budget: self.limits,
        })
    }
}
