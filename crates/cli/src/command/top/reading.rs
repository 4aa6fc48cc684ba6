//! What the node answers to `top`, and how people read it.

use serde::Deserialize;
use serde_json::Value;

use crate::exit::{Done, Failure};

/// One reading.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Reading {
    pub(super) name: String,
    pub(super) totals: Totals,
    pub(super) limits: Vec<Limit>,
    pub(super) rows: Vec<Row>,
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
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Limit {
    pub(super) name: String,
    pub(super) used: f64,
    pub(super) most: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Row {
    pub(super) path: String,
    pub(super) state: String,
    pub(super) depth: u64,
    pub(super) capacity: Option<u64>,
    pub(super) rate: f64,
    pub(super) load: f64,
    pub(super) memory: u64,
    pub(super) restarts: u64,
    /// Of the actor of a component.
    pub(super) component: Option<Component>,
    /// Of the actor of a tool.
    pub(super) tool: Option<Tool>,
}

/// What a component has done, and the memory that is its own.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Component {
    calls: u64,
    faults: u64,
    memory: u64,
    /// Its processor time in milliseconds; the rest is of a node that knows of it.
    #[serde(default)]
    cpu_ms: f64,
    #[serde(default)]
    heavy: bool,
    #[serde(default)]
    throttled: u64,
}

impl Component {
    /// Where it runs and what it took, if that is worth a word.
    fn course(&self) -> Option<String> {
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

/// What a tool was asked, and what of it came to nothing.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Tool {
    calls: u64,
    refused: u64,
    failed: u64,
    /// What it is granted, and how much of it is used.
    #[serde(default)]
    quota: Vec<Limit>,
}

impl Tool {
    /// The quota of which most is used, in words.
    fn tightest(&self) -> Option<String> {
        let parts = self.quota.iter().filter_map(|quota| {
            let most = quota.most.filter(|most| *most > 0.0)?;
            Some((quota.used / most, &quota.name))
        });
        let (part, name) = parts.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        Some(format!("{:.0} % of {name}", 100.0 * part))
    }
}

/// From this part of a limit on it is shown in red.
const ALARM: f64 = 0.85;

impl Reading {
    /// Reads an answer.
    pub(super) fn of(answer: Value) -> Done<Self> {
        serde_json::from_value(answer)
            .map_err(|error| Failure::outside(format!("the node answers something else: {error}")))
    }

    /// The totals on one line.
    pub(super) fn summary(&self) -> String {
        let totals = &self.totals;
        let mut text = format!(
            "{}: {} actors, {} waiting, {} msg/s, {:.2} threads busy, {}, {} restarts",
            self.name,
            totals.actors,
            number(totals.depth as f64),
            number(totals.rate),
            totals.load,
            octets(totals.memory as f64),
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

    /// The limits on one line.
    pub(super) fn usages(&self) -> String {
        let usages: Vec<String> = self.limits.iter().map(Limit::text).collect();
        usages.join("   ")
    }
}

impl Limit {
    pub(super) fn text(&self) -> String {
        let shown = |value: f64| match self.name.as_str() {
            "memory" => octets(value),
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

    pub(super) fn alarms(&self) -> bool {
        self.most.is_some_and(|most| self.used >= ALARM * most)
    }
}

impl Row {
    pub(super) fn waiting(&self) -> String {
        match self.capacity {
            Some(capacity) => format!("{}/{capacity}", self.depth),
            None => self.depth.to_string(),
        }
    }

    pub(super) fn busy(&self) -> String {
        format!("{:.1} %", 100.0 * self.load)
    }

    /// The memory of the actor, with that of the component that it is.
    pub(super) fn octets(&self) -> String {
        let own = self.component.as_ref().map_or(0, |own| own.memory);
        octets(self.memory.saturating_add(own) as f64)
    }

    /// What is to be said of a component or a tool, behind its path.
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
        if let Some(course) = self.component.as_ref().and_then(Component::course) {
            note.push_str(&format!(", {course}"));
        }
        if let Some(tightest) = self.tool.as_ref().and_then(Tool::tightest) {
            note.push_str(&format!(", {tightest}"));
        }
        Some(note)
    }

    pub(super) fn alarms(&self) -> bool {
        let room = |room: u64| self.depth as f64 >= ALARM * room as f64;
        self.capacity.is_some_and(room)
    }
}

/// A number in four or five places.
pub(super) fn number(value: f64) -> String {
    match value {
        value if value < 9.95 && value.fract() != 0.0 => format!("{value:.1}"),
        value if value < 9_999.5 => format!("{value:.0}"),
        value if value < 999_500.0 => format!("{:.1}k", value / 1e3),
        value if value < 999_500_000.0 => format!("{:.1}M", value / 1e6),
        value => format!("{:.1}G", value / 1e9),
    }
}

/// A number of octets in its unit.
pub(super) fn octets(value: f64) -> String {
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
    fn numbers_stay_short() {
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
            assert_eq!(octets(value), text);
        }
    }

    #[test]
    fn what_is_at_85_percent_of_its_limit_alarms() {
        let limit = |used, most| Limit {
            name: "sessions".to_owned(),
            used,
            most,
        };
        assert!(!limit(84.9, Some(100.0)).alarms());
        assert!(limit(85.0, Some(100.0)).alarms());
        assert!(!limit(1e9, None).alarms());
        assert_eq!(limit(85.0, Some(100.0)).text(), "sessions 85 of 100 (85 %)");
    }
}
