//! Links between pages, and the table of contents of the book in `docs/`.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

/// The repository on the web. A page of the book links to files outside of `docs/` there, because
/// the built book does not contain them.
const WEB: [&str; 2] = [
    "https://github.com/strowger/strowger/blob/main/",
    "https://github.com/strowger/strowger/tree/main/",
];
const CONTENTS: &str = "docs/SUMMARY.md";

/// Checks the links of all pages, and that the book has each page of `docs/` once.
///
/// `files` are all files of the repository, `pages` the texts of its pages by path.
pub(super) fn check(files: &[String], pages: &BTreeMap<&str, String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let anchors: BTreeMap<&str, BTreeSet<String>> = pages
        .iter()
        .map(|(path, text)| (*path, anchors(text)))
        .collect();
    let mut listed = Vec::new();
    for (&path, text) in pages {
        for (line, link) in links(text) {
            let mut found = |what: String| findings.push(Finding::new(path, line, "link", what));
            let (place, anchor) = link.split_once('#').unwrap_or((link, ""));
            let on_web = WEB.iter().find_map(|web| place.strip_prefix(web));
            let is_elsewhere = place.contains("://") || place.starts_with("mailto:");
            if on_web.is_none() && is_elsewhere {
                continue;
            }
            let target = match on_web {
                Some(target) => Some(target.trim_end_matches('/').to_owned()),
                None if place.is_empty() => Some(path.to_owned()),
                None => resolved(path, place),
            };
            let exists = |target: &String| {
                let folder = format!("{target}/");
                files
                    .iter()
                    .any(|file| file == target || file.starts_with(&folder))
            };
            let Some(target) = target.filter(exists) else {
                found(format!("`{link}` leads nowhere"));
                continue;
            };
            if path.starts_with("docs/") && path != CONTENTS && on_web.is_none() {
                // mdBook calls a README.md index.html, but not in links.
                let is_there = files.contains(&target) && !target.ends_with("/README.md");
                let is_page = target.starts_with("docs/") && is_there;
                if !is_page {
                    found(format!(
                        "the book has no `{link}`: link to {}{target}",
                        WEB[0]
                    ));
                }
            }
            if path == CONTENTS {
                listed.push(target.clone());
            }
            let known = anchors.get(target.as_str());
            if !anchor.is_empty() && known.is_some_and(|known| !known.contains(anchor)) {
                found(format!("{target} has no heading `#{anchor}`"));
            }
        }
    }
    for (&path, text) in pages {
        if path.starts_with("docs/") || path == "ARCHITECTURE.md" {
            findings.extend(missing_sources(path, text, files));
        }
    }
    let of_book = |path: &&&str| path.starts_with("docs/") && **path != CONTENTS;
    for page in pages.keys().filter(of_book) {
        let times = listed.iter().filter(|listed| listed == page).count();
        if times != 1 {
            let what = format!("{CONTENTS} lists this page {times} times, not once");
            findings.push(Finding::new(page, 1, "contents", what));
        }
    }
    findings
}

/// Finds the source files that a page names in `code` and that do not exist. A page names a file by
/// the end of its path, with or without `src`.
fn missing_sources(path: &str, page: &str, files: &[String]) -> Vec<Finding> {
    let exists = |name: &str| {
        let is_at_end_of = |file: &str| {
            let folder = file.strip_suffix(name);
            folder.is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
        };
        files
            .iter()
            .any(|file| is_at_end_of(file) || is_at_end_of(&file.replace("/src/", "/")))
    };
    let is_source = |code: &str| {
        code.ends_with(".rs")
            && code
                .chars()
                .all(|c| c.is_alphanumeric() || "/_-.".contains(c))
    };
    let mut findings = Vec::new();
    for (line, text) in prose(page) {
        let codes = text.split('`').skip(1).step_by(2);
        for name in codes.filter(|code| is_source(code) && !exists(code)) {
            let what = format!("no file `{name}` exists");
            findings.push(Finding::new(path, line, "source", what));
        }
    }
    findings
}

/// Returns the targets of links and pictures, with their lines. Code is left out.
fn links(page: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    for (at, line) in prose(page) {
        let definition = line.split_once("]: ").filter(|_| line.starts_with('['));
        links.extend(definition.map(|(_, target)| (at, target.trim())));
        for (begin, _) in line.match_indices("](") {
            let (before, after) = (&line[..begin], &line[begin + 2..]);
            let in_code = before.matches('`').count() % 2 == 1;
            let target = after.split_once(')').filter(|_| !in_code);
            links.extend(target.map(|(target, _)| (at, target)));
        }
    }
    links
}

/// Returns the lines that are not in blocks of code, with their numbers.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    page.lines().enumerate().filter_map(move |(at, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        (!is_fenced && !is_fence).then_some((at + 1, line))
    })
}

