//! Frames, checked against the vectors in fixtures/messages.

use std::path::Path;

use bytes::BytesMut;
use serde_json::Value;
use strowger_gateway::frame::{Frame, FrameDecoder, FrameError};

fn vectors() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/messages/frames.json");
    let text = std::fs::read_to_string(path).expect("the vectors are there");
    serde_json::from_str(&text).expect("the vectors are JSON")
}

fn bytes(text: &Value) -> Vec<u8> {
    let text = text.as_str().expect("text");
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(byte).collect()
}

fn number(value: &Value) -> usize {
    let number = value.as_u64().expect("a number");
    usize::try_from(number).expect("a small one")
}

/// All frames up to the end of the stream.
fn decode(vector: &Value) -> Result<Vec<Frame>, FrameError> {
    let mut decoder = FrameDecoder::new(number(&vector["limit"]));
    decoder.feed(&bytes(&vector["octets"]));
    let mut frames = Vec::new();
    while let Some(frame) = decoder.next_frame()? {
        frames.push(frame);
    }
    decoder.finish()?;
    Ok(frames)
}

#[test]
fn frames_match_the_test_vectors() {
    let vectors = vectors();
    let valid = vectors["valid"].as_array().expect("a list");
    assert!(!valid.is_empty());
    for vector in valid {
        let name = &vector["name"];
        let frames = decode(vector).unwrap_or_else(|error| panic!("{name}: {error}"));
        let [frame] = frames.as_slice() else {
            panic!("{name}: {frames:?}");
        };
        let expected = &vector["frame"];
        assert_eq!(frame.kind.to_string(), expected["kind"], "{name}");
        let content = format!("{:?}", frame.content).to_lowercase();
        assert_eq!(content, expected["content"], "{name}");
        let fields = [
            ("id", frame.id),
            ("target", frame.target),
            ("deadline", frame.deadline),
            ("credit", frame.credit),
        ];
        for (key, field) in fields {
            assert_eq!(field, expected[key], "{name}: {key}");
        }
        assert_eq!(frame.payload, bytes(&expected["payload"]), "{name}");
        let mut written = BytesMut::new();
        let limit = number(&vector["limit"]);
        frame
            .encode_into(limit, &mut written)
            .expect("within its limit");
        assert_eq!(written, bytes(&vector["octets"])[..], "{name}");
    }
}

#[test]
fn invalid_frames_match_the_test_vectors() {
    let vectors = vectors();
    let invalid = vectors["invalid"].as_array().expect("a list");
    assert!(!invalid.is_empty());
    for vector in invalid {
        let name = &vector["name"];
        assert_eq!(vector["code"], "protocol", "{name}");
        assert!(decode(vector).is_err(), "{name}");
    }
}
