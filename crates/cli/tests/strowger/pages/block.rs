//! The blocks of a page, and the notes above them.

/// A fenced block.
#[derive(Debug)]
pub(super) struct Block {
    /// The line of the opening fence, counted from 1.
    pub(super) line: usize,
    pub(super) language: String,
    /// The lines of the block, without the indentation of the fence.
    pub(super) text: String,
    pub(super) notes: Vec<Note>,
}

/// A comment above a block that says how to run it.
#[derive(Debug)]
pub(super) struct Note {
    pub(super) line: usize,
    pub(super) kind: Kind,
    /// The beginning of the commands that the note concerns; `None` for the whole block.
    pub(super) about: Option<String>,
    pub(super) text: String,
}

/// The kind of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    NotRun,
    Before,
    Where(String),
    Exits(i32),
    File,
    Check,
}

impl Note {
    /// Returns `true` if the note concerns a command.
    pub(super) fn is_about(&self, command: &str) -> bool {
        self.about
            .as_ref()
            .is_none_or(|about| command.starts_with(about.as_str()))
    }
}

/// A line of a page with an error message.
pub(super) type BlockError = (usize, String);

/// Parses the blocks of a page.
pub(super) fn read(page: &str) -> (Vec<Block>, Vec<BlockError>) {
    let (mut blocks, mut wrong): (Vec<Block>, Vec<BlockError>) = Default::default();
    let mut notes: Vec<Note> = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let inner = line.trim_start();
        let indent = line.len() - inner.len();
        if let Some(note) = note(at + 1, inner) {
            match note {
                Ok(note) => notes.push(note),
                Err(what) => wrong.push((at + 1, what)),
            }
        } else if let Some(language) = inner.strip_prefix("```") {
            let mut text = String::new();
            let mut is_closed = false;
            for (_, line) in lines.by_ref() {
                if line.trim() == "```" {
                    is_closed = true;
                    break;
                }
                let blank = line.len() - line.trim_start().len();
                text.push_str(&line[indent.min(blank)..]);
                text.push('\n');
            }
            if !is_closed {
                wrong.push((at + 1, "this block has no end".to_owned()));
            }
            let (line, language) = (at + 1, language.trim().to_owned());
            let notes = std::mem::take(&mut notes);
            blocks.push(Block {
                line,
                language,
                text,
                notes,
            });
        } else {
            for note in notes.drain(..) {
                wrong.push((note.line, "this note stands above no block".to_owned()));
            }
        }
    }
    for note in notes {
        wrong.push((note.line, "this note stands above no block".to_owned()));
    }
    (blocks, wrong)
}

/// Parses a comment; returns `None` if it is no note.
fn note(line: usize, text: &str) -> Option<Result<Note, String>> {
    let text = text.strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    let (head, text) = text.split_once(':')?;
    let (head, about) = match head.split_once('`') {
        Some((head, about)) => (head.trim(), Some(about.strip_suffix('`')?.to_owned())),
        None => (head.trim(), None),
    };
    let kind = match head.split_once(' ').unwrap_or((head, "")) {
        ("not", "run") => Kind::NotRun,
        ("before", "") => Kind::Before,
        ("where", word) if !word.is_empty() => Kind::Where(word.to_owned()),
        ("exits", code) => Kind::Exits(code.parse().ok()?),
        ("file", "") => Kind::File,
        ("check", "") => Kind::Check,
        _ => return None,
    };
    let text = text.trim().to_owned();
    if text.is_empty() {
        return Some(Err("this note has no reason, or no text".to_owned()));
    }
    Some(Ok(Note {
        line,
        kind,
        about,
        text,
    }))
}

/// A command of a block, with the output that the page shows.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) line: usize,
    /// The command, without a trailing comment.
    pub(super) text: String,
    pub(super) shows: Vec<String>,
}

impl Block {
    /// Parses the commands of a block in `sh` or `console`.
    pub(super) fn commands(&self) -> Result<Vec<Command>, BlockError> {
        let shows_output = self.language == "console";
        let mut commands: Vec<Command> = Vec::new();
        let mut lines = self.text.lines().enumerate();
        while let Some((at, line)) = lines.next() {
            let number = self.line + 1 + at;
            let first = match line.strip_prefix("$ ") {
                Some(line) if shows_output => line,
                _ if shows_output => {
                    match commands.last_mut() {
                        Some(command) => command.shows.push(line.to_owned()),
                        // A comment before the first command.
                        None if line.trim_start().starts_with('#') || line.is_empty() => {}
                        None => {
                            return Err((number, "output before the first `$ `".to_owned()));
                        }
                    }
                    continue;
                }
                _ => line,
            };
            let mut text = first.to_owned();
            while is_continued(&text) {
                let Some((_, more)) = lines.next() else {
                    return Err((number, "this command has no end".to_owned()));
                };
                text.push('\n');
                text.push_str(more);
            }
            let text = without_comment(&text).trim().to_owned();
            if !text.is_empty() {
                commands.push(Command {
                    line: number,
                    text,
                    shows: Vec::new(),
                });
            }
        }
        // A comment below a command continues the comment on its line.
        for command in &mut commands {
            command
                .shows
                .retain(|line| !line.trim_start().starts_with("# "));
            while command
                .shows
                .last()
                .is_some_and(|line| line.trim().is_empty())
            {
                command.shows.pop();
            }
        }
        Ok(commands)
    }
}

/// Returns `true` if a command continues on the next line.
fn is_continued(text: &str) -> bool {
    let text = without_comment(text);
    let mut quote = None;
    for letter in text.chars() {
        match quote {
            Some(open) if open == letter => quote = None,
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            _ => {}
        }
    }
    quote.is_some() || text.ends_with('\\') || text.trim_end().ends_with(['|'])
}

/// Returns a command without its trailing comment.
fn without_comment(text: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        match quote {
            Some(open) if open == letter => quote = None,
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            None if letter == '#' && before.is_whitespace() => return &text[..at],
            _ => {}
        }
        before = letter;
    }
    text
}
