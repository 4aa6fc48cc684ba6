//! The terminal: acquired, and restored to its previous state however the program ends.

use std::io::{self, Stdout, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use tokio::sync::mpsc;

use super::draw;
use super::view::View;

/// `true` while this program has the terminal in raw mode.
static IS_RAW: AtomicBool = AtomicBool::new(false);

/// The terminal in raw mode; restored on drop, and before a panic is printed.
pub(super) struct Screen(Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    pub(super) fn enter() -> io::Result<Self> {
        restore_before_panics();
        enable_raw_mode()?;
        IS_RAW.store(true, Ordering::SeqCst);
        let made = execute!(stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        made.map(Self).inspect_err(|_| restore())
    }

    pub(super) fn draw(&mut self, view: &View) -> io::Result<()> {
        self.0.draw(|frame| draw::draw(frame, view)).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal before the message of a panic is printed.
fn restore_before_panics() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        tell(panic);
    }));
}

/// Restores the terminal, once.
fn restore() {
    if IS_RAW.swap(false, Ordering::SeqCst) {
        // Errors of a closed terminal cannot be handled.
        let _ = disable_raw_mode();
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    }
}

/// Keyboard input, read by a thread that ends with this value.
pub(super) struct KeyInput {
    events: mpsc::Receiver<Event>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Interval at which the thread checks whether it should end.
const STOP_CHECK: Duration = Duration::from_millis(50);

impl KeyInput {
    pub(super) fn listen() -> io::Result<Self> {
        let (send, events) = mpsc::channel(64);
        let end = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&end);
        let thread = std::thread::Builder::new().name("keys".to_owned());
        let thread = thread.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                match event::poll(STOP_CHECK).and_then(|any| any.then(event::read).transpose()) {
                    Ok(None) => {}
                    // Drop keys if the channel is full, instead of blocking.
                    Ok(Some(event)) => drop(send.try_send(event)),
                    Err(_) => return,
                }
            }
        })?;
        Ok(Self {
            events,
            end,
            thread: Some(thread),
        })
    }

    /// Returns the next event, or `None` if the terminal is closed.
    pub(super) async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

impl Drop for KeyInput {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been reported.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_is_printed_after_the_terminal_is_restored() {
        let held = Arc::new(AtomicBool::new(true));
        let seen = Arc::clone(&held);
        let old = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |_| {
            seen.store(IS_RAW.load(Ordering::SeqCst), Ordering::SeqCst);
        }));
        restore_before_panics();
        IS_RAW.store(true, Ordering::SeqCst);
        let panicked = std::panic::catch_unwind(|| panic!("drawn badly"));
        std::panic::set_hook(old);
        assert!(panicked.is_err());
        assert!(
            !held.load(Ordering::SeqCst),
            "the hook that tells ran on our screen"
        );
    }
}
