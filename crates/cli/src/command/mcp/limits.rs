//! `--limit`: limits of the MCP endpoint, of directories and of code, by their configuration keys.

use std::time::Duration;

use strowger_gateway::mcp::McpLimits;

use crate::config::Config;
use crate::config::agents::{
    CODE_LIMITS, FILE_LIMITS, LimitSet, MCP_LIMITS, ToolsSection, set_code_limit, set_size_limit,
};
use crate::exit::{CliResult, Failure};

/// The prefix of the keys of code and programs.
const CODE_PREFIX: &str = "code.";

/// Default limits of the endpoint beside a running node: the limits of the node itself apply, and
/// none of these is tighter.
const PROXY_DEFAULTS: (usize, Duration, usize) = (1 << 16, Duration::from_secs(3600), usize::MAX);

/// The smallest value that the longest line may be set to.
const MIN_LINE: usize = 4096;

/// Sets limits of tools, and returns those of the endpoint. Without `tools`, the tools are those of
/// a running node.
///
/// # Errors
/// Returns an error if a key is unknown, a value is invalid, or a limit belongs to a tool that is
/// not enabled.
pub(super) fn set(args: &[String], tools: Option<&mut ToolsSection>) -> CliResult<McpLimits> {
    let mut config = Config::default();
    let is_beside = tools.is_none();
    if is_beside {
        (config.mcp.calls, config.mcp.deadline, config.mcp.answer) = PROXY_DEFAULTS;
    }
    let mut none = ToolsSection::default();
    let tools = tools.unwrap_or(&mut none);
    let mut line = McpLimits::default().line;
    for limit in args {
        let (key, value) = limit.split_once('=').unwrap_or((limit, ""));
        let set = match key {
            "line" => set_line(&mut line, value),
            // The node makes the pages.
            "answer" if is_beside => Some(Err("is a limit of the node".to_owned())),
            _ => config.mcp.set_limit(key, value),
        };
        let set = set.or_else(|| set_tools(tools, key, value));
        let wrong = |why: &str| Failure::input(format!("--limit {limit}: {why}"));
        match set {
            Some(Ok(())) => {}
            Some(Err(why)) => return Err(wrong(&why).hint(hint(key, is_beside))),
            None => {
                let why = format!("unknown limit \"{key}\"; they are {}", list_keys());
                let hint = "write KEY=VALUE, separated by commas";
                return Err(wrong(&why).hint(hint));
            }
        }
    }
    config.tools = tools.clone();
    if let Some(problem) = config.problem() {
        return Err(Failure::input(format!("--limit: {}", problem.what())));
    }
    let mut limits = config.mcp.limits();
    limits.line = line;
    Ok(limits)
}

/// Sets a limit of directories, code and programs.
fn set_tools(tools: &mut ToolsSection, key: &str, value: &str) -> LimitSet {
    if let Some(key) = key.strip_prefix(CODE_PREFIX) {
        // Set both, so that errors are the same whichever of them is enabled.
        let set = set_code_limit(&mut tools.code.limits, key, value)?;
        let _ = set_code_limit(&mut tools.programs.limits, key, value);
        let is_there = tools.code.enabled || tools.programs.enabled;
        let missing = "needs --code or --programs".to_owned();
        return Some(set.and(if is_there { Ok(()) } else { Err(missing) }));
    }
    if tools.files.is_empty() {
        let known = FILE_LIMITS.contains(&key);
        return known.then(|| Err("needs --root".to_owned()));
    }
    tools
        .files
        .iter_mut()
        .try_for_each(|files| match files.set_limit(key, value) {
            Some(Ok(())) => Ok(()),
            other => Err(other),
        })
        .map_or_else(|other| other, |()| Some(Ok(())))
}

/// Sets the longest line.
fn set_line(line: &mut usize, value: &str) -> LimitSet {
    let mut read = 0;
    let set = set_size_limit(&mut read, value)?;
    if set.is_ok() && read < MIN_LINE {
        return Some(Err(format!("must be at least {MIN_LINE}")));
    }
    if set.is_ok() {
        *line = read;
    }
    Some(set)
}

/// Returns a hint for a limit that cannot be set.
fn hint(key: &str, is_beside: bool) -> String {
    let name = key.strip_prefix(CODE_PREFIX);
    if is_beside && !matches!(key, "calls" | "deadline" | "line") {
        let text = "a running node uses the limits of its configuration; --limit applies to tools \
                    of --root, --code and --programs";
        return text.to_owned();
    }
    match name.unwrap_or(key) {
        "deadline" | "time" => format!("such as --limit {key}=500ms, {key}=1.5s or {key}=2m"),
        "line" | "answer" => format!("such as --limit {key}=64MiB"),
        name if CODE_LIMITS.contains(&name) && key != name => {
            format!("such as --code --limit {key}=1MiB")
        }
        _ => format!("such as --root . --limit {key}=10GiB"),
    }
}