/// Returns the anchors of the headings of a page, as GitHub and mdBook name them.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for (_, line) in prose(page).filter(|(_, line)| line.starts_with('#')) {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
        let anchor = title
            .chars()
            .filter(kept)
            .collect::<String>()
            .replace(' ', "-");
        let again = (1..).map(|number| format!("{anchor}-{number}"));
        let free = [anchor.clone()].into_iter().chain(again);
        let mut free = free.filter(|anchor| !known.contains(anchor));
        known.extend(free.next());
    }
    known
}

/// Returns the path from the root of the repository that a link of a page means; `None` outside.
fn resolved(page: &str, link: &str) -> Option<String> {
    let mut keys: Vec<&str> = page.split('/').collect();
    keys.pop();
    for key in link.split('/') {
        match key {
            "" | "." => {}
            ".." => drop(keys.pop()?),
            key => keys.push(key),
        }
    }
    Some(keys.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: &str = "[a](a.md) [b](b/c.md)";

    fn found(page: &str) -> Vec<String> {
        let files = [
            "docs/a.md",
            "docs/b/c.md",
            "docs/b/README.md",
            "docs/SUMMARY.md",
            "docs/d.svg",
            "src/lib.rs",
        ];
        let files = files.map(str::to_owned);
        let pages = BTreeMap::from([
            ("docs/SUMMARY.md", CONTENT.to_owned()),
            ("docs/a.md", page.to_owned()),
            (
                "docs/b/c.md",
                "# It's `c`, twice\n## It's c, twice\n".to_owned(),
            ),
        ]);
        let found = check(&files, &pages).into_iter();
        found.map(|finding| finding.what).collect()
    }

    #[test]
    fn good_links_pass() {
        for page in [
            "# A\n[c](b/c.md#its-c-twice-1) ![d](d.svg) [a](#a) [`c`](b/c.md#its-c-twice)",
            "[l](https://github.com/strowger/strowger/blob/main/src/lib.rs)\n[x](https://x.org/#z)",
            "[src](https://github.com/strowger/strowger/tree/main/src)\n[c]: b/c.md",
            "`[none](none.md)`\n```text\n[none](none.md)\n# B\n```",
        ] {
            assert_eq!(found(page), [""; 0], "{page}");
        }
    }

    #[test]
    fn dead_links_are_found() {
        for (page, what) in [
            ("[c](c.md)", "`c.md` leads nowhere"),
            ("[`c`](c.md)", "`c.md` leads nowhere"),
            ("[c]: c.md", "`c.md` leads nowhere"),
            ("[c](../../c.md)", "`../../c.md` leads nowhere"),
            ("[c](b/c.md#d)", "docs/b/c.md has no heading `#d`"),
            ("[a](#b)", "docs/a.md has no heading `#b`"),
            (
                "[x](https://github.com/strowger/strowger/blob/main/x.rs)",
                "`https://github.com/strowger/strowger/blob/main/x.rs` leads nowhere",
            ),
            (
                "[lib](../src/lib.rs)",
                "the book has no `../src/lib.rs`: link to \
                 https://github.com/strowger/strowger/blob/main/src/lib.rs",
            ),
            (
                "[b](b/README.md)",
                "the book has no `b/README.md`: link to \
                 https://github.com/strowger/strowger/blob/main/docs/b/README.md",
            ),
            (
                "[b](b)",
                "the book has no `b`: link to \
                 https://github.com/strowger/strowger/blob/main/docs/b",
            ),
        ] {
            assert_eq!(found(page), [what], "{page}");
        }
    }

    #[test]
    fn source_files_in_code_exist() {
        assert_eq!(found("`lib.rs` `src/lib.rs` `a(\"x.rs\")`"), [""; 0]);
        assert_eq!(found("in `old.rs`"), ["no file `old.rs` exists"]);
        assert_eq!(found("in `ib.rs`"), ["no file `ib.rs` exists"]);
    }

    #[test]
    fn pages_that_the_contents_lack_or_repeat_are_found() {
        let files = ["docs/SUMMARY.md", "docs/a.md", "docs/b.md"].map(str::to_owned);
        let page = |text: &str| text.to_owned();
        let pages = BTreeMap::from([
            ("docs/SUMMARY.md", page("[a](a.md) [again](a.md)")),
            ("docs/a.md", page("")),
            ("docs/b.md", page("")),
        ]);
        let found = check(&files, &pages);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "docs/a.md:1: contents: docs/SUMMARY.md lists this page 2 times, not once",
                "docs/b.md:1: contents: docs/SUMMARY.md lists this page 0 times, not once",
            ]
        );
    }
}
