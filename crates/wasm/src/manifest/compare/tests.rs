use std::path::{Path, PathBuf};

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;

/// Returns all texts of up to `most` letters.
fn texts(letters: &[&str], most: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..most {
        let longer = |text: &String| {
            let text = text.clone();
            letters.iter().map(move |letter| format!("{text}{letter}"))
        };
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().cloned());
    }
    all
}

/// Returns names as guests may ask for them: with a letter that occurs in no pattern, and with
/// stars, which subscriptions have.
fn names() -> Vec<String> {
    texts(&["a", "b", ".", "*", "z"], 4)
}

fn pattern() -> impl Strategy<Value = NamePattern> {
    "[ab.]{0,3}\\*?".prop_filter_map("it is empty", |text| NamePattern::new(text).ok())
}

fn patterns() -> impl Strategy<Value = Vec<NamePattern>> {
    vec(pattern(), 0..4)
}

/// Generates resolved paths.
fn path() -> impl Strategy<Value = PathBuf> {
    vec(prop_oneof![Just("a"), Just("b"), Just("ab")], 0..3)
        .prop_map(|names| Path::new("/").join(names.join("/")))
}

fn files() -> impl Strategy<Value = BTreeMap<String, FilesGrant>> {
    let one = (path(), any::<bool>()).prop_map(|(path, write)| FilesGrant {
        path,
        write,
        size: 0,
        files: 0,
    });
    btree_map("[x-z]", one, 0..4)
}

/// Returns every possible file.
fn places() -> Vec<PathBuf> {
    let names = texts(&["/a", "/b", "/ab", "/z"], 3);
    names
        .into_iter()
        .map(|name| PathBuf::from(name + "/f"))
        .collect()
}

fn allows(grant: &Grant, file: &Path, write: bool) -> bool {
    let mut roots = grant.files.values();
    roots.any(|root| file.starts_with(&root.path) && (root.write || !write))
}

fn grant() -> impl Strategy<Value = Grant> {
    let lists = (patterns(), patterns(), patterns(), patterns(), patterns());
    let flags = prop::array::uniform5(any::<bool>());
    let kv = prop::option::of((0..3_usize, 0..3_usize, 0..3_u32));
    (lists, flags, kv, files()).prop_map(|(lists, flags, kv, files)| {
        let (send, request, stream, publish, subscribe) = lists;
        let [serve, timer, log, clock, random] = flags;
        Grant {
            send,
            request,
            stream,
            serve,
            publish,
            subscribe,
            timer,
            log,
            clock,
            random,
            kv: kv.map(|(size, keys, rate)| KvGrant { size, keys, rate }),
            files,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn patterns_are_within_iff_all_their_names_are_covered(
        asked in patterns(), most in patterns(),
    ) {
        let within = asked.iter().all(|pattern| pattern.is_within(&most));
        let escaped = names().into_iter().find(|name| {
            Grant::covers(&asked, name) && !Grant::covers(&most, name)
        });
        prop_assert_eq!(within, escaped.is_none(), "{:?}", escaped);
    }

    #[test]
    fn directories_are_within_iff_all_their_access_is_allowed(
        asked in files(), most in files(),
    ) {
        let of = |files| Grant { files, ..Grant::default() };
        let (asked, most) = (of(asked), of(most));
        let escaped = places().into_iter().find(|file| {
            let escapes = |write| allows(&asked, file, write) && !allows(&most, file, write);
            escapes(false) || escapes(true)
        });
        prop_assert_eq!(asked.is_within(&most), escaped.is_none(), "{:?}", escaped);
    }

    #[test]
    fn is_within_is_a_preorder(a in grant(), b in grant(), c in grant()) {
        prop_assert!(a.is_within(&a), "of itself");
        prop_assert!(Grant::default().is_within(&a), "nothing is within everything");
        if a.is_within(&b) && b.is_within(&c) {
            prop_assert!(a.is_within(&c));
        }
        // Each part is decided on its own: one additional key is found, whatever the others are.
        let wider: Vec<&str> = a.wider_parts(&b).iter().map(|wider| wider.key).collect();
        for ((key, asked), (_, most)) in a.flags().into_iter().zip(b.flags()) {
            prop_assert_eq!(wider.contains(&key), asked && !most);
        }
    }
}

fn wider_parts(asked: &str, most: &str) -> Vec<&'static str> {
    let read = |text: &str| toml::from_str::<Grant>(text).expect("it is a grant");
    let wider = read(asked).wider_parts(&read(most));
    wider.iter().map(|wider| wider.key).collect()
}

#[test]
fn similar_grants_are_distinguished() {
    for (asked, most, key) in [
        ("send = [\"*\"]", "send = [\"a*\"]", "grant.send"),
        ("send = [\"a*\"]", "send = [\"a\"]", "grant.send"),
        ("send = [\"ab\"]", "request = [\"ab\"]", "grant.send"),
        (
            "subscribe = [\"a*\"]",
            "subscribe = [\"a.*\"]",
            "grant.subscribe",
        ),
        (
            "files.d.path = \"/\"",
            "files.d.path = \"/data\"",
            "grant.files",
        ),
        (
            "files.d.path = \"/database\"",
            "files.d.path = \"/data\"",
            "grant.files",
        ),
        (
            "files.d.path = \"/data/../etc\"",
            "files.d.path = \"/data\"",
            "grant.files",
        ),
        ("files.d.path = \"/\"", "files.d.path = \"\"", "grant.files"),
        (
            "files.d = { path = \"/data\", write = true }",
            "files.d = { path = \"/data\" }",
            "grant.files",
        ),
        (
            "files.d = { path = \"/d\", write = true, size = \"17MiB\" }",
            "files.d = { path = \"/d\", write = true }",
            "grant.files",
        ),
        (
            "files.a = { path = \"/d/a\", write = true }\n\
             files.b = { path = \"/d/b\", write = true }",
            "files.d = { path = \"/d\", write = true }",
            "grant.files",
        ),
        ("kv = {}", "", "grant.kv"),
        ("kv = { keys = 1001 }", "kv = {}", "grant.kv"),
        ("serve = true", "log = true", "grant.serve"),
    ] {
        assert_eq!(wider_parts(asked, most), [key], "{asked} against {most}");
        assert_eq!(wider_parts(asked, asked), [""; 0], "{asked}");
        assert_eq!(wider_parts("", asked), [""; 0], "{asked}");
    }
}

#[test]
fn equivalent_grants_are_not_wider() {
    for (asked, most) in [
        ("send = [\"ab\", \"a\"]", "send = [\"a*\"]"),
        ("send = [\"a\", \"a\", \"b\"]", "send = [\"b\", \"a\"]"),
        (
            "files.new.path = \"/data/in\"",
            "files.old.path = \"/data\"",
        ),
        (
            "files.a = { path = \"/d/a\", write = true, size = \"8MiB\", files = 500 }\n\
             files.b = { path = \"/d/b\", write = true, size = \"8MiB\", files = 500 }",
            "files.d = { path = \"/d\", write = true }",
        ),
        ("kv = { rate = 10 }", "kv = {}"),
    ] {
        assert_eq!(wider_parts(asked, most), [""; 0], "{asked} against {most}");
    }
}
