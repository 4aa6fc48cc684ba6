//! Edits as models write them: the text to replace differs from the file in line ends, spaces,
//! quotes, indentation or Unicode forms.

use strowger_tools::files::{EditRequest, FileError, TextChange};

use super::Fixture;

async fn edit(text: &str, old: &str, new: &str, all: bool) -> Result<String, FileError> {
    let fixture = Fixture::open(|_| {});
    fixture.write("file", text).await.expect("there is room");
    let change = TextChange {
        old: old.into(),
        new: new.into(),
        all,
    };
    let edit = EditRequest {
        path: "file".into(),
        changes: vec![change],
        dry_run: false,
    };
    let edited = fixture.ask(edit).await;
    let now = fixture.read("file").await.expect("it is there");
    let now = String::from_utf8(now).expect("text");
    match edited {
        Ok(_) => Ok(now),
        Err(error) => {
            assert_eq!(now, text, "a refused edit changes nothing");
            Err(error)
        }
    }
}

/// A case: its name, the file, the text to replace, the new text, and the file afterwards.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

/// Edits that have one reading.
const CLEAR: [Case; 44] = [
    // Line ends.
    (
        "LF for CRLF",
        "a\r\nb\r\nc\r\n",
        "a\nb\n",
        "a\nx\n",
        "a\r\nx\r\nc\r\n",
    ),
    ("CRLF for LF", "a\nb\nc\n", "a\r\nb", "a\r\nx", "a\nx\nc\n"),
    (
        "added lines in a CRLF file",
        "a\r\nb\r\n",
        "a",
        "a\nx",
        "a\r\nx\r\nb\r\n",
    ),
    (
        "added CRLF lines in an LF file",
        "a\nb\n",
        "a",
        "a\r\nx",
        "a\nx\nb\n",
    ),
    (
        "CRLF lines meant as such",
        "a\r\nb\r\n",
        "a\r\nb",
        "a\nb",
        "a\nb\r\n",
    ),
    (
        "lines removed from a CRLF file",
        "a\r\nb\r\nc\r\n",
        "b\nc\n",
        "",
        "a\r\n",
    ),
    (
        "LF lines of a mostly CRLF file",
        "a\nb\nc\r\nd\r\ne\r\n",
        "a\nb",
        "a\nx\nb",
        "a\nx\nb\nc\r\nd\r\ne\r\n",
    ),
    (
        "CRLF lines of a mostly LF file",
        "a\r\nb\r\nc\nd\ne\n",
        "a\nb",
        "x\ny",
        "x\r\ny\r\nc\nd\ne\n",
    ),
    (
        "no line end at the end of the file",
        "a\nb",
        "b\n",
        "x\n",
        "a\nx",
    ),
    (
        "no line end at the end of a CRLF file",
        "a\r\nb\r\nc",
        "b\nc\n",
        "b\nx\ny\n",
        "a\r\nb\r\nx\r\ny",
    ),
    // Spaces at the end of lines.
    (
        "trailing spaces in the file",
        "a  \nb\n",
        "a\nb",
        "a\nx",
        "a  \nx\n",
    ),
    (
        "trailing spaces in the edit",
        "a\nb\nc\n",
        "a  \nb",
        "x  \nb",
        "x  \nb\nc\n",
    ),
    (
        "trailing tab in the file",
        "a\t\nb\n",
        "a\nb\n",
        "y\nb\n",
        "y\nb\n",
    ),
    (
        "blank line with spaces in the file",
        "a\n    \nb\n",
        "a\n\nb",
        "a\n\nx",
        "a\n    \nx\n",
    ),
    (
        "blank line with spaces in the edit",
        "a\n\nb\n",
        "a\n    \nb",
        "a\n    \nx",
        "a\n\nx\n",
    ),
    (
        "trailing space at the end of the edit",
        "a = 1\nb = 2\n",
        "a = 1 ",
        "a = 3",
        "a = 3\nb = 2\n",
    ),
    (
        "trailing spaces and CRLF",
        "a  \r\nb\r\n",
        "a\nb",
        "a\nx",
        "a  \r\nx\r\n",
    ),
    (
        "trailing spaces at the end of the file",
        "a\nb  ",
        "a\nb\n",
        "a\nx\n",
        "a\nx",
    ),
    // Quotes, dashes and Unicode forms.
    (
        "straight for curly quotes",
        "say \u{201c}hi\u{201d}\n",
        "say \"hi\"",
        "say \"bye\"",
        "say \u{201c}bye\u{201d}\n",
    ),
    (
        "curly for straight quotes",
        "print(\"a\")\n",
        "print(\u{201c}a\u{201d})",
        "print(\u{201c}b\u{201d})",
        "print(\"b\")\n",
    ),
    (
        "curly quotes in added lines",
        "p(\"a\")\n",
        "p(\u{201c}a\u{201d})",
        "p(\u{201c}a\u{201d})\np(\u{201c}b\u{201d})",
        "p(\"a\")\np(\"b\")\n",
    ),
    (
        "straight apostrophe",
        "it\u{2019}s\n",
        "it's",
        "it's not",
        "it\u{2019}s not\n",
    ),
    (
        "curly apostrophe",
        "don't\n",
        "don\u{2019}t",
        "won\u{2019}t",
        "won't\n",
    ),
    (
        "hyphen for dash",
        "one \u{2013} two\n",
        "one - two",
        "one - three",
        "one \u{2013} three\n",
    ),
    (
        "dash for hyphen",
        "one - two\n",
        "one \u{2014} two",
        "one \u{2014} three",
        "one - three\n",
    ),
    (
        "dots for ellipsis",
        "wait\u{2026}\n",
        "wait...",
        "go...",
        "go\u{2026}\n",
    ),
    (
        "ellipsis for dots",
        "wait...\n",
        "wait\u{2026}",
        "go\u{2026}",
        "go...\n",
    ),
    (
        "space for no-break space",
        "10\u{a0}km\n",
        "10 km",
        "12 km",
        "12\u{a0}km\n",
    ),
    (
        "composed for decomposed",
        "cafe\u{301} au lait\n",
        "caf\u{e9} au lait",
        "caf\u{e9} noir",
        "cafe\u{301} noir\n",
    ),
    (
        "decomposed for composed",
        "caf\u{e9} au lait\n",
        "cafe\u{301} au lait",
        "cafe\u{301} noir",
        "caf\u{e9} noir\n",
    ),
    (
        "decomposed Hangul",
        "\u{1112}\u{1161}\u{11ab} a\n",
        "\u{d55c} a",
        "\u{d55c} b",
        "\u{1112}\u{1161}\u{11ab} b\n",
    ),
    (
        "zero-width space in the file",
        "a\u{200b}b = 1\n",
        "ab = 1",
        "ab = 2",
        "ab = 2\n",
    ),
    // Indentation and spacing.
    (
        "spaces for tabs",
        "f() {\n\ta();\n\tb();\n}\n",
        "    a();\n    b();",
        "    a();\n    c();",
        "f() {\n\ta();\n\tc();\n}\n",
    ),
    (
        "tabs for spaces",
        "if a:\n    b()\n    c()\n",
        "\tb()\n\tc()",
        "\tb()\n\tif d:\n\t\tc()",
        "if a:\n    b()\n    if d:\n        c()\n",
    ),
    (
        "two spaces for four",
        "if a:\n    b()\n    if c:\n        d()\n",
        "if a:\n  b()\n  if c:\n    d()",
        "if a:\n  b()\n  if c:\n    d()\n    e()",
        "if a:\n    b()\n    if c:\n        d()\n        e()\n",
    ),
    (
        "indentation lost in all lines",
        "class A:\n    def f(self):\n        return 1\n",
        "def f(self):\n    return 1",
        "def f(self):\n    x = 1\n    return x",
        "class A:\n    def f(self):\n        x = 1\n        return x\n",
    ),
    (
        "indentation lost in the first line",
        "class A:\n\tdef f(self):\n\t\treturn 1\n",
        "def f(self):\n        return 1",
        "def f(self):\n        return 2",
        "class A:\n\tdef f(self):\n\t\treturn 2\n",
    ),
    (
        "too much indentation",
        "a:\n  b\n  c\n",
        "    b\n    c",
        "    b\n    d\n    c",
        "a:\n  b\n  d\n  c\n",
    ),
    (
        "deeper new lines",
        "{\n\tx;\n\ty;\n}\n",
        "  x;\n  y;",
        "  if (z) {\n    x;\n  }\n  y;",
        "{\n\tif (z) {\n\t\tx;\n\t}\n\ty;\n}\n",
    ),
    (
        "shallower new lines",
        "a {\n\tb {\n\t\tc;\n\t}\n}\n",
        "        c;\n    }",
        "        c;\n    }\n    d;",
        "a {\n\tb {\n\t\tc;\n\t}\n\td;\n}\n",
    ),
    (
        "a tab within a line",
        "key\t= 1\nb\n",
        "key = 1",
        "key = 2",
        "key\t= 2\nb\n",
    ),
    (
        "aligned columns",
        "a    = 1;\nbcd  = 2;\n",
        "a = 1;\nbcd = 2;",
        "a = 1;\nbcd = 3;",
        "a    = 1;\nbcd  = 3;\n",
    ),
    (
        "indentation meant to change",
        "if a:\n\tb\n\tc\n",
        "    b\n    c",
        "    b\n        c",
        "if a:\n\tb\n\t\tc\n",
    ),
    (
        "spaces for tabs and CRLF",
        "f {\r\n\ta;\r\n\tb;\r\n}\r\n",
        "    a;\n    b;\n",
        "    a;\n    x;\n    b;\n",
        "f {\r\n\ta;\r\n\tx;\r\n\tb;\r\n}\r\n",
    ),
];

