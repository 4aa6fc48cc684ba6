//! Processes as `/proc` lists them.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Pid;

/// Longest description of a process, in characters.
const MAX_NAME: usize = 100;

/// The relations of a process.
struct Relations {
    pid: i32,
    parent: i32,
    group: i32,
    is_alive: bool,
}

/// Returns the living processes of a group, and their descendants in any group.
pub(super) fn members(group: Pid) -> Vec<Pid> {
    let group = group.as_raw_nonzero().get();
    select_with_descendants(|one| one.group == group || one.pid == group)
}

/// Returns the living descendants of a process.
pub(super) fn descendants(of: Pid) -> Vec<Pid> {
    let of = of.as_raw_nonzero().get();
    select_with_descendants(|one| one.parent == of)
}

/// Returns `true` if there is such a process, and it has not ended.
pub(super) fn is_alive(pid: Pid) -> bool {
    relations(pid.as_raw_nonzero().get()).is_some_and(|one| one.is_alive)
}

/// Returns the command line of a process, shortened, and its number.
pub(super) fn name(pid: Pid) -> String {
    let raw = pid.as_raw_nonzero();
    let line = fs::read(format!("/proc/{raw}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let mut short: String = line.trim_end().chars().take(MAX_NAME).collect();
    if short.len() < line.trim_end().len() {
        short.push_str("...");
    }
    format!("`{short}` (process {raw})")
}

/// Returns the living among the selected processes and their descendants.
fn select_with_descendants(is_selected: impl Fn(&Relations) -> bool) -> Vec<Pid> {
    let all = all();
    let selected = all.iter().filter(|one| is_selected(one));
    let mut found: BTreeSet<i32> = selected.map(|one| one.pid).collect();
    loop {
        let before = found.len();
        for one in &all {
            if found.contains(&one.parent) {
                found.insert(one.pid);
            }
        }
        if found.len() == before {
            break;
        }
    }
    let living = all
        .iter()
        .filter(|one| one.is_alive && found.contains(&one.pid));
    living.filter_map(|one| Pid::from_raw(one.pid)).collect()
}

fn all() -> Vec<Relations> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(relations).collect()
}

fn relations(pid: i32) -> Option<Relations> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses `PID (NAME) STATE PARENT GROUP ...`; a name may contain anything.
fn parse(pid: i32, stat: &str) -> Option<Relations> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    let state = words.next()?;
    Some(Relations {
        pid,
        parent: words.next()?.parse().ok()?,
        group: words.next()?.parse().ok()?,
        is_alive: !state.starts_with(['Z', 'X']),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_parsed_with_any_process_name() {
        let one = parse(7, "7 (a) b) S 3 5 5 0 -1").expect("it is complete");
        assert_eq!((one.parent, one.group, one.is_alive), (3, 5, true));
        assert!(!parse(7, "7 (a) Z 3 5 5").expect("it is complete").is_alive);
        assert!(parse(7, "7 (a").is_none());
    }
}
