//! Features that this program may have been built without.

/// The feature for tools of agents.
pub(crate) const AGENTS: &str = "agents";

/// The feature for WebAssembly components.
#[cfg(not(feature = "components"))]
pub(crate) const COMPONENTS: &str = "components";

/// Explains that a feature is missing, and how to build the program with it.
pub(crate) fn text(feature: &str) -> String {
    format!(
        "this program was built without {feature}; build it with `--features {feature}` (on by \
         default)"
    )
}
