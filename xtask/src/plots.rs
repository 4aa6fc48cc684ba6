//! `cargo xtask plots`: draws `docs/*.svg` and writes `docs/performance.md` from the rows of
//! `docs/performance.json`.
//!
//! Everything drawn comes from that file: a plot whose rows were never measured is left out.

mod chart;

use serde_json::{Map, Value};

use crate::project::{self, Project};
use crate::{Outcome, report, term};
use chart::{Bars, Chart, Series};

/// Reads the results, writes the page and draws the plots.
pub(crate) fn run(project: &Project) -> Outcome {
    let file = project.root().join("docs/performance.json");
    let all: Map<String, Value> = serde_json::from_str(&project::read(&file)?)
        .map_err(|error| format!("{} is no JSON: {error}", file.display()))?;
    report::write(project, &all)?;
    draw(project, &all)
}

/// Draws every plot that has rows.
pub(crate) fn draw(project: &Project, all: &Map<String, Value>) -> Outcome {
    for (name, svg) in draw_all(all)? {
        project::write(&project.root().join("docs").join(name), svg)?;
        term::note(&format!("drew docs/{name}"));
    }
    Ok(())
}

fn draw_all(all: &Map<String, Value>) -> Result<Vec<(&'static str, String)>, String> {
    let mut drawings = Vec::new();
    if let Some(scale) = all.get("scale") {
        let note = note(scale);
        let throughput = Chart {
            title: "Messages handled in a second, by number of actors",
            x: "actors (four tasks tell them numbers in turn)",
            y: "million messages a second",
            logarithmic: false,
            series: series(scale, "throughput/", |ns| 1000.0 / ns),
            note: note.clone(),
        };
        drawings.push(("throughput.svg", throughput.svg()?));
        for (name, prefix, title) in [
            (
                "latency-p50.svg",
                "latency_p50/",
                "Latency of an answer under load: half take less",
            ),
            (
                "latency-p99.svg",
                "latency_p99/",
                "Latency of an answer under load: one of a hundred takes longer",
            ),
        ] {
            let latency = Chart {
                title,
                x: "messages a second, to a hundred actors with mailboxes of 1024",
                y: "microseconds",
                logarithmic: true,
                series: series(scale, prefix, |ns| ns / 1000.0),
                note: note.clone(),
            };
            drawings.push((name, latency.svg()?));
        }
    }
    if let Some(n4) = all.get("n4") {
        let turnover = Chart {
            title: "Cost of a request, by number of live sessions",
            x: "live sessions (one half of the requests establish, one half delete)",
            y: "microseconds",
            logarithmic: false,
            series: series(n4, "turnover/", |ns| ns / 1000.0),
            note: note(n4),
        };
        if !turnover.series.is_empty() {
            drawings.push(("sessions.svg", turnover.svg()?));
        }
    }
    if let Some(runtime) = all.get("runtime") {
        let bars = Bars {
            title: "Heap of an actor that waits",
            unit: "bytes",
            bars: rows(runtime)
                .filter(|row| row["id"] == "heap_per_idle_actor")
                .filter_map(|row| {
                    Some((row["subject"].as_str()?.to_owned(), row["value"].as_f64()?))
                })
                .collect(),
            note: note(runtime),
        };
        if !bars.bars.is_empty() {
            drawings.push(("memory.svg", bars.svg()?));
        }
    }
    Ok(drawings)
}

fn rows(part: &Value) -> impl Iterator<Item = &Value> {
    part["rows"].as_array().into_iter().flatten()
}

/// Returns a series for each subject, from rows whose ids end in their x value.
fn series(part: &Value, prefix: &str, scale: impl Fn(f64) -> f64) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for row in rows(part) {
        let at = row["id"].as_str().and_then(|id| id.strip_prefix(prefix));
        let (Some(at), Some(subject)) = (at, row["subject"].as_str()) else {
            continue;
        };
        let (Ok(x), Some(value)) = (at.parse::<f64>(), row["value"].as_f64()) else {
            continue;
        };
        let point = (x, scale(value));
        match all.iter_mut().find(|series| series.name == subject) {
            Some(series) => series.points.push(point),
            None => all.push(Series {
                name: subject.to_owned(),
                points: vec![point],
            }),
        }
    }
    all
}

/// Describes the origin of the figures.
fn note(part: &Value) -> String {
    let get = |key: &str| part["run"][key].as_str().unwrap_or("unknown");
    format!(
        "{} on {}, commit {}; {}, {} cores, {}",
        get("command"),
        get("date"),
        get("commit"),
        get("processor"),
        part["run"]["cores"],
        get("rustc").split(" (").next().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn results() -> Map<String, Value> {
        fn row(id: &str, subject: &str, value: &Value) -> Value {
            json!({ "id": id, "subject": subject, "value": value })
        }
        let scale = [
            row("throughput/10", "strowger", &json!(20.0)),
            row("throughput/1000000", "strowger", &json!(100.0)),
            row("throughput/10", "tokio", &json!(80.0)),
            row("throughput/1000000", "ractor", &json!(null)),
            row("latency_p50/1000", "strowger", &json!(900.0)),
            row("latency_p99/1000", "strowger", &json!(40_000.0)),
        ];
        let runtime = [
            row("heap_per_idle_actor", "strowger", &json!(480.0)),
            row("tell", "strowger", &json!(20.0)),
        ];
        let run = json!({ "command": "cargo xtask bench scale", "cores": 2 });
        let all = json!({
            "scale": { "run": run, "rows": scale }, "runtime": { "run": run, "rows": runtime },
        });
        all.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn plots_show_axes_subjects_and_origin() {
        let drawings = draw_all(&results()).expect("they are drawn");
        let names: Vec<&str> = drawings.iter().map(|(name, _)| *name).collect();
        let expected = [
            "throughput.svg",
            "latency-p50.svg",
            "latency-p99.svg",
            "memory.svg",
        ];
        assert_eq!(names, expected);
        let throughput = &drawings[0].1;
        for text in [
            "million messages",
            "strowger",
            "tokio",
            "\n1M\n",
            "xtask bench",
        ] {
            assert!(throughput.contains(text), "{text}: {throughput}");
        }
        assert!(!throughput.contains("ractor"), "it has no figure");
        assert!(throughput.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn missing_measurements_are_not_drawn() {
        assert_eq!(draw_all(&Map::new()), Ok(Vec::new()));
    }
}
