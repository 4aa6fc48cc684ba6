//! Values of `--ignore`.

use strowger_pfcp::{IeType, Ignore, MessageType};

use crate::exit::{CliResult, Failure};

/// Elements and messages left out of a comparison.
#[derive(Debug)]
pub(super) struct Ignored {
    pub(super) elements: Ignore,
    pub(super) messages: Vec<MessageType>,
}

pub(super) fn parse(words: &[String]) -> CliResult<Ignored> {
    let mut ignored = Ignored {
        elements: Ignore::nothing(),
        messages: Vec::new(),
    };
    for word in words {
        let elements = ignored.elements.clone();
        ignored.elements = match &*normalize(word) {
            "" => continue,
            "seid" | "seids" => elements.seids(),
            "time" | "times" => elements.times(),
            "sequence" | "sequences" => elements.sequences(),
            "address" | "addresses" => elements.addresses(),
            "spare" | "sparebits" => elements.spare_bits(),
            "run" | "runs" => elements.seids().times().sequences().addresses(),
            _ => parse_word(word, elements, &mut ignored.messages)?,
        };
    }
    Ok(ignored)
}

fn parse_word(word: &str, elements: Ignore, messages: &mut Vec<MessageType>) -> CliResult<Ignore> {
    let wanted = normalize(word);
    let types = MessageType::ALL.iter();
    let message = types.filter(|kind| normalize(&kind.to_string()) == wanted);
    let known = messages.len();
    messages.extend(message);
    if messages.len() > known {
        return Ok(elements);
    }
    let steps = word.split('/').map(|step| find_element(word, step));
    match &*steps.collect::<CliResult<Vec<IeType>>>()? {
        [ie] => Ok(elements.ie(*ie)),
        path => Ok(elements.path(path)),
    }
}

/// Finds an element by its number or by its name, in any spelling.
fn find_element(word: &str, step: &str) -> CliResult<IeType> {
    if let Ok(number) = step.trim().parse() {
        return Ok(IeType(number));
    }
    let wanted = normalize(step);
    let all = || IeType::ALL.iter().filter_map(|ie| Some((*ie, ie.name()?)));
    if let Some((ie, _)) = all().find(|(_, name)| normalize(name) == wanted) {
        return Ok(ie);
    }
    let near: Vec<String> = all()
        .filter(|(_, name)| !wanted.is_empty() && normalize(name).contains(&wanted))
        .take(3)
        .map(|(ie, name)| format!("{name} ({})", ie.0))
        .collect();
    let hint = if near.is_empty() {
        "seid, time, sequence, address, spare, run, an element by name or number, or a message by \
         name"
            .to_owned()
    } else {
        format!("similar names: {}", near.join(", "))
    };
    let what = format!("--ignore: unknown element \"{}\"", step.trim());
    let what = if word.contains('/') {
        format!("{what} (in \"{word}\")")
    } else {
        what
    };
    Err(Failure::input(what).hint(hint))
}

/// Returns a name without the characters that people write differently.
fn normalize(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}
