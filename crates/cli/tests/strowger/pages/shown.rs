//! The output of a command, compared with the output that the page shows.

/// Returns `true` if the lines fit: `...` stands for anything within a line, and a line of its own
/// for any number of lines.
pub(super) fn fits(printed: &[&str], shown: &[String]) -> bool {
    let Some((first, rest)) = shown.split_first() else {
        return printed.is_empty();
    };
    if first.trim() == "..." {
        return (0..=printed.len()).any(|skipped| fits(&printed[skipped..], rest));
    }
    let Some((line, below)) = printed.split_first() else {
        return false;
    };
    line_fits(line.trim_end(), first.trim_end()) && fits(below, rest)
}

fn line_fits(line: &str, shown: &str) -> bool {
    let mut parts = shown.split("...");
    let Some(rest) = line.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    let mut rest = rest;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}
