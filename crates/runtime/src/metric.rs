//! What is counted for the `metrics` facade: turns in the lives of actors, never single messages.

use metrics::{Counter, counter, describe_counter, describe_gauge, gauge};

use crate::exit::Exit;

/// Something that is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Count<'a> {
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

/// Counts it. Without a recorder this costs a load.
pub(crate) fn count(turn: Count<'_>) {
    match turn {
        Count::Started => {
            counter!(STARTED).increment(1);
            gauge!(ACTORS).increment(1);
        }
        Count::Stopped(exit) => {
            stopped(exit).increment(1);
            gauge!(ACTORS).decrement(1);
        }
        Count::Restarted => counter!(RESTARTS).increment(1),
        Count::Escalated => counter!(ESCALATIONS).increment(1),
        Count::DeadLetters(letters) => counter!(DEAD_LETTERS).increment(letters),
        Count::Expired(messages) => {
            counter!(DEAD_LETTERS).increment(messages);
            counter!(EXPIRED).increment(messages);
        }
        Count::LongHandler => counter!(LONG_HANDLERS).increment(1),
        Count::Overflow(messages) => counter!(OVERFLOW).increment(messages),
    }
}

/// The counter for the kind of an exit. Each has a label of its own that is known beforehand, so
/// that no key is put together for each stop.
fn stopped(exit: &Exit) -> Counter {
    match exit {
        Exit::Normal => counter!(STOPPED, "exit" => "normal"),
        Exit::Shutdown => counter!(STOPPED, "exit" => "shutdown"),
        Exit::Killed => counter!(STOPPED, "exit" => "killed"),
        Exit::Failed(_) => counter!(STOPPED, "exit" => "failed"),
        Exit::Panicked(_) => counter!(STOPPED, "exit" => "panicked"),
        Exit::Linked { .. } => counter!(STOPPED, "exit" => "linked"),
        Exit::Escalated { .. } => counter!(STOPPED, "exit" => "escalated"),
    }
}

/// Tells the recorder what the names mean.
pub(crate) fn describe() {
    describe_gauge!(ACTORS, "Actors that live, supervisors included.");
    describe_counter!(
        STARTED,
        "Actors that were started; a restart does not count."
    );
    describe_counter!(
        STOPPED,
        "Actors that ended for good, by the kind of their exit."
    );
    describe_counter!(RESTARTS, "Restarts of actors by their supervisors.");
    describe_counter!(ESCALATIONS, "Supervisors that gave up on a child.");
    describe_counter!(DEAD_LETTERS, "Messages that nobody handled.");
    describe_counter!(
        EXPIRED,
        "Of those, messages whose time had passed, or whose asker had gone."
    );
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
    fn every_name_is_in_the_document_and_no_other() {
        let document = include_str!("../../../docs/metrics.md");
        // The rest of the page is about a node, which has a test of its own.
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