/// Lists all keys, with the tool of each.
fn list_keys() -> String {
    let code: Vec<String> = CODE_LIMITS
        .iter()
        .map(|key| format!("{CODE_PREFIX}{key}"))
        .collect();
    format!(
        "{} and line; of directories {}; of code and programs {}",
        MCP_LIMITS.join(", "),
        FILE_LIMITS.join(", "),
        code.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::agents::FilesSection;

    fn owned(limits: &[&str]) -> Vec<String> {
        limits.iter().map(|limit| (*limit).to_owned()).collect()
    }

    fn tools() -> ToolsSection {
        let mut tools = ToolsSection::default();
        tools.files.push(FilesSection::new(PathBuf::from(".")));
        tools.code.enabled = true;
        tools
    }

    #[test]
    fn every_key_of_the_endpoint_is_set() {
        let door = ["calls=3", "deadline=1.5s", "line=8192", "answer=5000"];
        let limits = set(&owned(&door), Some(&mut tools())).expect("they are limits");
        assert_eq!(limits.calls, 3);
        assert_eq!(limits.deadline, Duration::from_millis(1500));
        assert_eq!((limits.line, limits.answer), (8192, 5000));
        let usual = set(&[], Some(&mut tools())).expect("there are none");
        assert_eq!(usual, McpLimits::default());
    }

    #[test]
    fn every_key_of_tools_is_set() {
        let mut changed = tools();
        for key in FILE_LIMITS {
            set(&owned(&[&format!("{key}=77")]), Some(&mut changed)).expect("it is a limit");
        }
        let files = format!("{:?}", changed.files[0]);
        assert_eq!(files.matches(": 77").count(), FILE_LIMITS.len(), "{files}");
        for key in CODE_LIMITS {
            let value = match key {
                "time" | "deadline" => "7s",
                "memory" => "4000000",
                _ => "70000",
            };
            let limit = format!("code.{key}={value}");
            let before = changed.code.limits;
            let limit = if key == "time" {
                owned(&["code.deadline=60s", &limit])
            } else {
                owned(&[&limit])
            };
            set(&limit, Some(&mut changed)).expect("it is a limit");
            assert_ne!(changed.code.limits, before, "{key}");
            assert_eq!(changed.programs.limits, changed.code.limits, "{key}");
        }
    }

    #[test]
    fn invalid_limits_are_refused_with_reason_and_hint() {
        for (limit, why, helps) in [
            (
                "bytes=1",
                "unknown limit \"bytes\"; they are answer, calls, deadline and line;",
                "KEY=VALUE",
            ),
            (
                "calls",
                "--limit calls: \"\" is not a whole number",
                "such as",
            ),
            ("calls=-1", "\"-1\" is not a whole number", "such as"),
            ("deadline=soon", "--limit deadline=soon: ", "deadline=1.5s"),
            (
                "line=1MB",
                "--limit line=1MB: invalid size \"1MB\"",
                "line=64MiB",
            ),
            ("line=10", "must be at least 4096", "line=64MiB"),
            ("code.time=x", "--limit code.time=x: ", "code.time=500ms"),
            ("code.pages=1", "unknown limit \"code.pages\"", "KEY=VALUE"),
        ] {
            let failed = set(&owned(&[limit]), Some(&mut tools())).expect_err("it is invalid");
            let text = failed.to_string();
            assert!(text.contains(why), "{text}");
            let hint = text.split_once("\nhint: ").expect("there is a hint").1;
            assert!(hint.contains(helps), "{text}");
        }
        // The same errors as for a configuration.
        for (limit, why) in [
            ("calls=0", "`mcp.calls` is 0; must be at least 1"),
            ("answer=1", "`mcp.answer` is 1; must be at least 4096"),
            (
                "deadline=10ms",
                "`mcp.deadline` is 10ms; must be from 100ms to 60m",
            ),
            ("deadline=2h", "`mcp.deadline` is 7200s; must be"),
            ("code.memory=1", "`tools.code.limits.memory` is 1; must be"),
        ] {
            let failed = set(&owned(&[limit]), Some(&mut tools())).expect_err("it is invalid");
            assert!(failed.to_string().contains(why), "{failed}");
        }
    }

    #[test]
    fn beside_a_node_only_endpoint_limits_apply_and_none_is_tighter() {
        let limits = set(&[], None).expect("there are none");
        assert_eq!(
            (limits.calls, limits.deadline, limits.answer),
            PROXY_DEFAULTS
        );
        let limits = set(&owned(&["calls=2", "deadline=2s"]), None).expect("they are limits");
        assert_eq!((limits.calls, limits.deadline), (2, Duration::from_secs(2)));
        for limit in ["octets=1", "code.time=1s", "answer=1MiB"] {
            let failed = set(&owned(&[limit]), None).expect_err("it is none here");
            assert!(failed.to_string().contains("its configuration"), "{failed}");
        }
    }
}
