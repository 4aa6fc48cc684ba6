//! Counters for the `metrics` facade: lifecycle events of actors, never single messages.

use metrics::{
    Gauge, Key, Label, Level, Metadata, describe_counter, describe_gauge, with_recorder,
};

use crate::exit::Exit;

/// A countable occurrence.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MetricEvent<'a> {
    Started,
    Stopped(&'a Exit),
    Restarted,
    Escalated,
    DeadLetters(u64),
    Expired(u64),
    Overflow(u64),
    LongHandler,
}

const ACTORS: &str = "strowger_actors";
const STARTED: &str = "strowger_actors_started_total";
const STOPPED: &str = "strowger_actors_stopped_total";
const RESTARTS: &str = "strowger_actor_restarts_total";
const ESCALATIONS: &str = "strowger_escalations_total";
const DEAD_LETTERS: &str = "strowger_dead_letters_total";
const EXPIRED: &str = "strowger_expired_total";
const OVERFLOW: &str = "strowger_mailbox_overflow_total";
const LONG_HANDLERS: &str = "strowger_long_handlers_total";

static METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// Counts an occurrence. Without a recorder this costs only the check for one, as all keys are
/// static.
pub(crate) fn count(turn: MetricEvent<'_>) {
    macro_rules! key {
        ($name:ident $(, $exit:literal)?) => {{
            static LABELS: &[Label] = &[$(Label::from_static_parts("exit", $exit))?];
            static KEY: Key = Key::from_static_parts($name, LABELS);
            &KEY
        }};
    }
    match turn {
        MetricEvent::Started => {
            count_and_gauge(key!(STARTED), key!(ACTORS), |actors| actors.increment(1));
        }
        MetricEvent::Stopped(exit) => {
            let key = match exit {
                Exit::Normal => key!(STOPPED, "normal"),
                Exit::Ignored => key!(STOPPED, "ignored"),
                Exit::Shutdown => key!(STOPPED, "shutdown"),
                Exit::Killed => key!(STOPPED, "killed"),
                Exit::Failed(_) => key!(STOPPED, "failed"),
                Exit::Panicked(_) => key!(STOPPED, "panicked"),
                Exit::Linked { .. } => key!(STOPPED, "linked"),
                Exit::Escalated { .. } => key!(STOPPED, "escalated"),
            };
            count_and_gauge(key, key!(ACTORS), |actors| actors.decrement(1));
        }
        MetricEvent::Restarted => add(key!(RESTARTS), 1),
        MetricEvent::Escalated => add(key!(ESCALATIONS), 1),
        MetricEvent::DeadLetters(letters) => add(key!(DEAD_LETTERS), letters),
        MetricEvent::Expired(messages) => {
            add(key!(DEAD_LETTERS), messages);
            add(key!(EXPIRED), messages);
        }
        MetricEvent::LongHandler => add(key!(LONG_HANDLERS), 1),
        MetricEvent::Overflow(messages) => add(key!(OVERFLOW), messages),
    }
}

/// Counts a start or an end, and adjusts the number of living actors.
fn count_and_gauge(counter: &'static Key, gauge: &'static Key, change: impl FnOnce(Gauge)) {
    with_recorder(|recorder| {
        recorder.register_counter(counter, &METADATA).increment(1);
        change(recorder.register_gauge(gauge, &METADATA));
    });
}

fn add(key: &'static Key, by: u64) {
    with_recorder(|recorder| recorder.register_counter(key, &METADATA)).increment(by);
}

/// Registers the descriptions of all metrics with the recorder.
pub(crate) fn describe() {
    describe_gauge!(ACTORS, "Number of running actors, including supervisors.");
    describe_counter!(
        STARTED,
        "Actors that were started; a restart does not count."
    );
    describe_counter!(
        STOPPED,
        "Actors that ended for good, by the kind of their exit."
    );
    describe_counter!(RESTARTS, "Restarts of actors by their supervisors.");
    describe_counter!(
        ESCALATIONS,
        "Supervisors that failed because a child was restarted too often."
    );
    describe_counter!(DEAD_LETTERS, "Messages that no actor handled.");
    describe_counter!(EXPIRED, "Dead letters that expired or whose asker gave up.");
    describe_counter!(
        OVERFLOW,
        "Messages that a full mailbox or a full subscriber dropped."
    );
    describe_counter!(LONG_HANDLERS, "Hooks that held their worker too long.");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_metrics_match_emitted_metrics() {
        let document = include_str!("../../../docs/metrics.md");
        // The rest of the page describes a node, which has a test of its own.
        let ours = document.split("## The runtime").nth(1);
        let ours = ours.and_then(|ours| ours.split("\n## ").next());
        let named: Vec<&str> = ours
            .expect("a chapter about the runtime")
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        let all = [
            ACTORS,
            STARTED,
            STOPPED,
            RESTARTS,
            ESCALATIONS,
            DEAD_LETTERS,
            EXPIRED,
            OVERFLOW,
            LONG_HANDLERS,
        ];
        assert_eq!(named, all);
    }
}
