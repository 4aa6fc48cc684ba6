//! Rust in pages: code that is not compiled there must be quoted from code that is compiled
//! elsewhere.

use super::Finding;

/// Returns `true` if a file is compiled and may be quoted.
pub(super) fn is_source(path: &str) -> bool {
    let folder = path.starts_with("bench/compare/") || path.starts_with("examples/");
    folder && path.ends_with(".rs")
}

/// Returns `true` if a file is a page whose Rust must be quoted.
pub(super) fn is_page(path: &str) -> bool {
    path.starts_with("docs/") && path.ends_with(".md")
}

/// Checks that each Rust block of a page is, line by line, in one of the sources. Indentation does
/// not count.
pub(super) fn check(path: &str, page: &str, sources: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            continue;
        };
        let body = lines.by_ref().map(|(_, line)| line.trim());
        let block: Vec<&str> = body.take_while(|line| *line != "```").collect();
        let is_rust = language == "rust" || language.starts_with("rust,");
        if is_rust && !sources.iter().any(|source| quotes(source, &block)) {
            let what = "this code stands in no file of bench/compare or examples, so nobody \
                        compiles it";
            findings.push(Finding::new(path, at + 1, "quote", what));
        }
    }
    findings
}

fn quotes(source: &str, block: &[&str]) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    !block.is_empty() && lines.windows(block.len()).any(|window| window == block)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "fn a() {\n    b();\n}\n\nfn c() {}\n";

    fn lines(page: &str) -> Vec<usize> {
        let found = check("docs/page.md", page, &[SOURCE.to_owned()]);
        found.into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn quoted_code_is_accepted_wherever_it_is_indented() {
        assert_eq!(lines("```rust\nfn a() {\n    b();\n}\n```\n"), [0; 0]);
        assert_eq!(lines("- so:\n  ```rust\n  b();\n  ```\n"), [0; 0]);
    }

    #[test]
    fn code_that_nobody_compiles_is_found() {
        assert_eq!(lines("text\n```rust\nfn d() {}\n```\n"), [2]);
        assert_eq!(lines("```rust,no_run\nfn a() {\n}\n```\n"), [1]);
        assert_eq!(lines("```rust\n```\n"), [1]);
    }

    #[test]
    fn other_languages_are_left_alone() {
        assert_eq!(
            lines("```erlang\nd() -> ok.\n```\n```\nfn d() {}\n```\n"),
            [0; 0]
        );
    }

    #[test]
    fn only_pages_and_compiled_files_count() {
        assert!(is_page("docs/guides/tokio.md"));
        assert!(!is_page("README.md"));
        assert!(is_source("bench/compare/kameo.rs"));
        assert!(is_source("examples/ask.rs"));
        assert!(!is_source("bench/src/lib.rs"));
    }
}
