//! One result, as scripts read it.

use serde_json::json;

/// One figure of one subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The part of the project: `runtime`, `pfcp`.
    pub part: &'static str,
    /// What was timed or counted.
    pub id: String,
    /// Who did it: `strowger` or a peer.
    pub subject: &'static str,
    /// The figure.
    pub value: f64,
    /// What the figure counts: `ns` for each operation, or `allocations`.
    pub unit: &'static str,
    /// Operations that were timed, over all rounds.
    pub iterations: u64,
    /// Operations of which the result was compared with what it has to be.
    pub checked: u64,
}

impl Row {
    /// Writes the row as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        json!({
            "part": self.part,
            "id": self.id,
            "subject": self.subject,
            "value": (self.value * 10.0).round() / 10.0,
            "unit": self.unit,
            "iterations": self.iterations,
            "checked": self.checked,
        })
        .to_string()
    }
}
