//! The tools of the demo in a build without the feature `agents`: there are none.

use crate::config::Config;
use crate::exit::CliResult;

pub(super) const MISSING: Option<&str> = Some("tools for agents");

pub(super) const COMMANDS: &[(&str, &str)] = &[];

pub(super) const HELP: &str = "\
This program was built without agents. The default build adds tools for agents: files in a temporary
directory, and code in a sandbox.";

pub(super) struct DemoTools;

impl DemoTools {
    pub(super) const fn create() -> CliResult<Self> {
        Ok(Self)
    }

    pub(super) const fn grant(&self, _: &mut Config) {}

    pub(super) const fn remove(self) {}
}
