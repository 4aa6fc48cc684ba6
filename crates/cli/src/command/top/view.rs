//! The state of the view, and its changes by keys.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::snapshot::TopSnapshot;

/// The figure by which actors are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sort {
    /// Messages waiting in the mailbox.
    Depth,
    /// Messages handled per second.
    Rate,
    /// Share of one CPU.
    Busy,
    /// Estimated memory of the actor.
    Memory,
    /// Number of restarts.
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

/// The state of the screen.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) sort: Sort,
    pub(super) filter: String,
    /// The filter being typed, which is not applied yet.
    pub(super) typed: Option<String>,
    pub(super) tree: bool,
    pub(super) paused: bool,
    /// Number of rows above the screen.
    pub(super) scrolled: usize,
    pub(super) snapshot: Option<TopSnapshot>,
    pub(super) problem: Option<String>,
}

/// The consequence of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyOutcome {
    Stay,
    /// The node must be asked with new parameters.
    Ask,
    Quit,
}

/// Number of rows that page keys scroll.
const PAGE: usize = 10;

/// Maximum length of the filter.
const MAX_FILTER: usize = 200;

impl View {
    pub(super) const fn new(sort: Sort, filter: String) -> Self {
        Self {
            sort,
            filter,
            typed: None,
            tree: false,
            paused: false,
            scrolled: 0,
            snapshot: None,
            problem: None,
        }
    }

    /// Returns the filter as a path pattern: a plain word matches within any key.
    pub(super) fn pattern(&self) -> Option<String> {
        match self.filter.as_str() {
            "" => None,
            filter if filter.contains(['*', '/']) => Some(filter.to_owned()),
            word => Some(format!("/**/*{word}*/**")),
        }
    }

    /// Takes an answer of the node, or the error in its place.
    pub(super) fn set_answer(&mut self, answer: Result<TopSnapshot, String>) {
        match answer {
            Ok(_) if self.paused => {}
            Ok(snapshot) => {
                self.snapshot = Some(snapshot);
                self.problem = None;
            }
            Err(problem) => self.problem = Some(problem),
        }
    }

    pub(super) fn event(&mut self, event: &Event) -> KeyOutcome {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(*key),
            _ => KeyOutcome::Stay,
        }
    }

    fn key(&mut self, key: KeyEvent) -> KeyOutcome {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return KeyOutcome::Quit;
        }
        if let Some(typed) = &mut self.typed {
            match key.code {
                KeyCode::Char(letter) if !control && typed.len() < MAX_FILTER => typed.push(letter),
                KeyCode::Backspace => drop(typed.pop()),
                KeyCode::Esc => self.typed = None,
                KeyCode::Enter => {
                    self.filter = self.typed.take().unwrap_or_default();
                    self.scrolled = 0;
                    return KeyOutcome::Ask;
                }
                _ => {}
            }
            return KeyOutcome::Stay;
        }
        match key.code {
            KeyCode::Char('q') => return KeyOutcome::Quit,
            KeyCode::Char('t') => self.tree = !self.tree,
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('/') => self.typed = Some(self.filter.clone()),
            KeyCode::Esc if !self.filter.is_empty() => {
                self.filter.clear();
                return KeyOutcome::Ask;
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
                    return KeyOutcome::Ask;
                }
            }
            _ => {}
        }
        KeyOutcome::Stay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(view: &mut View, code: KeyCode) -> KeyOutcome {
        view.event(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    #[test]
    fn keys_sort_filter_and_quit() {
        let mut view = View::new(Sort::Depth, String::new());
        assert_eq!(press(&mut view, KeyCode::Char('m')), KeyOutcome::Ask);
        assert_eq!(view.sort, Sort::Memory);
        assert_eq!(press(&mut view, KeyCode::Char('/')), KeyOutcome::Stay);
        for letter in "qt".chars() {
            assert_eq!(press(&mut view, KeyCode::Char(letter)), KeyOutcome::Stay);
        }
        assert_eq!(press(&mut view, KeyCode::Enter), KeyOutcome::Ask);
        assert_eq!(view.pattern().as_deref(), Some("/**/*qt*/**"));
        assert_eq!(press(&mut view, KeyCode::Esc), KeyOutcome::Ask);
        assert_eq!(view.pattern(), None);
        assert_eq!(press(&mut view, KeyCode::Char('q')), KeyOutcome::Quit);
        let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(view.event(&Event::Key(ctrl_c)), KeyOutcome::Quit);
    }

    #[test]
    fn escape_restores_the_filter() {
        let mut view = View::new(Sort::Depth, "n4".to_owned());
        press(&mut view, KeyCode::Char('/'));
        press(&mut view, KeyCode::Backspace);
        press(&mut view, KeyCode::Esc);
        assert_eq!((view.filter.as_str(), view.typed), ("n4", None));
    }
}
