//! What is shown, and what keys do to it.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::reading::Reading;

/// What comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sort {
    /// What waits.
    Depth,
    /// Messages a second.
    Rate,
    /// Time at work.
    Busy,
    /// The memory estimate.
    Memory,
    /// Restarts.
    Restarts,
}

impl Sort {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Depth => "depth",
            Self::Rate => "rate",
            Self::Busy => "busy",
            Self::Memory => "memory",
            Self::Restarts => "restarts",
        }
    }

    fn of_key(key: char) -> Option<Self> {
        Some(match key {
            'd' => Self::Depth,
            'r' => Self::Rate,
            'b' => Self::Busy,
            'm' => Self::Memory,
            'x' => Self::Restarts,
            _ => return None,
        })
    }
}

/// What the screen shows.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) sort: Sort,
    pub(super) filter: String,
    /// What is typed at the moment in place of the filter.
    pub(super) typed: Option<String>,
    pub(super) tree: bool,
    pub(super) paused: bool,
    /// How many rows are above the screen.
    pub(super) scrolled: usize,
    pub(super) reading: Option<Reading>,
    pub(super) problem: Option<String>,
}

/// What follows from a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    /// The node is to be asked something else.
    Ask,
    Quit,
}

/// How far page keys scroll.
const PAGE: usize = 10;

/// The longest filter.
const LONGEST: usize = 200;

impl View {
    pub(super) const fn new(sort: Sort, filter: String) -> Self {
        Self {
            sort,
            filter,
            typed: None,
            tree: false,
            paused: false,
            scrolled: 0,
            reading: None,
            problem: None,
        }
    }

    /// The filter as a pattern of paths: a plain word is looked for in every key.
    pub(super) fn pattern(&self) -> Option<String> {
        match self.filter.as_str() {
            "" => None,
            filter if filter.contains(['*', '/']) => Some(filter.to_owned()),
            word => Some(format!("/**/*{word}*/**")),
        }
    }

    /// Takes an answer of the node.
    pub(super) fn take(&mut self, answer: Result<Reading, String>) {
        match answer {
            Ok(_) if self.paused => {}
            Ok(reading) => {
                self.reading = Some(reading);
                self.problem = None;
            }
            Err(problem) => self.problem = Some(problem),
        }
    }

    pub(super) fn event(&mut self, event: &Event) -> Next {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(*key),
            _ => Next::Stay,
        }
    }

    fn key(&mut self, key: KeyEvent) -> Next {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Next::Quit;
        }
        if let Some(typed) = &mut self.typed {
            match key.code {
                KeyCode::Char(letter) if !control && typed.len() < LONGEST => typed.push(letter),
                KeyCode::Backspace => drop(typed.pop()),
                KeyCode::Esc => self.typed = None,
                KeyCode::Enter => {
                    self.filter = self.typed.take().unwrap_or_default();
                    self.scrolled = 0;
                    return Next::Ask;
                }
                _ => {}
            }
            return Next::Stay;
        }
        match key.code {
            KeyCode::Char('q') => return Next::Quit,
            KeyCode::Char('t') => self.tree = !self.tree,
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('/') => self.typed = Some(self.filter.clone()),
            KeyCode::Esc if !self.filter.is_empty() => {
                self.filter.clear();
                return Next::Ask;
            }
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::Down => self.scrolled += 1,
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(PAGE),
            KeyCode::PageDown => self.scrolled += PAGE,
            KeyCode::Home => self.scrolled = 0,
            KeyCode::Char(letter) => {
                if let Some(sort) = Sort::of_key(letter) {
                    self.sort = sort;
                    self.scrolled = 0;
                    return Next::Ask;
                }
            }
            _ => {}
        }
        Next::Stay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(view: &mut View, code: KeyCode) -> Next {
        view.event(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    #[test]
    fn keys_sort_filter_and_quit() {
        let mut view = View::new(Sort::Depth, String::new());
        assert_eq!(press(&mut view, KeyCode::Char('m')), Next::Ask);
        assert_eq!(view.sort, Sort::Memory);
        assert_eq!(press(&mut view, KeyCode::Char('/')), Next::Stay);
        for letter in "qt".chars() {
            assert_eq!(press(&mut view, KeyCode::Char(letter)), Next::Stay);
        }
        assert_eq!(press(&mut view, KeyCode::Enter), Next::Ask);
        assert_eq!(view.pattern().as_deref(), Some("/**/*qt*/**"));
        assert_eq!(press(&mut view, KeyCode::Esc), Next::Ask);
        assert_eq!(view.pattern(), None);
        assert_eq!(press(&mut view, KeyCode::Char('q')), Next::Quit);
        let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(view.event(&Event::Key(ctrl_c)), Next::Quit);
    }

    #[test]
    fn escape_leaves_the_filter_as_it_was() {
        let mut view = View::new(Sort::Depth, "n4".to_owned());
        press(&mut view, KeyCode::Char('/'));
        press(&mut view, KeyCode::Backspace);
        press(&mut view, KeyCode::Esc);
        assert_eq!((view.filter.as_str(), view.typed), ("n4", None));
    }
}
