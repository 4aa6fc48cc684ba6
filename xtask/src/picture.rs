//! `cargo xtask picture`: runs the demo and draws its output as `docs/demo.svg`.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::project::{self, Project};
use crate::{Outcome, chaos, step, term};

/// Columns and rows of the drawn terminal.
const COLUMNS: usize = 120;
const ROWS: usize = 24;

/// Runs the demo for some seconds and draws its output.
pub(crate) fn run(project: &Project) -> Outcome {
    let args = ["demo", "--for", "8s", "--port", "0"];
    let mut cargo = project.cargo();
    cargo.args(["build", "--release", "--locked", "--bin", "strowger"]);
    let mut command = Command::new(chaos::binary(&mut cargo)?);
    // The demo prints commands with the name under which it was started.
    command.arg0("strowger").args(args);
    let text = step::output(command.stdin(Stdio::null()))?;
    let command = format!("cargo run --release -- {}", args.join(" "));
    let svg = anstyle_svg::Term::new().render_svg(&screen(&command, &text));
    project::write(&project.root().join("docs/demo.svg"), svg)?;
    term::line(&text);
    Ok(())
}

/// Returns a screen with a command and its output: a carriage return overwrites its line, and of a
/// long output the middle is left out, because the beginning has the addresses and the end the
/// results.
fn screen(command: &str, printed: &str) -> String {
    let shown = |line: &str| {
        let line = line.trim_end_matches('\r').rsplit('\r').next();
        line.unwrap_or_default().chars().take(COLUMNS).collect()
    };
    let mut lines = vec![format!("\x1b[32m$ {command}\x1b[0m")];
    lines.extend(printed.trim_end().lines().map(shown));
    if lines.len() > ROWS {
        let cut = lines.len() - ROWS + 1;
        lines.splice(ROWS / 2..ROWS / 2 + cut, [String::from("...")]);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_lines_show_their_last_state() {
        let screen = screen("demo", "a\r\x1b[2Kb\nc\n\n");
        assert_eq!(screen, "\x1b[32m$ demo\x1b[0m\n\x1b[2Kb\nc");
    }

    #[test]
    fn long_output_keeps_its_beginning_and_its_end() {
        let printed: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let screen = screen("demo", &printed);
        let lines: Vec<&str> = screen.lines().collect();
        assert_eq!(
            (lines.len(), lines[1], lines[ROWS - 1]),
            (ROWS, "line 0", "line 99")
        );
        assert_eq!(lines[ROWS / 2], "...");
    }
}
