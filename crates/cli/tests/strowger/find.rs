//! `search_files` of an agent: literal names, directories, and one file.

use std::fs;

use serde_json::json;

use crate::agent::Agent;

#[test]
fn literal_names_directories_and_single_files_are_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for dir in ["app/[id]", "app/{b}", "app/plain"] {
        fs::create_dir_all(folder.path().join(dir)).expect("the folder is writable");
        let page = folder.path().join(dir).join("page.tsx");
        fs::write(page, "needle\n").expect("the folder is writable");
    }
    let root = folder.path().to_string_lossy();
    let mut agent = Agent::start(&["--root", &root]);
    for (path, pattern, expected) in [
        ("", "[id]", "app/[id]/"),
        ("", "{b}", "app/{b}/"),
        ("", "plai", "app/plain/"),
        ("", "id]", "app/[id]/"),
        ("", "{page,none}.tsx", "no matches"),
        ("app/plain", "{page,none}.tsx", "app/plain/page.tsx"),
        ("app/plain", "[op]age.tsx", "app/plain/page.tsx"),
        ("app/plain/page.tsx", "page", "app/plain/page.tsx"),
        ("app", "[id]/*.tsx", "app/[id]/page.tsx"),
        ("app", "plain", "app/plain/"),
    ] {
        let found = agent.call("search_files", &json!({ "path": path, "pattern": pattern }));
        assert_eq!(found["content"][0]["text"], expected, "{pattern}: {found}");
    }
    for (exclude, expected) in [
        ("[id]", "app/plain/page.tsx\napp/{b}/page.tsx"),
        ("{b}", "app/[id]/page.tsx\napp/plain/page.tsx"),
    ] {
        let arguments = json!({ "path": "", "pattern": "page", "excludePatterns": [exclude] });
        let found = agent.call("search_files", &arguments);
        assert_eq!(found["content"][0]["text"], expected, "{found}");
    }
    let arguments = json!({ "path": "app/plain/page.tsx", "pattern": "needle" });
    let found = agent.call("search_text", &arguments);
    assert_eq!(found["content"][0]["text"], "app/plain/page.tsx:1: needle");
}
