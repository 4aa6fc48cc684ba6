//! TypeScript becomes JavaScript: its types are taken away.
//!
//! What reads TypeScript reads what others wrote, and a parser can be made to run for long, to
//! nest without end and to fill memory. So it runs where the code itself will run: in a realm,
//! within limits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Mutex as Turn;

use super::error::{CodeError, Thrown};
use super::functions::Functions;
use super::run::{Own, Patron, run, value};
use super::sandbox::{CodeRealm, CodeStep, Sandbox};
use super::spec::CodeLimits;

/// Takes types away, in a realm of its own.
#[derive(Debug)]
pub(crate) struct Types {
    sandbox: Arc<dyn Sandbox>,
    script: Arc<str>,
    realm: Turn<Option<Box<dyn CodeRealm>>>,
    /// What was read lately.
    known: Mutex<HashMap<String, Arc<str>>>,
}

/// The sources that are kept with what became of them.
const KNOWN: usize = 64;
/// The octets of a source that is kept.
const SHORT: usize = 32 << 10;

impl Types {
    pub(crate) fn new(sandbox: Arc<dyn Sandbox>, script: Arc<str>) -> Self {
        Self {
            sandbox,
            script,
            realm: Turn::new(None),
            known: Mutex::default(),
        }
    }

    /// JavaScript that does what this TypeScript does.
    pub(crate) async fn strip(
        &self,
        code: &str,
        patron: &Arc<dyn Patron>,
    ) -> Result<Arc<str>, CodeError> {
        if let Some(known) = self.known.lock().get(code) {
            return Ok(Arc::clone(known));
        }
        let mut place = self.realm.lock().await;
        let mut realm = match place.take() {
            Some(realm) => realm,
            None => self.realm().await?,
        };
        let arguments = serde_json::Value::from(vec![code]).to_string();
        let step = CodeStep::Call {
            function: "strip",
            arguments: &arguments,
        };
        let stripped = run(&mut *realm, step, &Functions::new(), &limits(), patron).await;
        if !realm.is_lost() {
            *place = Some(realm);
        }
        drop(place);
        let stripped: Arc<str> = match value(stripped?)? {
            serde_json::Value::String(text) => text.into(),
            _ => return Err(thrown("the parser gave no text")),
        };
        if code.len() <= SHORT {
            let mut known = self.known.lock();
            if known.len() >= KNOWN {
                known.clear();
            }
            known.insert(code.to_owned(), Arc::clone(&stripped));
        }
        Ok(stripped)
    }

    async fn realm(&self) -> Result<Box<dyn CodeRealm>, CodeError> {
        let limits = limits();
        let mut realm = self.sandbox.realm(limits.memory).await?;
        let step = CodeStep::Script {
            name: "typescript.js",
            code: &self.script,
        };
        let none = Functions::new();
        let own: Arc<dyn Patron> = Arc::new(Own);
        run(&mut *realm, step, &none, &limits, &own).await?;
        Ok(realm)
    }
}

fn thrown(message: &str) -> CodeError {
    CodeError::Thrown(Thrown {
        message: message.to_owned(),
        ..Thrown::default()
    })
}

/// What taking types away may use up.
fn limits() -> CodeLimits {
    CodeLimits {
        time: Duration::from_secs(5),
        memory: 48 << 20,
        stack: 640 << 10,
        result: 4 << 20,
        ..CodeLimits::default()
    }
}
