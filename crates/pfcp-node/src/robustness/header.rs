//! Valid requests with invalid headers.

use strowger_pfcp::MessageType;

use super::case::{CaseSender, ExpectedAnswer, RobustnessCase};
use super::mutate::accepted;
use super::valid::ValidRequest;

/// Returns cases in which each field of the header is invalid in turn.
pub(super) fn headers(valid: &ValidRequest) -> Vec<RobustnessCase> {
    let Some(octets) = valid.with(&valid.elements) else {
        return Vec::new();
    };
    let mut headers = Headers {
        valid,
        octets,
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
    octets: Vec<u8>,
    cases: Vec<RobustnessCase>,
}

impl Headers<'_> {
    fn add(
        &mut self,
        (family, clause): (&str, &str),
        what: &str,
        octets: Vec<u8>,
        expect: Vec<ExpectedAnswer>,
    ) {
        self.cases.push(RobustnessCase {
            family: family.to_owned(),
            name: format!("{}: {what}", self.valid.message_type),
            clause: clause.to_owned(),
            octets,
            sender: self.valid.sender,
            expect,
        });
    }

    fn changed(&self, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut octets = self.octets.clone();
        change(&mut octets);
        octets
    }

    fn versions(&mut self) {
        for version in [0, 2, 3, 7] {
            let octets = self.changed(|octets| octets[0] = octets[0] & 0x1f | version << 5);
            let expect = vec![ExpectedAnswer::one(11)];
            let what = format!("version {version}");
            self.add(("header version", "7.6.2"), &what, octets, expect);
        }
    }

    fn flags(&mut self) {
        let flags = ("header flags", "7.2.2.1");
        let octets = self.changed(|octets| octets[0] ^= 1);
        let none = vec![ExpectedAnswer::none()];
        self.add(flags, "SEID flag wrong", octets, none.clone());
        let spare = self.changed(|octets| octets[0] |= 0x18);
        self.add(flags, "spare bits set", spare, accepted(self.valid));
        let priority = self.changed(|octets| octets[0] |= 2);
        self.add(flags, "message priority", priority, accepted(self.valid));
        let alone = self.changed(|octets| octets[0] |= 4);
        let either = [accepted(self.valid), none].concat();
        self.add(flags, "another message promised", alone, either);
    }

    fn lengths(&mut self) {
        let length = ("header length", "7.6.3");
        let have = u16::try_from(self.octets.len() - 4).unwrap_or(u16::MAX);
        let none = || vec![ExpectedAnswer::none()];
        for (what, value) in [
            ("0", 0),
            ("3", 3),
            ("longest", u16::MAX),
            ("1 more", have + 1),
        ] {
            let octets = self.changed(|octets| octets[2..4].copy_from_slice(&value.to_be_bytes()));
            self.add(length, &format!("length {what}"), octets, none());
        }
        let most = if self.valid.message_type.is_session() {
            16
        } else {
            8
        };
        for left in 1..most {
            let octets = self.octets[..left].to_vec();
            self.add(length, &format!("{left} octets"), octets, none());
        }
        // The last IE is truncated, if there is one.
        let cut = self.octets.len().saturating_sub(1);
        if cut > most {
            let octets = self.changed(|octets| {
                octets.truncate(cut);
                let have = have - 1;
                octets[2..4].copy_from_slice(&have.to_be_bytes());
            });
            let answer = ExpectedAnswer::one(self.valid.response()).causes(&[68, 69]);
            self.add(
                length,
                "last element cut",
                octets,
                vec![ExpectedAnswer::none(), answer],
            );
        }
    }

    fn types(&mut self) {
        let none = || vec![ExpectedAnswer::none()];
        for value in [0, 10, 18, 49, 58, 99, 200, 255] {
            let octets = self.changed(|octets| octets[1] = value);
            let what = format!("type {value}");
            self.add(("header type", "7.6.4"), &what, octets, none());
        }
        let answer = self.changed(|octets| octets[1] += 1);
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
            let octets = self.changed(|octets| octets[4..12].copy_from_slice(&seid.to_be_bytes()));
            let answer = ExpectedAnswer::one(self.valid.response());
            let expect = vec![answer.causes(&[65]).seid(0)];
            let case = ("header SEID", "7.2.2.4.2");
            self.add(case, &format!("SEID {what}"), octets, expect);
            if let Some(case) = self.cases.last_mut() {
                case.sender = CaseSender::Owner;
            }
        }
        let answer = ExpectedAnswer::one(self.valid.response());
        let expect = vec![answer.causes(&[65, 72]).seid(0)];
        let octets = self.octets.clone();
        self.add(
            ("session of another peer", "6.3.3"),
            "not its own",
            octets,
            expect,
        );
        if let Some(case) = self.cases.last_mut() {
            case.sender = CaseSender::Other;
        }
    }
}
