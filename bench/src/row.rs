//! One result, as scripts read it.

use serde_json::{Value, json};

/// A figure of one subject, or the reason why there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The part of the project: `runtime`, `pfcp`.
    pub part: &'static str,
    /// The name of the quantity that was timed or counted.
    pub id: String,
    /// The subject that was measured: `strowger` or a peer.
    pub subject: &'static str,
    /// The figure, or the reason why this subject cannot do the work.
    pub value: Result<f64, &'static str>,
    /// The unit of the figure: `ns` per operation, `bytes` or `allocations`.
    pub unit: &'static str,
    /// Number of operations measured, over all rounds.
    pub iterations: u64,
    /// Number of operations whose result was compared with the expected one.
    pub checked: u64,
    /// Further facts for a reader of the row.
    pub notes: Vec<(&'static str, Value)>,
}

impl Row {
    /// Formats the row as one line of JSON.
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