/// Edits that have several readings.
const AMBIGUOUS: [(&str, &str, &str); 12] = [
    ("twice", "a\na\n", "a"),
    ("overlapping", "aaa\n", "aa"),
    ("twice in a CRLF file", "a\r\nb\r\na\r\nb\r\n", "a\nb\n"),
    ("twice with trailing spaces", "a \nb\na  \nb\n", "a\nb"),
    (
        "two kinds of curly quotes",
        "\u{201c}a\u{201d} \u{201e}a\u{201c}\n",
        "\"a\"",
    ),
    (
        "two kinds of dashes",
        "a \u{2013} b\na \u{2014} b\n",
        "a - b",
    ),
    ("two kinds of spaces", "1\u{a0}m\n1\u{202f}m\n", "1 m"),
    (
        "composed and decomposed",
        "\u{201c}\u{e9}\u{201d}\n\u{201c}e\u{301}\u{201d}\n",
        "\"\u{e9}\"",
    ),
    (
        "two indentations",
        "if a:\n\tb()\n\tc()\nif d:\n\t\tb()\n\t\tc()\n",
        "    b()\n    c()",
    ),
    (
        "tabs and spaces",
        "\tb;\n\tc;\n  b;\n  c;\n",
        "    b;\n    c;",
    ),
    ("two spacings", "a  = 1\na\t= 1\n", "a = 1"),
    (
        "lost indentation",
        "f:\n  x\n    y\ng:\n\tx\n\t\ty\n",
        "x\n  y\n",
    ),
];

