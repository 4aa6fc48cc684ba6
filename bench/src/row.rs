//! One result, as scripts read it.

use serde_json::{Value, json};

/// One figure of one subject, or why it has none.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The part of the project: `runtime`, `pfcp`.
    pub part: &'static str,
    /// What was timed or counted.
    pub id: String,
    /// Who did it: `strowger` or a peer.
    pub subject: &'static str,
    /// The figure, or why this subject cannot do the work.
    pub value: Result<f64, &'static str>,
    /// What the figure counts: `ns` for each operation, `bytes` or `allocations`.
    pub unit: &'static str,
    /// Operations that were measured, over all rounds.
    pub iterations: u64,
    /// Operations of which the result was compared with what it has to be.
    pub checked: u64,
    /// What else a reader of the row should know.
    pub notes: Vec<(&'static str, Value)>,
}

impl Row {
    /// Writes the row as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut row = match self.value {
            Ok(value) => json!({
                "part": self.part,
                "id": self.id,
                "subject": self.subject,
                "value": (value * 10.0).round() / 10.0,
                "unit": self.unit,
                "iterations": self.iterations,
                "checked": self.checked,
            }),
            Err(reason) => json!({
                "part": self.part,
                "id": self.id,
                "subject": self.subject,
                "value": null,
                "unit": self.unit,
                "reason": reason,
            }),
        };
        for (key, value) in &self.notes {
            row[*key] = value.clone();
        }
        row.to_string()
    }
}
