//! The drawn screen.

use std::collections::BTreeMap;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table};

use super::snapshot::{self, ActorRow, TopSnapshot};
use super::view::{Sort, View};

const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const ALARM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// Maximum number of late asks on the screen.
const LATE_ROWS: usize = 5;

/// Draws the view: totals, limits, the actors, asks that are late, and a line for keys.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let late = view.snapshot.as_ref().map_or_else(Vec::new, late_asks);
    let heights = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(u16::try_from(late.len()).unwrap_or(0)),
        Constraint::Length(1),
    ];
    let [totals, limits, actors, asks, keys] = Layout::vertical(heights).areas(frame.area());
    frame.render_widget(Paragraph::new(late), asks);
    if let Some(snapshot) = &view.snapshot {
        let summary = super::printable(&snapshot.summary());
        frame.render_widget(Paragraph::new(Line::styled(summary, BOLD)), totals);
        frame.render_widget(Paragraph::new(usage_line(snapshot)), limits);
        frame.render_widget(table(view, snapshot, actors), actors);
    } else {
        frame.render_widget(Paragraph::new("waiting for the first reading"), totals);
    }
    frame.render_widget(Paragraph::new(bottom_line(view)), keys);
}

fn usage_line(snapshot: &TopSnapshot) -> Line<'static> {
    let mut line = Line::default();
    for limit in &snapshot.limits {
        let style = if limit.is_alarming() { ALARM } else { FAINT };
        line.push_span(Span::styled(limit.text(), style));
        line.push_span("   ");
    }
    line
}

/// Returns a line for each of the oldest asks that are late.
fn late_asks(snapshot: &TopSnapshot) -> Vec<Line<'static>> {
    let lines = snapshot.late_asks.iter().take(LATE_ROWS).map(|ask| {
        let [asker, callee, age] = ask.cells().map(|cell| super::printable(&cell));
        Line::styled(format!("{asker} waits for {callee}: {age}"), ALARM)
    });
    lines.collect()
}

/// Columns besides the path, with their widths.
const COLUMNS: [(&str, Sort, u16); 5] = [
    ("waiting", Sort::Depth, 10),
    ("msg/s", Sort::Rate, 7),
    ("busy", Sort::Busy, 7),
    ("memory", Sort::Memory, 9),
    ("restarts", Sort::Restarts, 8),
];

fn table(view: &View, snapshot: &TopSnapshot, area: Rect) -> Table<'static> {
    let taken: u16 = COLUMNS.iter().map(|(_, _, width)| width + 1).sum();
    let path = usize::from(area.width.saturating_sub(taken));
    let lines = match view.tree {
        true => tree_rows(&snapshot.rows, path),
        false => snapshot
            .rows
            .iter()
            .map(|row| actor_row(&row.path, path, row))
            .collect(),
    };
    let height = usize::from(area.height.saturating_sub(1)).max(1);
    let hidden = view.scrolled.min(lines.len().saturating_sub(height));
    let head = COLUMNS.iter().map(|(name, sort, _)| {
        let style = if *sort == view.sort {
            BOLD.add_modifier(Modifier::UNDERLINED)
        } else {
            FAINT
        };
        right_aligned((*name).to_owned(), style)
    });
    let head = [Cell::from("path").style(FAINT)].into_iter().chain(head);
    let widths = COLUMNS
        .iter()
        .map(|(_, _, width)| Constraint::Length(*width));
    let widths = [Constraint::Min(10)].into_iter().chain(widths);
    Table::new(lines.into_iter().skip(hidden).take(height), widths)
        .header(TableRow::new(head))
        .column_spacing(1)
}

/// Returns the row of an actor. The path and the notes behind it share a width of `room`.
fn actor_row(path: &str, room: usize, row: &ActorRow) -> TableRow<'static> {
    let mut behind = Vec::new();
    if row.state != "running" {
        behind.push(Span::styled(format!(" {}", row.state), ALARM));
    }
    if let Some(note) = row.note() {
        behind.push(Span::styled(format!(" {note}"), FAINT));
    }
    let taken: usize = behind.iter().map(Span::width).sum();
    let mut spans = vec![Span::raw(shorten_path(
        path,
        room.saturating_sub(taken).max(MIN_PATH_WIDTH),
    ))];
    spans.append(&mut behind);
    let path = Cell::from(Line::from(spans));
    let plain = Style::new();
    TableRow::new([
        path,
        right_aligned(
            row.mailbox_text(),
            if row.is_alarming() { ALARM } else { plain },
        ),
        right_aligned(snapshot::number(row.rate), plain),
        right_aligned(row.load_text(), plain),
        right_aligned(row.memory_text(), plain),
        right_aligned(row.restarts.to_string(), plain),
    ])
}

/// Minimum width of a path, whatever the notes behind it.
const MIN_PATH_WIDTH: usize = 16;

fn right_aligned(text: String, style: Style) -> Cell<'static> {
    Cell::from(Line::styled(text, style).right_aligned())
}

/// Shortens a path from its beginning: its end tells which actor it is.
fn shorten_path(path: &str, width: usize) -> String {
    let path = super::printable(path);
    let length = path.chars().count();
    if length <= width {
        return path;
    }
    let kept = path.chars().skip(length + 1 - width.max(1));
    ['…'].into_iter().chain(kept).collect()
}

