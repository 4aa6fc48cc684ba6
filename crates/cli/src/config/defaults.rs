//! Sections of features that this program was built without: they may contain only the defaults.

use toml::{Table, Value};

use super::{Config, Problem};
use crate::missing;

/// Returns the first key of a section whose value is not its default, such as
/// `tools.code.enabled`. Without the types of the section, values are compared as text: a default
/// in another spelling differs.
pub(super) fn changed_key(section: &str, table: &Table) -> Option<String> {
    let defaults = Config::example().parse::<Table>().unwrap_or_default();
    changed_in(section, table, defaults.get(section))
}

fn changed_in(at: &str, table: &Table, defaults: Option<&Value>) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let path = format!("{at}.{key}");
        let default = defaults.and_then(|defaults| defaults.get(key));
        match (value, default) {
            (Value::Table(inner), _) => changed_in(&path, inner, default),
            (value, Some(default)) => (value != default).then_some(path),
            // An empty list of tables, such as that of `tools.files`, has no default in the file.
            (Value::Array(values), None) if values.is_empty() => None,
            (_, None) => Some(path),
        }
    })
}

/// Returns the problem of a key that needs a feature.
pub(super) fn missing_feature(key: &str, feature: &str) -> Problem {
    Problem::at(
        key,
        &format!("needs feature `{feature}`: {}", missing::text(feature)),
    )
}
