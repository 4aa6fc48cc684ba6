//! Messages between clients and a component: text and JSON on one side, bytes on the other.
//!
//! A component receives the bytes of a text, and JSON as it is written. Its answer becomes a text
//! if it is valid UTF-8, else bytes.

use std::str;

use serde_json::{Value, json};
use strowger::{ContentType, Export, Fault, FaultCode, Payload};
use strowger_wasm::exposed::to_bytes;
use strowger_wasm::message::{ComponentMsg, Event};
use strowger_wasm::{Answer, Call, CallError, Message};

/// Returns the export of a component.
pub(super) fn component_export() -> Export<ComponentMsg> {
    Export::new()
        .tell_with("message", |payload| to_bytes(payload).map(Message))
        .ask_with(
            "call",
            |payload| to_bytes(payload).map(Call),
            answer_to_payload,
        )
}

fn answer_to_payload(answer: Answer) -> Result<Payload, Fault> {
    match answer {
        Ok(bytes) => {
            let content = match str::from_utf8(&bytes) {
                Ok(_) => ContentType::Text,
                Err(_) => ContentType::Bytes,
            };
            Ok(Payload::new(content, bytes.to_vec()))
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

    fn got(content: ContentType, bytes: &'static [u8]) -> Result<Vec<u8>, FaultCode> {
        let got = to_bytes(&Payload::new(content, bytes));
        got.map(|bytes| bytes.to_vec()).map_err(|fault| fault.code)
    }

    #[test]
    fn text_and_json_are_passed_byte_for_byte() {
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
    fn utf8_answer_is_a_text() {
        let content =
            |bytes: &[u8]| answer_to_payload(Ok(bytes.into())).map(|payload| payload.content);
        assert_eq!(content(b"5"), Ok(ContentType::Text));
        assert_eq!(content(&[255]), Ok(ContentType::Bytes));
        let refused = answer_to_payload(Err(CallError::Refused("no".to_owned())));
        assert_eq!(refused.map_err(|fault| fault.code), Err(FaultCode::Refused));
    }
}
