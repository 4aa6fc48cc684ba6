//! The doors to actors, and what of the node is behind them.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use strowger::ActorSystem;
use strowger_gateway::{Doors, DoorsSpec, Methods, OpenError};

use crate::config::{Config, GatewaySection};
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
    if !has_doors(section) {
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

/// Returns `true` if the gateway has a door of its own.
const fn has_doors(section: &GatewaySection) -> bool {
    section.socket.is_some() || section.tcp.is_some() || section.web.is_some()
}

/// Reads the files of tokens as a node that starts with this configuration reads them.
///
/// # Errors
/// When one is missing, others may use it, or what is in it is no token.
pub(crate) fn check(config: &Config) -> Done {
    let gateway = config.gateway.token_file.as_ref();
    let agents = config.mcp.token_file.as_ref();
    let files = gateway.filter(|_| has_doors(&config.gateway));
    let files = files.into_iter().chain(agents.filter(|_| config.mcp.http));
    for file in files {
        token(file)?;
    }
    Ok(())
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
