//! Valid requests with invalid headers.

use strowger_pfcp::MessageType;

use super::case::{CaseSender, ExpectedAnswer, RobustnessCase};
use super::mutate::accepted;
use super::valid::ValidRequest;

/// Returns cases in which each field of the header is invalid in turn.
pub(super) fn headers(valid: &ValidRequest) -> Vec<RobustnessCase> {
    let Some(bytes) = valid.with(&valid.elements) else {
        return Vec::new();
    };
    let mut headers = Headers {
        valid,
        bytes,
        cases: Vec::new(),
    };
    headers.versions();
    headers.flags();
    headers.lengths();
    headers.types();
    headers.sessions();
    headers.cases
}

struct Headers<'a> {
    valid: &'a ValidRequest,
    bytes: Vec<u8>,
    cases: Vec<RobustnessCase>,
}

impl Headers<'_> {
    fn add(
        &mut self,
        (family, clause): (&str, &str),
        what: &str,
        bytes: Vec<u8>,
        expect: Vec<ExpectedAnswer>,
    ) {
        self.cases.push(RobustnessCase {
            family: family.to_owned(),
            name: format!("{}: {what}", self.valid.message_type),
            clause: clause.to_owned(),
            bytes,
            sender: self.valid.sender,
            expect,
        });
    }

    fn changed(&self, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        change(&mut bytes);
        bytes
    }

    fn versions(&mut self) {
        for version in [0, 2, 3, 7] {
            let bytes = self.changed(|bytes| bytes[0] = bytes[0] & 0x1f | version << 5);
            let expect = vec![ExpectedAnswer::one(11)];
            let what = format!("version {version}");
            self.add(("header version", "7.6.2"), &what, bytes, expect);
        }
    }

    fn flags(&mut self) {
        let flags = ("header flags", "7.2.2.1");
        let bytes = self.changed(|bytes| bytes[0] ^= 1);
        let none = vec![ExpectedAnswer::none()];
        self.add(flags, "SEID flag wrong", bytes, none.clone());
        let spare = self.changed(|bytes| bytes[0] |= 0x18);
        self.add(flags, "spare bits set", spare, accepted(self.valid));
        let priority = self.changed(|bytes| bytes[0] |= 2);
        self.add(flags, "message priority", priority, accepted(self.valid));
        let alone = self.changed(|bytes| bytes[0] |= 4);
        let either = [accepted(self.valid), none].concat();
        self.add(flags, "another message promised", alone, either);
    }

    fn lengths(&mut self) {
        let length = ("header length", "7.6.3");
        let have = u16::try_from(self.bytes.len() - 4).unwrap_or(u16::MAX);
        let none = || vec![ExpectedAnswer::none()];
        for (what, value) in [
            ("0", 0),
            ("3", 3),
            ("longest", u16::MAX),
            ("1 more", have + 1),
        ] {
            let bytes = self.changed(|bytes| bytes[2..4].copy_from_slice(&value.to_be_bytes()));
            self.add(length, &format!("length {what}"), bytes, none());
        }
        let most = if self.valid.message_type.is_session() {
            16
        } else {
            8
        };
        for left in 1..most {
            let bytes = self.bytes[..left].to_vec();
            self.add(length, &format!("{left} bytes"), bytes, none());
        }
        // The last IE is truncated, if there is one.
        let cut = self.bytes.len().saturating_sub(1);
        if cut > most {
            let bytes = self.changed(|bytes| {
                bytes.truncate(cut);
                let have = have - 1;
                bytes[2..4].copy_from_slice(&have.to_be_bytes());
            });
            let answer = ExpectedAnswer::one(self.valid.response()).causes(&[68, 69]);
            self.add(
                length,
                "last element cut",
                bytes,
                vec![ExpectedAnswer::none(), answer],
            );
        }
    }

    fn types(&mut self) {
        let none = || vec![ExpectedAnswer::none()];
        for value in [0, 10, 18, 49, 58, 99, 200, 255] {
            let bytes = self.changed(|bytes| bytes[1] = value);
            let what = format!("type {value}");
            self.add(("header type", "7.6.4"), &what, bytes, none());
        }
        let answer = self.changed(|bytes| bytes[1] += 1);
        self.add(("header type", "7.6.5"), "an answer", answer, none());
    }

    fn sessions(&mut self) {
        let names = matches!(
            self.valid.message_type,
            MessageType::SESSION_MODIFICATION_REQUEST | MessageType::SESSION_DELETION_REQUEST
        );
        if !names {
            return;
        }
        for (what, seid) in [
            ("0", 0),
            ("the greatest", u64::MAX),
            ("unknown", 0x7057_ffff_ffff),
        ] {
            let bytes = self.changed(|bytes| bytes[4..12].copy_from_slice(&seid.to_be_bytes()));
            let answer = ExpectedAnswer::one(self.valid.response());
            let expect = vec![answer.causes(&[65]).seid(0)];
            let case = ("header SEID", "7.2.2.4.2");
            self.add(case, &format!("SEID {what}"), bytes, expect);
            if let Some(case) = self.cases.last_mut() {
                case.sender = CaseSender::Owner;
            }
        }
        let answer = ExpectedAnswer::one(self.valid.response());
        let expect = vec![answer.causes(&[65, 72]).seid(0)];
        let bytes = self.bytes.clone();
        self.add(
            ("session of another peer", "6.3.3"),
            "not its own",
            bytes,
            expect,
        );
        if let Some(case) = self.cases.last_mut() {
            case.sender = CaseSender::Other;
        }
    }
}
