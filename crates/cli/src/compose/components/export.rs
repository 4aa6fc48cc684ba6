//! Messages between clients and a component: text and JSON on one side, bytes on the other.
//!
//! A component receives the bytes of a text, and JSON as it is written. Its answer becomes a text
//! if it is valid UTF-8, else bytes.

use std::str;

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use strowger::{ContentType, Export, Fault, FaultCode, Payload};
use strowger_wasm::message::{ComponentMsg, Event};
use strowger_wasm::{Answer, Call, CallError, Message};

/// Returns the export of a component.
pub(super) fn messages() -> Export<ComponentMsg> {
    Export::new()
        .tell_with("message", |payload| to_bytes(payload).map(Message))
        .ask_with(
            "call",
            |payload| to_bytes(payload).map(Call),
            answer_to_payload,
        )
}

/// Converts a payload to the bytes that a component receives.
pub(super) fn to_bytes(payload: &Payload) -> Result<strowger_wasm::Payload, Fault> {
    let octets = &payload.bytes;
    if payload.content != ContentType::Json {
        return Ok((**octets).into());
    }
    let wrong = |error| Fault::new(FaultCode::BadRequest, format!("payload: {error}"));
    if octets.first() == Some(&b'"') {
        let text: String = serde_json::from_slice(octets).map_err(wrong)?;
        return Ok(text.into_bytes().into());
    }
    serde_json::from_slice::<IgnoredAny>(octets).map_err(wrong)?;
    Ok((**octets).into())
}

fn answer_to_payload(answer: Answer) -> Result<Payload, Fault> {
    match answer {
        Ok(octets) => {
            let content = match str::from_utf8(&octets) {
                Ok(_) => ContentType::Text,
                Err(_) => ContentType::Bytes,
            };
            Ok(Payload::new(content, octets.to_vec()))
        }
        Err(CallError::Refused(text)) => Err(Fault::new(FaultCode::Refused, text)),
        Err(error) => Err(Fault::new(FaultCode::Failed, error.to_string())),
    }
}

/// Converts an event of a component to a value, for readers of its topic.
pub(super) fn event_to_json(event: &Event) -> Value {
    match str::from_utf8(&event.payload) {
        Ok(text) => json!(text),
        Err(_) => json!(&*event.payload),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn got(content: ContentType, octets: &'static [u8]) -> Result<Vec<u8>, FaultCode> {
        let got = to_bytes(&Payload::new(content, octets));
        got.map(|octets| octets.to_vec())
            .map_err(|fault| fault.code)
    }

    #[test]
    fn a_text_is_its_octets_and_json_is_as_it_is_written() {
        assert_eq!(got(ContentType::Json, br#""a\n""#), Ok(b"a\n".to_vec()));
        assert_eq!(
            got(ContentType::Json, b"{\"a\": 1}"),
            Ok(b"{\"a\": 1}".to_vec())
        );
        assert_eq!(got(ContentType::Text, b"\"a\""), Ok(b"\"a\"".to_vec()));
        assert_eq!(got(ContentType::Bytes, &[255]), Ok(vec![255]));
        assert_eq!(got(ContentType::None, b""), Ok(Vec::new()));
        assert_eq!(got(ContentType::Json, b"{"), Err(FaultCode::BadRequest));
        assert_eq!(got(ContentType::Json, b"\"a"), Err(FaultCode::BadRequest));
    }

    #[test]
    fn an_answer_is_a_text_if_it_can_be_one() {
        let content =
            |octets: &[u8]| answer_to_payload(Ok(octets.into())).map(|payload| payload.content);
        assert_eq!(content(b"5"), Ok(ContentType::Text));
        assert_eq!(content(&[255]), Ok(ContentType::Bytes));
        let refused = answer_to_payload(Err(CallError::Refused("no".to_owned())));
        assert_eq!(refused.map_err(|fault| fault.code), Err(FaultCode::Refused));
    }
}
