//! Tables with columns as wide as they need.

use super::{Output, TextStyle};
use crate::exit::CliResult;

/// A table under a line of headings.
#[derive(Debug)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates an empty table with these headings.
    pub fn new<'a>(headings: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            headings: headings.into_iter().map(str::to_uppercase).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, with a cell for each heading.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Prints the table; columns of numbers are right-aligned.
    ///
    /// # Errors
    /// A [`Failure`](crate::exit::Failure) if the output cannot be written.
    pub fn print(&self, output: &mut Output) -> CliResult {
        let columns: Vec<Column> = (0..self.headings.len()).map(|at| self.column(at)).collect();
        let headings = line(&columns, &self.headings);
        let headings = output.paint(TextStyle::Bold, headings);
        output.line(headings)?;
        for row in &self.rows {
            output.line(line(&columns, row))?;
        }
        Ok(())
    }

    fn column(&self, at: usize) -> Column {
        let cells = || self.rows.iter().filter_map(move |row| row.get(at));
        let heading = self.headings[at].chars().count();
        Column {
            width: cells()
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
                .max(heading),
            right: !self.rows.is_empty() && cells().all(|cell| is_number(cell)),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Column {
    width: usize,
    right: bool,
}

fn line(columns: &[Column], cells: &[String]) -> String {
    let mut text = String::new();
    for (column, cell) in columns.iter().zip(cells) {
        let Column { width, right } = *column;
        if !text.is_empty() {
            text.push_str("  ");
        }
        if right {
            text.push_str(&format!("{cell:>width$}"));
        } else {
            text.push_str(&format!("{cell:<width$}"));
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Returns `true` for `12`, `1.5` and `-`, and with a unit for `12 us` and `3 %`.
fn is_number(cell: &str) -> bool {
    let (number, unit) = cell.split_once(' ').unwrap_or((cell, ""));
    let number = number == "-" || number.parse::<f64>().is_ok();
    number && matches!(unit, "" | "us" | "ms" | "s" | "%" | "/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_right_aligned() {
        let mut table = Table::new(["peer", "sent"]);
        table.row(["127.0.0.1".to_owned(), "7".to_owned()]);
        table.row(["::1".to_owned(), "1000".to_owned()]);
        let columns: Vec<Column> = (0..2).map(|at| table.column(at)).collect();
        assert_eq!(line(&columns, &table.headings), "PEER       SENT");
        assert_eq!(line(&columns, &table.rows[0]), "127.0.0.1     7");
        assert_eq!(line(&columns, &table.rows[1]), "::1        1000");
    }

    #[test]
    fn addresses_are_not_aligned_as_numbers() {
        for (cell, number) in [
            ("10.0.0.1", false),
            ("1.5", true),
            ("12 us", true),
            ("-", true),
        ] {
            assert_eq!(is_number(cell), number, "{cell}");
        }
    }
}