#[tokio::test]
async fn edits_that_differ_in_form_land_where_they_are_meant() {
    let mut wrong = Vec::new();
    for (name, text, old, new, after) in CLEAR {
        let now = edit(text, old, new, false).await;
        if now.as_deref() != Ok(after) {
            wrong.push(format!("{name}: {now:?} instead of {after:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn edits_with_several_readings_are_refused() {
    for (name, text, old) in AMBIGUOUS {
        match edit(text, old, "new", false).await {
            Err(FileError::NotOnce { matches: 2.., .. }) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn all_replaces_each_occurrence_in_its_own_form() {
    let text = "if a:\n\tb()\n\tc()\nif d:\n\t\tb()\n\t\tc()\n";
    let now = edit(text, "    b()\n    c()", "    b()\n    x()", true).await;
    let after = "if a:\n\tb()\n\tx()\nif d:\n\t\tb()\n\t\tx()\n";
    assert_eq!(now.as_deref(), Ok(after));
    let now = edit("aaa\n", "aa", "b", true).await;
    assert_eq!(now.as_deref(), Ok("ba\n"));
}

#[tokio::test]
async fn spaces_alone_are_matched_exactly() {
    for old in ["\t", "  \n  ", ""] {
        let refused = edit("a\n b\n", old, "x", true).await;
        assert!(
            matches!(refused, Err(FileError::NotOnce { matches: 0, .. })),
            "{old:?}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_miss_shows_the_nearest_text_and_what_differs() {
    let text = "fn one() {\n    let size = 3;\n    let Name = 4;\n}\n\nfn two() {}\n";
    let refused = async |old| edit(text, old, "x", false).await.expect_err("no match");
    let said = refused("fn one() {\n    let size = 5;\n    let name = 4;\n}").await;
    assert_eq!(
        said.to_string(),
        "`file`: edit 0 matches 0 times instead of once. The nearest text begins at line 1:\n  \
         fn one() {\n      let size = 3;\n      let Name = 4;\n  }\n\
         Line 2: the file has `let size = 3;`, the text to replace `let size = 5;`.\n\
         Line 3 (upper and lower case): the file has `let Name = 4;`, the text to replace \
         `let name = 4;`."
    );
    let said = refused("let sizes = 3;").await.to_string();
    assert!(said.contains("begins at line 2"), "{said}");
    let said = refused("let si ze = 3;").await.to_string();
    assert!(said.contains("(spaces within the line)"), "{said}");
    let said = refused("struct Unlike;").await.to_string();
    assert!(said.contains("no text of the file is similar"), "{said}");
}

#[tokio::test]
async fn indentation_does_not_blow_an_edit_up() {
    let fixture = Fixture::limited(|limits| limits.file = 100_000);
    let deep = format!("{}a\n{0}b\n", " ".repeat(40_000));
    fixture.write("file", &deep).await.expect("there is room");
    let change = TextChange {
        old: "\ta\n\tb".into(),
        new: "\ta\n".repeat(1000),
        all: false,
    };
    let edit = EditRequest {
        path: "file".into(),
        changes: vec![change],
        dry_run: false,
    };
    assert_eq!(
        super::rule(fixture.ask(edit).await),
        strowger_tools::files::FileRule::Size
    );
}
