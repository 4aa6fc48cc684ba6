//! Bytes written by hand and from the shared material.

use std::path::Path;

/// Writes one element.
pub(crate) fn tlv(ie: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).expect("a short value");
    [&ie.to_be_bytes()[..], &length.to_be_bytes(), value].concat()
}

/// Writes a session message.
pub(crate) fn session_message(message_type: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + 12)
        .expect("a short message")
        .to_be_bytes();
    [
        &[0x21, message_type][..],
        &length,
        &[0; 8],
        &[0, 0, 1, 0],
        body,
    ]
    .concat()
}

/// Writes a node message.
pub(crate) fn node_message(message_type: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + 4)
        .expect("a short message")
        .to_be_bytes();
    [&[0x20, message_type][..], &length, &[0, 0, 1, 0], body].concat()
}

/// Reads hexadecimal digits.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|digit| u8::try_from(digit.to_digit(16)?).ok())
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// Reads JSON that lies beside the repository; without it the caller skips its check.
pub(crate) fn shared_json(path: &str) -> Option<serde_json::Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared")
        .join(path);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(serde_json::from_str(&text).expect("JSON")),
        Err(_) if std::env::var("CI").is_ok_and(|ci| ci == "true") => {
            panic!("{} is needed", path.display())
        }
        Err(_) => {
            eprintln!("left out: {} is not there", path.display());
            None
        }
    }
}
