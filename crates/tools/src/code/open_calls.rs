//! Functions implemented by the follower of a run: calls are sent on the stream of the run, answers
//! arrive as messages.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

use super::functions::GrantedFunctions;
use super::message::{FollowerCall, RunEvent};
use super::run::RunCaller;
use super::sandbox::FunctionDecl;

type AnswerOutcome = Result<Value, String>;

/// Calls that wait for an answer from the follower of their run.
///
/// A run has at most [`CodeLimits::calls`](super::CodeLimits) of them at a time; a call is removed
/// when its run ends. Clones share the same table.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenCalls(Arc<Mutex<HashMap<String, oneshot::Sender<AnswerOutcome>>>>);

/// A waiting call, removed from the table on drop.
struct OpenCallGuard<'a> {
    calls: &'a OpenCalls,
    call: String,
}

impl OpenCalls {
    /// Adds functions with these names that call the follower of the run.
    pub(super) fn add_to(
        &self,
        functions: GrantedFunctions,
        names: Vec<FunctionDecl>,
        follower: &Arc<RunCaller>,
    ) -> GrantedFunctions {
        names.into_iter().fold(functions, |functions, function| {
            let (calls, follower) = (self.clone(), Arc::clone(follower));
            let name: Arc<str> = Arc::from(&*function.name);
            let work = move |arguments| {
                let (calls, follower) = (calls.clone(), Arc::clone(&follower));
                let name = name.to_string();
                async move { calls.call_follower(&follower, name, arguments).await }
            };
            match function.waits {
                true => functions.waiting(&function.name, work),
                false => functions.promise(&function.name, work),
            }
        })
    }

    /// Delivers an answer. Returns `true` if a call was waiting for it.
    pub(super) fn answer(&self, call: &str, outcome: AnswerOutcome) -> bool {
        let waiting = self.0.lock().remove(call);
        waiting.is_some_and(|waiting| waiting.send(outcome).is_ok())
    }

    async fn call_follower(
        &self,
        follower: &RunCaller,
        name: String,
        arguments: Vec<Value>,
    ) -> AnswerOutcome {
        let call = random_call_id()?;
        let (sender, answer) = oneshot::channel();
        self.0.lock().insert(call.clone(), sender);
        let open = OpenCallGuard { calls: self, call };
        follower.send_event(RunEvent::Call(FollowerCall {
            call: open.call.clone(),
            name,
            arguments,
        }));
        let answered = answer.await;
        answered.unwrap_or_else(|_| Err("no caller is left to answer the call".to_owned()))
    }
}

impl Drop for OpenCallGuard<'_> {
    fn drop(&mut self) {
        self.calls.0.lock().remove(&self.call);
    }
}

/// Returns a random identifier for a call. It must not be guessable: other callers of the actor
/// could answer in the follower's place.
fn random_call_id() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
