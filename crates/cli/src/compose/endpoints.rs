//! The endpoints for clients of actors, and the parts of the node that they expose.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use strowger::ActorSystem;
use strowger_gateway::OpenError;
use strowger_gateway::access::{Role, Token, TokenError};
use strowger_gateway::listeners::{Listeners, ListenersSpec};
use strowger_gateway::method::Methods;

use crate::config::{Config, GATEWAY_TOKEN, GatewaySection, MCP_TOKEN};
use crate::conformance;
use crate::exit::{CliResult, Failure};
use crate::file::read_plain;

/// Opens the configured endpoints. Returns `None` if there are none.
pub(super) async fn open(
    system: &ActorSystem,
    section: &GatewaySection,
    tokens: &EndpointTokens,
    methods: Methods,
) -> CliResult<Option<Listeners>> {
    if section.conformance {
        let started = conformance::start(system).await;
        started.map_err(|error| Failure::outside(error.to_string()))?;
    }
    if !has_endpoints(section) {
        return Ok(None);
    }
    let mut spec = ListenersSpec::default();
    spec.socket = section.socket.clone();
    spec.tcp = section.tcp;
    spec.websocket = section.web;
    spec.origins = section.origins.clone();
    spec.tokens.clone_from(&tokens.gateway);
    spec.methods = section.control.then_some(methods);
    spec.limits = section.limits();
    let opened = Listeners::open(system, spec).await;
    let endpoints = opened.map_err(|error| {
        let failure = Failure::outside(error.to_string());
        match &error {
            OpenError::Live { .. } => {
                failure.hint("stop the process that listens there, or change `gateway.socket`")
            }
            OpenError::Bind { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                failure.hint("choose another port in `gateway.tcp`, or 0 for a free one")
            }
            _ => failure,
        }
    })?;
    Ok(Some(endpoints))
}

/// Returns `true` if the gateway has an endpoint of its own.
const fn has_endpoints(section: &GatewaySection) -> bool {
    section.socket.is_some() || section.tcp.is_some() || section.web.is_some()
}

/// The tokens of a node, by the endpoints that accept them.
#[derive(Debug)]
pub(crate) struct EndpointTokens {
    /// Tokens that every endpoint accepts.
    pub(super) shared: Vec<Token>,
    /// Tokens of the gateway: the shared ones, and that of `gateway.token_file`.
    pub(super) gateway: Vec<Token>,
    /// Tokens of agents over HTTP: the shared ones, and that of `mcp.token_file`.
    pub(super) agents: Vec<Token>,
}

/// Checks the configuration of the endpoints as a node does when it starts, and reads their tokens.
///
/// # Errors
/// Returns an error if an endpoint cannot be opened as configured; if the file of a token is
/// missing, accessible to others or does not contain a token; or if two tokens are equal.
pub(crate) fn tokens(config: &Config) -> CliResult<EndpointTokens> {
    check_http(config)?;
    let mut shared = Vec::new();
    for section in &config.doors.token {
        let token = Token::new(
            section.name.as_str(),
            section.role,
            read_secret(&section.file)?,
        );
        let token = token.with_addresses(section.addresses.clone());
        shared.push(match &section.verbs {
            Some(verbs) => token.with_operations(verbs.iter().cloned()),
            None => token,
        });
    }
    let single = |file: Option<&Path>, name: &'static str, role| {
        let mut tokens = shared.clone();
        if let Some(file) = file {
            tokens.push(Token::new(name, role, read_secret(file)?));
        }
        let same = |error: TokenError| {
            Failure::input(format!("`doors.token`: {error}"))
                .hint("use a different secret for each: head -c 24 /dev/urandom | base64")
        };
        Token::check(&tokens).map_err(same)?;
        Ok::<_, Failure>(tokens)
    };
    let gateway = config.gateway.token_file.as_deref();
    let gateway = gateway.filter(|_| has_endpoints(&config.gateway));
    let agents = config.mcp.http_token_file();
    Ok(EndpointTokens {
        gateway: single(gateway, GATEWAY_TOKEN, Role::Operator)?,
        agents: single(agents, MCP_TOKEN, Role::Agent)?,
        shared,
    })
}

/// Checks whether tokens can be sent over HTTP.
fn check_http(config: &Config) -> CliResult {
    let keys = [
        ("mcp.http", config.mcp.serves_http()),
        ("metrics.tokens", config.metrics.tokens),
    ];
    for (key, _) in keys.into_iter().filter(|(_, is_set)| *is_set) {
        let wrong = |text: &str| Err(Failure::input(format!("`{key}`: {text}")));
        match config.metrics.listen {
            None => return wrong("needs `metrics.listen`, or `strowger run --metrics`"),
            Some(address) if !address.ip().is_loopback() => {
                return wrong("traffic is not encrypted: `metrics.listen` must be on the loopback");
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Minimum length of a token in bytes.
const MIN_TOKEN: usize = 16;
/// Maximum length of a token in bytes.
const MAX_TOKEN: usize = 512;

/// Maximum size of the file of a token, including anything after its first line.
const MAX_TOKEN_FILE: usize = 64 * 1024;

/// Reads the secret of a token.
fn read_secret(path: &Path) -> CliResult<Arc<str>> {
    let failed = |error| Failure::file(path, &error);
    let wrong = |what: String| Failure::input(format!("{}: {what}", path.display()));
    let mode = fs::metadata(path).map_err(failed)?.mode();
    if mode & 0o077 != 0 {
        let text = format!("accessible to other users (mode {:03o})", mode & 0o777);
        let hint = format!("chmod 600 {}", path.display());
        return Err(wrong(text).hint(hint));
    }
    let text = String::from_utf8(read_plain(path, MAX_TOKEN_FILE)?);
    let text = text.map_err(|_| wrong("not valid UTF-8".to_owned()))?;
    let token = text.lines().next().unwrap_or_default().trim();
    if !(MIN_TOKEN..=MAX_TOKEN).contains(&token.len()) {
        let text = format!(
            "the token in its first line is {} bytes; it must be {MIN_TOKEN} to {MAX_TOKEN}",
            token.len()
        );
        return Err(wrong(text).hint("head -c 24 /dev/urandom | base64 > FILE"));
    }
    Ok(Arc::from(token))
}