/// Returns the actors as a tree. Parents that are not among the rows appear by name only.
fn tree_rows(rows: &[ActorRow], width: usize) -> Vec<TableRow<'static>> {
    let mut nodes: BTreeMap<Vec<&str>, Option<&ActorRow>> = BTreeMap::new();
    for row in rows {
        let keys: Vec<&str> = row.path.split('/').filter(|key| !key.is_empty()).collect();
        for length in 1..keys.len() {
            nodes.entry(keys[..length].to_vec()).or_default();
        }
        nodes.insert(keys, Some(row));
    }
    let line = |(keys, row): (&Vec<&str>, &Option<&ActorRow>)| {
        let indent = "  ".repeat(keys.len().saturating_sub(1));
        let key = keys.last().copied().unwrap_or("/");
        match row {
            Some(row) => actor_row(&format!("{indent}{key}"), width, row),
            None => {
                let text = format!(
                    "{indent}{}",
                    shorten_path(key, width.saturating_sub(indent.len()))
                );
                TableRow::new([Cell::from(text).style(FAINT)])
            }
        }
    };
    nodes.iter().map(line).collect()
}

fn bottom_line(view: &View) -> Line<'static> {
    if let Some(typed) = &view.typed {
        return Line::from(format!("filter: {typed}_  (enter: apply, escape: cancel)"));
    }
    if let Some(problem) = &view.problem {
        return Line::styled(super::printable(problem), ALARM);
    }
    let mut text = "d r b m x sort  t tree  / filter  space pause  q quit".to_owned();
    if !view.filter.is_empty() {
        text.push_str(&format!("  filter: {}", super::printable(&view.filter)));
    }
    let mut line = Line::styled(text, FAINT);
    if view.paused {
        line.push_span(Span::styled("  paused", BOLD));
    }
    line
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::buffer::Buffer;
    use serde_json::json;

    use super::*;

    fn row(path: &str, depth: u64, capacity: Option<u64>) -> serde_json::Value {
        json!({
            "path": path, "state": "running", "depth": depth, "capacity": capacity,
            "rate": 1234.5, "load": 0.25, "memory": 2048, "restarts": 3,
        })
    }

    fn view(rows: &[serde_json::Value]) -> View {
        let snapshot = TopSnapshot::of(json!({
            "name": "upf-1",
            "totals": {
                "actors": 12, "depth": 34, "nearly_full": 1, "dropped": 0, "restarts": 5,
                "memory": 3_000_000, "rate": 45_678.0, "load": 1.5,
            },
            "limits": [
                { "name": "memory", "used": 1e9, "most": 4e9 },
                { "name": "sessions", "used": 90.0, "most": 100.0 },
            ],
            "rows": rows,
        }));
        let mut view = View::new(Sort::Depth, String::new());
        view.set_answer(snapshot.map_err(|error| error.to_string()));
        view
    }

    fn drawn(view: &View, width: u16, height: u16) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        terminal.backend().buffer().clone()
    }

    fn lines(buffer: &Buffer) -> Vec<String> {
        let width = usize::from(buffer.area.width);
        let rows = buffer.content.chunks(width);
        let line =
            |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect();
        rows.map(|cells| {
            let line: String = line(cells);
            line.trim_end().to_owned()
        })
        .collect()
    }

    fn is_red(buffer: &Buffer, text: &str) -> bool {
        let lines = lines(buffer);
        let y = lines
            .iter()
            .position(|line| line.contains(text))
            .expect(text);
        let x = lines[y].split(text).next().unwrap().chars().count();
        buffer[(u16::try_from(x).unwrap(), u16::try_from(y).unwrap())].fg == Color::Red
    }

    #[test]
    fn everything_fits_in_80_by_24() {
        let rows = [row("/node/n4", 9, Some(1024)), row("/gateway", 0, None)];
        let shown = lines(&drawn(&view(&rows), 80, 24));
        assert_eq!(shown.len(), 24);
        assert_eq!(
            shown[0],
            "upf-1: 12 actors, 34 waiting, 45.7k msg/s, 1.50 threads busy, 2.9 MiB, 5 restart"
        );
        assert_eq!(
            shown[1],
            "memory 953.7 MiB of 3.7 GiB (25 %)   sessions 90 of 100 (90 %)"
        );
        assert_eq!(
            shown[2],
            "path                                  waiting   msg/s    busy    memory restarts"
        );
        assert_eq!(
            shown[3],
            "/node/n4                               9/1024    1234  25.0 %   2.0 KiB        3"
        );
        assert_eq!(
            shown[23],
            "d r b m x sort  t tree  / filter  space pause  q quit"
        );
    }

    #[test]
    fn component_row_shows_memory_calls_and_faults() {
        let mut guest = row("/components/qos-cap/guest", 0, Some(1024));
        guest["component"] = json!({ "calls": 12_345, "faults": 2, "memory": 1_114_112 });
        let shown = lines(&drawn(&view(std::slice::from_ref(&guest)), 100, 24));
        assert!(
            shown[3].starts_with("/components/qos-cap/guest 12.3k calls, 2 faults "),
            "{}",
            shown[3]
        );
        assert!(shown[3].contains(" 1.1 MiB "), "{}", shown[3]);
        guest["component"]["cpu_ms"] = json!(12_300);
        guest["component"]["heavy"] = json!(true);
        let shown = lines(&drawn(&view(std::slice::from_ref(&guest)), 120, 24));
        assert!(
            shown[3].contains("2 faults, 12 s on guest threads "),
            "{}",
            shown[3]
        );
        guest["component"]["throttled"] = json!(7);
        let shown = lines(&drawn(&view(&[guest]), 120, 24));
        assert!(
            shown[3].contains("2 faults, 12 s CPU, throttled 7 "),
            "{}",
            shown[3]
        );
    }

    #[test]
    fn tool_row_shows_calls_refusals_and_failures() {
        let mut files = row("/tools/files", 0, Some(1024));
        files["tool"] = json!({ "calls": 40, "refused": 3, "failed": 0 });
        let shown = lines(&drawn(&view(&[files.clone()]), 100, 24));
        assert!(
            shown[3].starts_with("/tools/files 40 calls, 3 refused "),
            "{}",
            shown[3]
        );
        files["tool"]["quota"] = json!([
            { "name": "octets", "used": 250, "most": 1000 },
            { "name": "entries", "used": 90, "most": 100 },
        ]);
        let shown = lines(&drawn(&view(&[files]), 100, 24));
        let expected = "/tools/files 40 calls, 3 refused, 90 % of entries ";
        assert!(shown[3].starts_with(expected), "{}", shown[3]);
    }

    #[test]
    fn late_asks_are_below_the_actors() {
        let asks = json!([
            { "asker": "/tools/a", "callee": "/n4", "age_ms": 61_000 },
            { "asker": null, "callee": "/n4", "age_ms": 1500 },
        ]);
        let mut view = view(&[row("/a", 1, None)]);
        if let Some(snapshot) = &mut view.snapshot {
            snapshot.late_asks = serde_json::from_value(asks).expect("as the node answers");
            snapshot.totals.late_asks = 2;
        }
        let buffer = drawn(&view, 100, 24);
        let shown = lines(&buffer);
        assert_eq!(shown[21], "/tools/a waits for /n4: 61 s");
        assert_eq!(shown[22], "a task waits for /n4: 1.5 s");
        assert!(shown[0].contains(" waiting, 2 asks late, "), "{}", shown[0]);
        assert!(is_red(&buffer, "/tools/a waits"));
    }

    #[test]
    fn usage_near_a_limit_is_red() {
        let rows = [row("/full", 85, Some(100)), row("/calm", 84, Some(100))];
        let buffer = drawn(&view(&rows), 80, 24);
        assert!(is_red(&buffer, "85/100"));
        assert!(!is_red(&buffer, "84/100"));
        assert!(is_red(&buffer, "sessions 90"));
        assert!(!is_red(&buffer, "memory 953"));
    }

    #[test]
    fn tree_shows_the_parents_of_actors() {
        let mut view = view(&[
            row("/b/c/d", 1, None),
            row("/a", 2, None),
            row("/b", 3, None),
        ]);
        view.tree = true;
        let shown = lines(&drawn(&view, 80, 24));
        let first = |line: &String| line.split_whitespace().next().unwrap_or("").to_owned();
        let keys: Vec<String> = shown[3..7].iter().map(first).collect();
        assert_eq!(keys, ["a", "b", "c", "d"]);
        assert!(
            shown[5].starts_with("  c") && shown[5].trim() == "c",
            "{:?}",
            shown[5]
        );
        assert!(shown[6].starts_with("    d"));
    }

    #[test]
    fn long_path_keeps_its_end_without_control_characters() {
        let path = format!("/{}/\u{1b}[31m0x2a", "x".repeat(100));
        let shown = lines(&drawn(&view(&[row(&path, 1, None)]), 80, 24));
        assert!(shown[3].starts_with('…'), "{}", shown[3]);
        assert!(shown[3].contains("/?[31m0x2a "), "{}", shown[3]);
    }

    #[test]
    fn scrolling_stops_at_the_last_actor_and_small_screens_work() {
        let rows: Vec<_> = (0..50).map(|n| row(&format!("/a{n}"), 1, None)).collect();
        let mut view = view(&rows);
        view.scrolled = 1000;
        let shown = lines(&drawn(&view, 80, 24));
        assert!(shown[22].starts_with("/a49 "), "{}", shown[22]);
        for (width, height) in [(1, 1), (10, 2), (20, 4), (300, 100)] {
            drawn(&view, width, height);
        }
    }

    #[test]
    fn problem_replaces_the_line_of_keys() {
        let mut view = view(&[]);
        view.set_answer(Err("the node closed the connection".to_owned()));
        let buffer = drawn(&view, 80, 24);
        assert!(is_red(&buffer, "the node closed"));
        assert_eq!(
            lines(&buffer)[0].split(':').next(),
            Some("upf-1"),
            "the last figures stay"
        );
    }
}
