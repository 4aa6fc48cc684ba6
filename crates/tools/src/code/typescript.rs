//! Conversion of TypeScript to JavaScript by stripping types.
//!
//! The parser reads untrusted input, which could make it run for long, recurse without end or fill
//! the memory. So it runs where the code itself runs: in a realm, within limits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

use super::error::{CodeError, LimitOrigin, ThrownValue};
use super::functions::GrantedFunctions;
use super::run::{InternalOwner, RunOwner, parse_value, run_step};
use super::sandbox::{CodeRealm, CodeStep, Sandbox};
use super::spec::CodeLimits;

/// A type stripper that runs in its own realm.
#[derive(Debug)]
pub(crate) struct TypeStripper {
    sandbox: Arc<dyn Sandbox>,
    script: Arc<str>,
    realm: AsyncMutex<Option<Box<dyn CodeRealm>>>,
    /// Recently converted sources and their results.
    cache: Mutex<HashMap<String, Arc<str>>>,
}

/// Maximum number of cached results.
const MAX_CACHED: usize = 64;
/// Maximum size of a source whose result is cached, in bytes.
const MAX_CACHED_SOURCE: usize = 32 << 10;

impl TypeStripper {
    pub(crate) fn new(sandbox: Arc<dyn Sandbox>, script: Arc<str>) -> Self {
        Self {
            sandbox,
            script,
            realm: AsyncMutex::new(None),
            cache: Mutex::default(),
        }
    }

    /// Converts TypeScript to equivalent JavaScript.
    pub(crate) async fn strip(
        &self,
        code: &str,
        owner: &Arc<dyn RunOwner>,
    ) -> Result<Arc<str>, CodeError> {
        if let Some(cached) = self.cache.lock().get(code) {
            return Ok(Arc::clone(cached));
        }
        let mut cached_realm = self.realm.lock().await;
        let mut realm = match cached_realm.take() {
            Some(realm) => realm,
            None => self.load_realm().await?,
        };
        let arguments = serde_json::Value::from(vec![code]).to_string();
        let step = CodeStep::Call {
            function: "strip",
            arguments: &arguments,
        };
        let stripped = run_step(
            &mut *realm,
            step,
            &GrantedFunctions::new(),
            &stripper_limits(),
            owner,
        )
        .await;
        if !realm.is_lost() {
            *cached_realm = Some(realm);
        }
        drop(cached_realm);
        let stripped = stripped
            .map_err(|error| error.with_origin(&stripper_limits(), LimitOrigin::TypeStripper))?;
        let stripped: Arc<str> = match parse_value(stripped)? {
            serde_json::Value::String(text) => text.into(),
            _ => return Err(thrown("the parser returned no text")),
        };
        if code.len() <= MAX_CACHED_SOURCE {
            let mut cache = self.cache.lock();
            if cache.len() >= MAX_CACHED {
                cache.clear();
            }
            cache.insert(code.to_owned(), Arc::clone(&stripped));
        }
        Ok(stripped)
    }

    async fn load_realm(&self) -> Result<Box<dyn CodeRealm>, CodeError> {
        let limits = stripper_limits();
        let mut realm = self.sandbox.realm(limits.memory).await?;
        let step = CodeStep::Script {
            name: "typescript.js",
            code: &self.script,
        };
        let none = GrantedFunctions::new();
        let internal: Arc<dyn RunOwner> = Arc::new(InternalOwner);
        run_step(&mut *realm, step, &none, &limits, &internal).await?;
        Ok(realm)
    }
}

fn thrown(message: &str) -> CodeError {
    CodeError::Thrown(ThrownValue {
        message: message.to_owned(),
        ..ThrownValue::default()
    })
}

/// The limits of the parser.
fn stripper_limits() -> CodeLimits {
    CodeLimits {
        time: Duration::from_secs(5),
        memory: 48 << 20,
        stack: 640 << 10,
        result: 4 << 20,
        ..CodeLimits::default()
    }
}
