//! Robustness test cases from a file.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use strowger_pfcp_node::{CaseSender, ExpectedAnswer, RobustnessCase};

use crate::exit::{CliResult, Failure};
use crate::hex;

#[derive(Debug, Deserialize)]
struct CaseFile {
    cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
struct Case {
    name: String,
    hex: String,
    expect: ExpectedReaction,
    /// The clause of the specification, if the file names it.
    clause: Option<String>,
}

/// The acceptable reactions: one of several, several messages, one message, or none.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ExpectedReaction {
    any: Option<Vec<Self>>,
    answers: Option<Vec<u8>>,
    answer: Option<AnswerEntry>,
    cause: Option<Vec<u8>>,
    offending_ie: Option<Vec<u16>>,
    seid: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AnswerEntry {
    Type(u8),
    Word(NoAnswer),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum NoAnswer {
    None,
}

/// Reads the cases from a file.
pub(super) fn read(path: &Path) -> CliResult<Vec<RobustnessCase>> {
    let text = fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
    let wrong = |what: String| Failure::input(format!("{}: {what}", path.display()));
    let file: CaseFile = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let mut cases = Vec::new();
    for row in file.cases {
        let bytes = hex::parse(&row.hex);
        let bytes = bytes.map_err(|error| wrong(format!("`{}`: {error}", row.name)))?;
        let mut expect = Vec::new();
        row.expect.collect_answers(&mut expect);
        let case = RobustnessCase {
            family: "cases of the file".to_owned(),
            name: row.name,
            clause: row.clause.unwrap_or_else(|| "7.6".to_owned()),
            sender: sender(&bytes),
            bytes,
            expect,
        };
        cases.extend(session_variant(&case));
        cases.push(case);
    }
    Ok(cases)
}

impl ExpectedReaction {
    fn collect_answers(self, into: &mut Vec<ExpectedAnswer>) {
        if let Some(any) = self.any {
            any.into_iter().for_each(|one| one.collect_answers(into));
            return;
        }
        let mut answer = match self.answer {
            Some(AnswerEntry::Type(one)) => ExpectedAnswer::one(one),
            Some(AnswerEntry::Word(NoAnswer::None)) | None => ExpectedAnswer::none(),
        };
        if let Some(types) = self.answers {
            answer.types = types;
        }
        answer.causes = self.cause.unwrap_or_default();
        answer.offending = self.offending_ie.unwrap_or_default();
        answer.seid = self.seid;
        into.push(answer);
    }
}

/// Chooses the sender of a case. Messages that concern no session are sent by the peer without
/// sessions, because they may announce that their sender has restarted.
fn sender(bytes: &[u8]) -> CaseSender {
    match bytes.get(1) {
        Some(50..100) => CaseSender::Owner,
        _ => CaseSender::Disposable,
    }
}

/// Returns a variant of a modification that names no session, for a live session. The node must
/// refuse it for its error, or accept it if the error is insignificant.
fn session_variant(case: &RobustnessCase) -> Option<RobustnessCase> {
    let of_session = case.bytes.get(1) == Some(&52) && case.bytes.len() >= 16;
    of_session.then(|| RobustnessCase {
        name: format!("{}, of a live session", case.name),
        sender: CaseSender::OfSession,
        expect: vec![ExpectedAnswer::one(53).causes(&[1, 66, 67, 68, 69, 73, 75])],
        ..case.clone()
    })
}
