//! `cargo xtask picture`: runs the demo and draws its output as `docs/demo.svg`.

use std::fmt::Write;
use std::process::Stdio;

use crate::project::Project;
use crate::{Outcome, demo, step, term};

/// Columns and rows of the drawn terminal.
const COLUMNS: usize = 100;
const ROWS: usize = 24;

/// Runs the demo for some seconds and draws its output.
pub(crate) fn run(project: &Project) -> Outcome {
    let args = ["demo", "--for", "8s", "--port", "0"];
    let mut command = demo::strowger(project, &args);
    let text = step::output(command.stdin(Stdio::null()))?;
    let file = project.root().join("docs/demo.svg");
    std::fs::write(
        &file,
        svg(&format!("cargo run --release -- {}", args.join(" ")), &text),
    )
    .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    term::line(&text);
    Ok(())
}

/// Draws a terminal with a command and its output.
fn svg(command: &str, printed: &str) -> String {
    let mut lines = vec![format!("$ {command}")];
    lines.extend(shown(printed));
    if lines.len() > ROWS {
        // The beginning has the addresses, the end the results.
        let cut = lines.len() - ROWS + 1;
        lines.splice(ROWS / 2..ROWS / 2 + cut, [String::from("...")]);
    }
    let (width, height) = (COLUMNS * 8 + 32, lines.len() * 20 + 40);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"13\" \
         fill=\"#d7dae0\" xml:space=\"preserve\">\n",
        escaped(command),
    );
    for (row, line) in lines.iter().enumerate() {
        let y = 34 + row * 20;
        let fill = if row == 0 { " fill=\"#8fd694\"" } else { "" };
        let _ = writeln!(
            svg,
            "<text x=\"16\" y=\"{y}\"{fill}>{}</text>",
            escaped(line)
        );
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// Returns what a terminal would show: a carriage return overwrites its line, colours are left out,
/// and lines end at the edge.
fn shown(printed: &str) -> Vec<String> {
    let plain = without_escapes(printed);
    plain
        .trim_end()
        .lines()
        .map(|line| {
            line.trim_end_matches('\r')
                .rsplit('\r')
                .next()
                .unwrap_or_default()
        })
        .map(|line| line.chars().take(COLUMNS).collect())
        .collect()
}

fn without_escapes(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\x1b' {
            // Control sequences end with a letter.
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    plain
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_lines_show_their_last_state() {
        assert_eq!(shown("a\r\x1b[2Kb\nc\n\n"), ["b", "c"]);
        assert_eq!(shown("\x1b[1;31mred\x1b[0m"), ["red"]);
    }

    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let printed: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let svg = svg("demo", &printed);
        assert_eq!(svg.matches("<text").count(), ROWS);
        for line in ["$ demo", ">line 0<", ">...<", ">line 99<"] {
            assert!(svg.contains(line), "{svg}");
        }
    }

    #[test]
    fn markup_is_escaped() {
        assert!(svg("a < b & c", "").contains("a &lt; b &amp; c"));
    }
}
