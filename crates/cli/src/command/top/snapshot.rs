//! The answer of a node to `top`, formatted for people.

use serde::Deserialize;
use serde_json::Value;

use crate::exit::{CliResult, Failure};

/// One answer of the node.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TopSnapshot {
    pub(super) name: String,
    pub(super) totals: Totals,
    pub(super) limits: Vec<LimitUsage>,
    /// The oldest of the asks that wait for a second or longer. Older nodes do not report them.
    #[serde(default)]
    pub(super) late_asks: Vec<LateAsk>,
    pub(super) rows: Vec<ActorRow>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Totals {
    pub(super) actors: u64,
    pub(super) depth: u64,
    pub(super) nearly_full: u64,
    pub(super) dropped: u64,
    pub(super) restarts: u64,
    pub(super) memory: u64,
    pub(super) rate: f64,
    pub(super) load: f64,
    #[serde(default)]
    pub(super) late_asks: u64,
}

/// An ask that waits for its answer.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct LateAsk {
    /// `None` if a task asks.
    asker: Option<String>,
    callee: String,
    age_ms: u64,
}

impl LateAsk {
    /// Returns the asker, the callee and the age.
    pub(super) fn cells(&self) -> [String; 3] {
        let asker = self.asker.as_deref().unwrap_or("a task");
        let age = number(self.age_ms as f64 / 1e3);
        [asker.to_owned(), self.callee.clone(), format!("{age} s")]
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct LimitUsage {
    pub(super) name: String,
    pub(super) used: f64,
    pub(super) most: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ActorRow {
    pub(super) path: String,
    pub(super) state: String,
    pub(super) depth: u64,
    pub(super) capacity: Option<u64>,
    pub(super) rate: f64,
    pub(super) load: f64,
    pub(super) memory: u64,
    pub(super) restarts: u64,
    /// Set for the actor of a component.
    pub(super) component: Option<ComponentStats>,
    /// Set for the actor of a tool.
    pub(super) tool: Option<ToolStats>,
}

/// The activity of a component, and its own memory.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ComponentStats {
    calls: u64,
    faults: u64,
    memory: u64,
    /// Processor time in milliseconds. Older nodes do not report this field and those below.
    #[serde(default)]
    cpu_ms: f64,
    #[serde(default)]
    heavy: bool,
    #[serde(default)]
    throttled: u64,
}

impl ComponentStats {
    /// Describes where the component runs and what it used, if that is worth mentioning.
    fn cpu_note(&self) -> Option<String> {
        let seconds = self.cpu_ms / 1e3;
        match (self.heavy, self.throttled) {
            (false, 0) => None,
            (true, 0) => Some(format!("{} s on guest threads", number(seconds))),
            (_, count) => Some(format!(
                "{} s CPU, throttled {}",
                number(seconds),
                number(count as f64)
            )),
        }
    }
}

/// The calls of a tool, with those refused and failed.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ToolStats {
    calls: u64,
    refused: u64,
    failed: u64,
    /// The quota of the tool, and how much of it is used.
    #[serde(default)]
    quota: Vec<LimitUsage>,
}

impl ToolStats {
    /// Describes the quota that is used most.
    fn most_used_quota(&self) -> Option<String> {
        let parts = self.quota.iter().filter_map(|quota| {
            let most = quota.most.filter(|most| *most > 0.0)?;
            Some((quota.used / most, &quota.name))
        });
        let (part, name) = parts.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        Some(format!("{:.0} % of {name}", 100.0 * part))
    }
}

/// The fraction of a limit from which its usage is shown in red.
const ALARM: f64 = 0.85;

impl TopSnapshot {
    /// Parses an answer.
    pub(super) fn of(answer: Value) -> CliResult<Self> {
        serde_json::from_value(answer)
            .map_err(|error| Failure::outside(format!("unexpected reply from the node: {error}")))
    }

    /// Formats the totals on one line.
    pub(super) fn summary(&self) -> String {
        let totals = &self.totals;
        // In front, because a narrow terminal cuts the end of the line.
        let late = match totals.late_asks {
            0 => String::new(),
            count => format!("{} asks late, ", number(count as f64)),
        };
        let mut text = format!(
            "{}: {} actors, {} waiting, {late}{} msg/s, {:.2} threads busy, {}, {} restarts",
            self.name,
            totals.actors,
            number(totals.depth as f64),
            number(totals.rate),
            totals.load,
            byte_text(totals.memory as f64),
            totals.restarts,
        );
        for (count, what) in [
            (totals.nearly_full, "nearly full"),
            (totals.dropped, "dropped"),
        ] {
            if count > 0 {
                text.push_str(&format!(", {} {what}", number(count as f64)));
            }
        }
        text
    }

