//! The doors to actors, and what of the node is behind them.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use strowger::ActorSystem;
use strowger_gateway::{Doors, DoorsSpec, Methods, OpenError};

use crate::config::GatewaySection;
use crate::conformance;
use crate::exit::{Done, Failure};

/// Opens the doors that the configuration names; `None` if it names none.
pub(super) async fn open(
    system: &ActorSystem,
    section: &GatewaySection,
    methods: Methods,
) -> Done<Option<Doors>> {
    if section.conformance {
        let started = conformance::start(system).await;
        started.map_err(|error| Failure::outside(error.to_string()))?;
    }
    if section.socket.is_none() && section.tcp.is_none() && section.web.is_none() {
        return Ok(None);
    }
    let mut spec = DoorsSpec::default();
    spec.socket = section.socket.clone();
    spec.tcp = section.tcp;
    spec.web = section.web;
    spec.origins = section.origins.clone();
    spec.token = section.token_file.as_deref().map(token).transpose()?;
    spec.methods = section.control.then_some(methods);
    spec.limits = section.limits();
    let opened = Doors::open(system, spec).await;
    let doors = opened.map_err(|error| {
        let failure = Failure::outside(error.to_string());
        match &error {
            OpenError::Live { .. } => failure.hint("stop who listens there: `gateway.socket`"),
            OpenError::Bind { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                failure.hint("another port, or 0 for a free one: `gateway.tcp`")
            }
            _ => failure,
        }
    })?;
    Ok(Some(doors))
}

/// The fewest octets of a token.
const SHORTEST: usize = 16;
/// The most octets of a token.
const LONGEST: usize = 512;

/// Reads what clients of addresses have to know.
pub(super) fn token(path: &Path) -> Done<Arc<str>> {
    let failed = |error| Failure::file(path, &error);
    let wrong = |what: String| Failure::input(format!("{}: {what}", path.display()));
    let mode = fs::metadata(path).map_err(failed)?.mode();
    if mode & 0o077 != 0 {
        let text = format!("others may use it (mode {:03o})", mode & 0o777);
        let hint = format!("chmod 600 {}", path.display());
        return Err(wrong(text).hint(hint));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let token = text.lines().next().unwrap_or_default().trim();
    if !(SHORTEST..=LONGEST).contains(&token.len()) {
        let text = format!(
            "its first line, the token, has {} octets; it has {SHORTEST} to {LONGEST}",
            token.len()
        );
        return Err(wrong(text).hint("head -c 24 /dev/urandom | base64 > FILE"));
    }
    Ok(Arc::from(token))
}
