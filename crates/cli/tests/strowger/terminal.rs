//! `top` on a terminal, which it must leave as it found it.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, Termios, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use crate::guarded::Guarded;
use crate::running::Running;

/// A terminal of 80 by 24 characters on which a program runs.
struct Terminal {
    child: Guarded,
    keyboard: File,
    /// Our own end, so that the terminal outlives the program.
    line: File,
    before: Termios,
    shown: JoinHandle<()>,
    text: std::sync::mpsc::Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn run(args: &[&str]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("the system has terminals");
        grantpt(&master).expect("the file is accessible");
        unlockpt(&master).expect("the file is accessible");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let line = rustix::fs::open(name, flags, Mode::empty()).expect("the file is accessible");
        let line = File::from(line);
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&line, size).expect("it is a terminal");
        // An unusual mode, as some users choose it.
        let mut modes = tcgetattr(&line).expect("it is a terminal");
        modes.local_modes ^= rustix::termios::LocalModes::ECHOCTL;
        tcsetattr(&line, OptionalActions::Now, &modes).expect("it is a terminal");
        let before = tcgetattr(&line).expect("it is a terminal");
        let end = || line.try_clone().expect("there are descriptors");
        let mut command = Command::new(env!("CARGO_BIN_EXE_strowger"));
        command
            .args(args)
            .env("TERM", "xterm-256color")
            .stdin(end())
            .stdout(end())
            .stderr(end());
        let child = Guarded::spawn(&mut command);
        // With our copies of the terminal's end.
        drop(command);
        let keyboard = File::from(master);
        let mut screen = keyboard.try_clone().expect("there are descriptors");
        let (send, text) = std::sync::mpsc::channel();
        let shown = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = screen.read(&mut bytes) {
                if send.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keyboard,
            line,
            before,
            shown,
            text,
            seen: String::new(),
        }
    }

    /// Waits until this text was shown.
    fn wait_for(&mut self, text: &str) {
        while !self.seen.contains(text) {
            let more = self.text.recv_timeout(OUTPUT_TIMEOUT);
            let more = more.unwrap_or_else(|error| panic!("{text:?}: {error}: {}", self.seen));
            self.seen.push_str(&String::from_utf8_lossy(&more));
        }
        self.seen.clear();
    }

    fn press(&mut self, keys: &str) {
        let written = self.keyboard.write_all(keys.as_bytes());
        written.expect("the terminal is there");
    }

    /// Waits for the exit of the program; returns its exit code. The terminal must be as it was.
    fn ended(mut self) -> Option<i32> {
        let status = self.child.wait();
        self.wait_for(LEAVE_SCREEN);
        let after = tcgetattr(&self.line).expect("it is a terminal");
        assert_eq!(format!("{after:?}"), format!("{:?}", self.before));
        drop(self.line);
        drop(self.keyboard);
        drop(self.text);
        self.shown.join().expect("it ends with the terminal");
        status.code()
    }
}

/// Longest time until something is shown, on a busy machine.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(60);

/// The sequences that enter the alternate screen, and that leave it and restore the cursor.
const ENTER_SCREEN: &str = "\x1b[?1049h";
const LEAVE_SCREEN: &str = "\x1b[?1049l\x1b[?25h";

fn top(node: &Running) -> Terminal {
    let mut terminal = Terminal::run(&["top", "--control", &node.control]);
    terminal.wait_for(ENTER_SCREEN);
    terminal.wait_for("/node/n4");
    terminal
}

#[test]
fn top_restores_the_terminal_on_quit() {
    let node = Running::start("");
    let mut terminal = top(&node);
    terminal.press("m");
    terminal.press("/");
    terminal.wait_for("filter:");
    terminal.press("nobody\r");
    terminal.wait_for("nobody");
    terminal.press("q");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn top_restores_the_terminal_on_ctrl_c() {
    let node = Running::start("");
    let mut terminal = top(&node);
    terminal.press("\x03");
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn top_restores_the_terminal_on_a_signal() {
    let node = Running::start("");
    let terminal = top(&node);
    let id = terminal.child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status();
    assert!(sent.expect("kill is installed").success());
    assert_eq!(terminal.ended(), Some(0));
}

#[test]
fn top_reports_a_lost_node_and_continues() {
    let node = Running::start("");
    let mut terminal = top(&node);
    node.end();
    terminal.wait_for("figures are stale");
    terminal.press("q");
    assert_eq!(terminal.ended(), Some(0));
}