    /// Formats the limits on one line.
    pub(super) fn usages(&self) -> String {
        let usages: Vec<String> = self.limits.iter().map(LimitUsage::text).collect();
        usages.join("   ")
    }
}

impl LimitUsage {
    pub(super) fn text(&self) -> String {
        let shown = |value: f64| match self.name.as_str() {
            "memory" => byte_text(value),
            _ => number(value),
        };
        match self.most {
            Some(most) if most > 0.0 => format!(
                "{} {} of {} ({:.0} %)",
                self.name,
                shown(self.used),
                shown(most),
                100.0 * self.used / most
            ),
            _ => format!("{} {}", self.name, shown(self.used)),
        }
    }

    pub(super) fn is_alarming(&self) -> bool {
        self.most.is_some_and(|most| self.used >= ALARM * most)
    }
}

impl ActorRow {
    pub(super) fn mailbox_text(&self) -> String {
        match self.capacity {
            Some(capacity) => format!("{}/{capacity}", self.depth),
            None => self.depth.to_string(),
        }
    }

    pub(super) fn load_text(&self) -> String {
        format!("{:.1} %", 100.0 * self.load)
    }

    /// Formats the memory of the actor, including that of its component.
    pub(super) fn memory_text(&self) -> String {
        let own = self.component.as_ref().map_or(0, |own| own.memory);
        byte_text(self.memory.saturating_add(own) as f64)
    }

    /// Returns the note about a component or a tool, shown behind its path.
    pub(super) fn note(&self) -> Option<String> {
        let (calls, rest) = match (&self.component, &self.tool) {
            (Some(component), _) => (component.calls, [(component.faults, "faults"), (0, "")]),
            (None, Some(tool)) => {
                let rest = [(tool.refused, "refused"), (tool.failed, "failed")];
                (tool.calls, rest)
            }
            (None, None) => return None,
        };
        let mut note = format!("{} calls", number(calls as f64));
        for (count, what) in rest {
            if count > 0 {
                note.push_str(&format!(", {} {what}", number(count as f64)));
            }
        }
        if let Some(course) = self.component.as_ref().and_then(ComponentStats::cpu_note) {
            note.push_str(&format!(", {course}"));
        }
        if let Some(tightest) = self.tool.as_ref().and_then(ToolStats::most_used_quota) {
            note.push_str(&format!(", {tightest}"));
        }
        Some(note)
    }

    pub(super) fn is_alarming(&self) -> bool {
        let room = |room: u64| self.depth as f64 >= ALARM * room as f64;
        self.capacity.is_some_and(room)
    }
}

/// Formats a number in four or five characters.
pub(super) fn number(value: f64) -> String {
    match value {
        value if value < 9.95 && value.fract() != 0.0 => format!("{value:.1}"),
        value if value < 9_999.5 => format!("{value:.0}"),
        value if value < 999_500.0 => format!("{:.1}k", value / 1e3),
        value if value < 999_500_000.0 => format!("{:.1}M", value / 1e6),
        value => format!("{:.1}G", value / 1e9),
    }
}

/// Formats a number of bytes with its unit.
pub(super) fn byte_text(value: f64) -> String {
    let mut size = value;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if size < 1000.0 {
            break;
        }
        size /= 1024.0;
        unit = next;
    }
    match unit {
        "B" => format!("{value} B"),
        unit => format!("{size:.1} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.25, "0.2"),
            (7.0, "7"),
            (1234.0, "1234"),
            (12_345.0, "12.3k"),
            (1_234_567.0, "1.2M"),
            (2.5e9, "2.5G"),
        ] {
            assert_eq!(number(value), text);
        }
        for (value, text) in [(512.0, "512 B"), (1536.0, "1.5 KiB"), (3e9, "2.8 GiB")] {
            assert_eq!(byte_text(value), text);
        }
    }

    #[test]
    fn usage_of_85_percent_alarms() {
        let limit = |used, most| LimitUsage {
            name: "sessions".to_owned(),
            used,
            most,
        };
        assert!(!limit(84.9, Some(100.0)).is_alarming());
        assert!(limit(85.0, Some(100.0)).is_alarming());
        assert!(!limit(1e9, None).is_alarming());
        assert_eq!(limit(85.0, Some(100.0)).text(), "sessions 85 of 100 (85 %)");
    }
}
