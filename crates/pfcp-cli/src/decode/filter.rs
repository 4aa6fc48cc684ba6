//! Selection of the messages to print.

use strowger_pfcp::{Frame, MessageType, Seid};

use super::sessions::f_seid;

/// The arguments that filter messages. Without a value, an argument lets every message pass.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct FilterArgs {
    /// Show only messages that contain this SEID, in the header or as an F-SEID.
    #[arg(long, value_name = "SEID", value_parser = parse_seid)]
    pub(super) seid: Option<Seid>,
    /// Show only messages of this type: a number, or part of a name.
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_types)]
    pub(super) types: Option<MessageTypes>,
    /// Show only the messages of the session that has this SEID at either end.
    #[arg(long, value_name = "SEID", value_parser = parse_seid)]
    pub(super) session: Option<Seid>,
}

/// A set of message types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageTypes(Vec<MessageType>);

impl FilterArgs {
    /// Returns `true` if a message passes on its own; the filter by session is applied elsewhere.
    pub(super) fn passes(&self, frame: &Frame<'_>) -> bool {
        let kind = frame.header.message_type;
        self.types
            .as_ref()
            .is_none_or(|types| types.0.contains(&kind))
            && self
                .seid
                .is_none_or(|seid| frame.header.seid == Some(seid) || f_seid(frame) == Some(seid))
    }

    /// Returns `true` if any filter is set.
    pub(super) fn is_set(&self) -> bool {
        self.seid.is_some() || self.types.is_some() || self.session.is_some()
    }
}

/// Parses a SEID, decimal or with `0x`.
fn parse_seid(text: &str) -> Result<Seid, String> {
    let read = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    read.map(Seid)
        .map_err(|_| "expected a number of at most 64 bits, such as 42 or 0x2a".to_owned())
}

fn parse_types(text: &str) -> Result<MessageTypes, String> {
    if let Ok(number) = text.parse() {
        return Ok(MessageTypes(vec![MessageType(number)]));
    }
    let wanted = text.to_lowercase();
    let named = |kind: &MessageType| {
        let name = kind.name().map(str::to_lowercase);
        name.is_some_and(|name| name.contains(&wanted))
    };
    let found: Vec<_> = (0..=u8::MAX).map(MessageType).filter(named).collect();
    match found.is_empty() {
        false => Ok(MessageTypes(found)),
        true => Err("no such message type; try `establishment` or `50`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_type_is_a_number_or_part_of_a_name() {
        assert_eq!(parse_types("50"), Ok(MessageTypes(vec![MessageType(50)])));
        let both = MessageTypes(vec![MessageType(50), MessageType(51)]);
        assert_eq!(parse_types("Session Establishment"), Ok(both));
        assert!(parse_types("gtp").is_err());
    }

    #[test]
    fn seid_is_decimal_or_hexadecimal() {
        assert_eq!(parse_seid("42"), parse_seid("0x2a"));
        assert!(parse_seid("2a").is_err());
    }
}
