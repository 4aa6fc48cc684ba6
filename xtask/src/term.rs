//! Output of the verbs: plain lines, with colours only if a terminal shows them.

use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Prints a line of the verb's result.
pub(crate) fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    // A closed pipe (`cargo xtask test | head`) is the reader's choice, not an error.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints a line about progress, separate from the result of a verb.
pub(crate) fn note(text: &str) {
    // Not through a lock: a test harness captures only what `eprintln` writes.
    eprintln!("{text}");
}

/// Prints the reason why the verb failed.
pub(crate) fn error(text: &str) {
    note(&format!("{} {text}", paint(TextStyle::Red, "error:")));
}

/// The colours in use, each with one meaning.
#[derive(Clone, Copy)]
pub(crate) enum TextStyle {
    Red,
    Green,
    Yellow,
    Bold,
}

/// Colours the text, if standard error is a terminal or colour was requested.
pub(crate) fn paint(style: TextStyle, text: &str) -> String {
    let asked = std::env::var("CARGO_TERM_COLOR").ok();
    let coloured = match asked.as_deref() {
        Some("always") => true,
        Some("never") => false,
        _ => std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    if !coloured {
        return text.to_owned();
    }
    let code = match style {
        TextStyle::Red => "1;31",
        TextStyle::Green => "32",
        TextStyle::Yellow => "33",
        TextStyle::Bold => "1",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Formats a duration for people: `0.4 s`, `12 s`, `3 min 05 s`.
pub(crate) fn format_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..=9 => format!("{:.1} s", time.as_secs_f64()),
        10..=119 => format!("{seconds} s"),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_for_people() {
        assert_eq!(format_duration(Duration::from_millis(420)), "0.4 s");
        assert_eq!(format_duration(Duration::from_secs(61)), "61 s");
        assert_eq!(format_duration(Duration::from_secs(185)), "3 min 05 s");
    }
}
