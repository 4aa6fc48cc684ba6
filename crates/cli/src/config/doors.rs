//! The tokens of all endpoints, and the rights of each.

use std::path::{Path, PathBuf};

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use strowger::PathPattern;
use strowger_gateway::access::{Operation, Role};

use super::Problem;
use crate::compose::verbs;

/// Settings of all endpoints.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DoorsSection {
    /// The tokens that every endpoint accepts.
    pub(crate) token: Vec<TokenSection>,
}

/// A token and its rights.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenSection {
    /// The name of the token in audit records.
    #[serde(deserialize_with = "name")]
    pub(crate) name: String,
    /// The file whose first line is the token.
    pub(crate) file: PathBuf,
    /// The role of the token.
    pub(crate) role: Role,
    /// The addresses that the token reaches.
    #[serde(deserialize_with = "addresses")]
    pub(crate) addresses: Vec<PathPattern>,
    /// The verbs that the token is limited to; all verbs of its role if not set.
    #[serde(default, deserialize_with = "verbs_of")]
    pub(crate) verbs: Option<Vec<String>>,
}

/// Names in audit records for callers without a token of this section.
pub(crate) const GATEWAY_TOKEN: &str = "gateway";
pub(crate) const MCP_TOKEN: &str = "mcp";
const RESERVED: [&str; 3] = [GATEWAY_TOKEN, MCP_TOKEN, "owner"];

/// Maximum length of a name.
const MAX_NAME: usize = 64;

fn name<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let name = String::deserialize(input)?;
    let fit = |one: char| one.is_ascii_alphanumeric() || "-_.".contains(one);
    if !(1..=MAX_NAME).contains(&name.len()) || !name.chars().all(fit) {
        let text = format!(
            "invalid token name {name:?}: use 1 to {MAX_NAME} letters, digits, `-`, `_` and `.`"
        );
        return Err(D::Error::custom(text));
    }
    if RESERVED.contains(&name.as_str()) {
        let text = format!("token name {name:?} is reserved for clients without a [[doors.token]]");
        return Err(D::Error::custom(text));
    }
    Ok(name)
}

fn addresses<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<PathPattern>, D::Error> {
    let texts = Vec::<String>::deserialize(input)?;
    if texts.is_empty() {
        let text = "has no addresses, so nothing is reachable; \"/**\" is the whole node";
        return Err(D::Error::custom(text));
    }
    let pattern = |text: String| {
        if text.contains(['(', ')', '#']) {
            let text = format!(
                "{text:?} is not a path pattern: leave out `@(`, `)` and `#`, as in \"/tools/*\""
            );
            return Err(D::Error::custom(text));
        }
        let pattern = text.parse();
        pattern.map_err(|error| D::Error::custom(format!("{text:?}: {error}")))
    };
    texts.into_iter().map(pattern).collect()
}

fn verbs_of<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<String>>, D::Error> {
    let names = Vec::<String>::deserialize(input)?;
    for name in &names {
        if verb(name).is_none() {
            let known: Vec<&str> = verbs::all().map(Operation::name).collect();
            let text = format!(
                "unknown verb {name:?}; expected one of {}",
                known.join(", ")
            );
            return Err(D::Error::custom(text));
        }
    }
    Ok(Some(names))
}

fn verb(name: &str) -> Option<&'static Operation> {
    verbs::all().find(|verb| verb.name() == name)
}

impl DoorsSection {
    /// Resolves paths relative to the directory of the file.
    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        for token in &mut self.token {
            token.file = folder.join(&token.file);
        }
    }

    /// Returns the first problem that the types cannot rule out.
    pub(super) fn problem(&self) -> Option<Problem> {
        for (at, token) in self.token.iter().enumerate() {
            let TokenSection { name, role, .. } = token;
            if self.token[..at].iter().any(|other| other.name == *name) {
                let what = format!("has two tokens named {name:?}");
                return Some(Problem::at("doors.token", &what));
            }
            let named = token.verbs.iter().flatten();
            let beyond = named
                .filter_map(|name| verb(name))
                .find(|verb| !role.grants(verb.permission()));
            if let Some(verb) = beyond {
                let roles: Vec<&str> = verb.permission().roles().map(Role::name).collect();
                let what = format!(
                    "gives {name:?} the verb {:?}, which its role {role} does not have; it has {}",
                    verb.name(),
                    roles.join(" or "),
                );
                return Some(Problem::at("doors.token", &what));
            }
        }
        None
    }
}
