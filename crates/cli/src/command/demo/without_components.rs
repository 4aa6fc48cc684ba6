//! The session policy of the demo in a build without the feature `components`: there is none.

use crate::compose::components::Components;
use crate::config::Config;

pub(super) const RULE: Option<&str> = None;

pub(super) const MISSING: Option<&str> = Some("policy component");

pub(super) const COMMANDS: &[(&str, &str)] = &[];

pub(super) const HELP: &str = "\
This program was built without components. The default build adds a policy component that is asked
about each new session, caps its rates, and traps with --chaos.";

pub(super) const fn configure(_: &mut Config) {}

pub(super) const fn counts(_: &Components) -> (u64, u64) {
    (0, 0)
}

#[derive(Debug)]
pub(super) struct TrapMessage;

impl TrapMessage {
    pub(super) const fn new() -> Self {
        Self
    }

    pub(super) const fn send_to(&self, _: &Components) {}
}
