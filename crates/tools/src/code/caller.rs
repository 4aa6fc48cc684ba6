//! Functions that whoever follows a run has: calls go out with its lines, answers come back as
//! messages.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

use super::functions::Functions;
use super::message::{Called, Told};
use super::run::Customer;
use super::sandbox::FunctionName;

type Outcome = Result<Value, String>;

/// Calls that wait for whoever follows their run. A run has as many at a time as
/// [`CodeLimits::calls`](crate::CodeLimits) says; a call goes with its run. A clone is the same.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenCalls(Arc<Mutex<HashMap<String, oneshot::Sender<Outcome>>>>);

/// A call that waits, until it does not.
struct Open<'a> {
    calls: &'a OpenCalls,
    call: String,
}

impl OpenCalls {
    /// Adds functions of these names that ask whoever follows the run.
    pub(super) fn give(
        &self,
        functions: Functions,
        names: Vec<FunctionName>,
        follower: &Arc<Customer>,
    ) -> Functions {
        names.into_iter().fold(functions, |functions, function| {
            let (calls, follower) = (self.clone(), Arc::clone(follower));
            let name: Arc<str> = Arc::from(&*function.name);
            let work = move |arguments| {
                let (calls, follower) = (calls.clone(), Arc::clone(&follower));
                let name = name.to_string();
                async move { calls.ask(&follower, name, arguments).await }
            };
            match function.waits {
                true => functions.waiting(&function.name, work),
                false => functions.promise(&function.name, work),
            }
        })
    }

    /// Takes an answer; whether a call waited for it.
    pub(super) fn answer(&self, call: &str, outcome: Outcome) -> bool {
        let waiting = self.0.lock().remove(call);
        waiting.is_some_and(|waiting| waiting.send(outcome).is_ok())
    }

    async fn ask(&self, follower: &Customer, name: String, arguments: Vec<Value>) -> Outcome {
        let call = unguessable()?;
        let (sender, answer) = oneshot::channel();
        self.0.lock().insert(call.clone(), sender);
        let open = Open { calls: self, call };
        follower.tell(Told::Called(Called {
            call: open.call.clone(),
            name,
            arguments,
        }));
        let answered = answer.await;
        answered.unwrap_or_else(|_| Err("nobody is there to answer it".to_owned()))
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.calls.0.lock().remove(&self.call);
    }
}

/// An identifier of a call: others who reach the actor must not answer in the follower's place.
fn unguessable() -> Result<String, String> {
    let mut octets = [0; 16];
    getrandom::fill(&mut octets).map_err(|error| error.to_string())?;
    Ok(format!("{:032x}", u128::from_be_bytes(octets)))
}
