//! A component as the policy of the N4 node.
//!
//! The component is asked once for each QER with a Maximum Bitrate, or once if there is none. A
//! request consists of lines of `key value`:
//!
//! | key | value |
//! |---|---|
//! | `question` | `session.establish` or `session.modify` |
//! | `node`, `peer`, `seid`, `sessions` | the session, and how many the peer would have |
//! | `dnn` | the network: that of the first PDR that names one, else APN/DNN, else `default` |
//! | `qer`, `uplink`, `downlink` | the QER and its rates in kbit/s |
//!
//! The answer consists of lines too: `uplink` and `downlink`, if the QER is to have other rates. An
//! error refuses the session, with the cause at its beginning (`cause 75: ...`) or else with 64.

use std::time::Duration;

use strowger_pfcp::IeType;
use strowger_pfcp::ie::{Cause, Mbr, UpdateQer};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp_node::{DecisionFuture, Policy, PolicyDecision, PolicyKind, PolicyRequest};
use strowger_wasm::{Call, CallError};

use super::Components;
use crate::config::Config;
use crate::exit::{CliResult, Failure};

/// A policy that asks a component.
#[derive(Debug)]
pub(super) struct ComponentPolicy {
    components: Components,
    name: String,
    budget: Duration,
}

/// The answer of a component about a QER.
#[derive(Debug, PartialEq, Eq)]
enum PolicyAnswer {
    Rates(Mbr),
    Refused(Cause),
    NoAnswer,
}

impl ComponentPolicy {
    /// Returns the configured policy, if it is a component.
    pub(super) fn of(config: &Config, components: &Components) -> CliResult<Option<Self>> {
        let policy = &config.n4.policy;
        let (PolicyKind::Component, Some(name)) = (policy.kind, &policy.component) else {
            return Ok(None);
        };
        if components.registry().find(name).is_none() {
            return Err(unknown_component(name));
        }
        Ok(Some(Self {
            components: components.clone(),
            name: name.clone(),
            budget: policy.budget,
        }))
    }

    async fn decision(&self, question: &PolicyRequest) -> PolicyDecision {
        let about = describe_session(question);
        let mut updates = Vec::new();
        let qers = question.rules.qers().filter_map(Result::ok);
        let limited = qers.filter_map(|qer| Some((qer.qer_id, qer.maximum_bitrate?)));
        let limited: Vec<_> = limited.collect();
        for (qer, rates) in &limited {
            let (id, rates) = (qer.0, *rates);
            let Mbr { ul_mbr, dl_mbr, .. } = rates;
            let text = format!("{about}qer {id}\nuplink {ul_mbr}\ndownlink {dl_mbr}\n");
            match self.ask(text, rates).await {
                PolicyAnswer::Rates(other) if other == rates => {}
                PolicyAnswer::Rates(other) => {
                    updates.push(UpdateQer::new(*qer).maximum_bitrate(other));
                }
                PolicyAnswer::Refused(cause) => return PolicyDecision::Refuse(cause),
                PolicyAnswer::NoAnswer => return PolicyDecision::NoDecision,
            }
        }
        if limited.is_empty() {
            let none = Mbr {
                ul_mbr: 0,
                dl_mbr: 0,
            };
            match self.ask(about, none).await {
                PolicyAnswer::Rates(_) => {}
                PolicyAnswer::Refused(cause) => return PolicyDecision::Refuse(cause),
                PolicyAnswer::NoAnswer => return PolicyDecision::NoDecision,
            }
        }
        if updates.is_empty() {
            return PolicyDecision::Admit;
        }
        let change = SessionModificationRequest::new().update_qers(updates);
        PolicyDecision::Change(Box::new(change))
    }

    async fn ask(&self, text: String, rates: Mbr) -> PolicyAnswer {
        let Some(actor) = self.components.registry().find(&self.name) else {
            return PolicyAnswer::NoAnswer;
        };
        let call = Call(text.into_bytes().into());
        match actor.ask_within(call, self.budget).await {
            Ok(Ok(bytes)) => {
                parse_rates(&bytes, rates).map_or(PolicyAnswer::NoAnswer, PolicyAnswer::Rates)
            }
            Ok(Err(CallError::Refused(text))) => {
                tracing::debug!(component = self.name, text, "refused a session");
                PolicyAnswer::Refused(parse_cause(&text))
            }
            // A fault is reported where it happens; the caller counts the rest.
            Ok(Err(_)) | Err(_) => PolicyAnswer::NoAnswer,
        }
    }
}

impl Policy for ComponentPolicy {
    fn decide<'a>(&'a self, question: &'a PolicyRequest) -> DecisionFuture<'a> {
        Box::pin(self.decision(question))
    }
}

/// The failure when the component of the policy does not exist.
pub(super) fn unknown_component(name: &str) -> Failure {
    let text = format!("`n4.policy.component` is {name:?}, but there is no such component");
    Failure::input(text).hint("add a section [[component]] with its manifest")
}

/// Describes a session, without its rates.
fn describe_session(question: &PolicyRequest) -> String {
    let pdrs = question.rules.pdrs().filter_map(Result::ok);
    let mut networks = pdrs.filter_map(|pdr| network_name(pdr.pdi.network_instance?.as_bytes()));
    let apn_dnn = || {
        let mut elements = question.rules.session_elements();
        let dnn = elements.find(|tlv| tlv.ie == IeType::APN_DNN)?;
        network_name(dnn.value)
    };
    let network = networks.next().or_else(apn_dnn);
    format!(
        "question {}\nnode {}\npeer {}\nseid {}\nsessions {}\ndnn {}\n",
        question.kind.name(),
        single_word(&question.node),
        question.peer,
        question.seid.0,
        question.sessions,
        single_word(network.as_deref().unwrap_or("default")),
    )
}

/// Decodes the name of a network: labels, as in an APN/DNN (TS 23.003 §9.1), or text, as most peers
/// write a Network Instance.
fn network_name(bytes: &[u8]) -> Option<String> {
    let mut labels = Vec::new();
    let mut rest = bytes;
    while let Some((&length, tail)) = rest.split_first() {
        match tail.split_at_checked(usize::from(length)) {
            Some((label, tail)) if !label.is_empty() => {
                labels.push(std::str::from_utf8(label).ok()?);
                rest = tail;
            }
            _ => {
                let text = std::str::from_utf8(bytes).ok()?;
                return Some(text.to_owned());
            }
        }
    }
    (!labels.is_empty()).then(|| labels.join("."))
}

/// Makes one word of a peer's text: characters that would begin another line or word become `?`.
fn single_word(text: &str) -> String {
    let plain = |letter: char| match letter {
        letter if letter.is_control() || letter.is_whitespace() => '?',
        letter => letter,
    };
    text.chars().map(plain).take(255).collect()
}

/// Parses the rates of an answer; rates that it does not name stay as requested.
fn parse_rates(bytes: &[u8], mut rates: Mbr) -> Option<Mbr> {
    let text = std::str::from_utf8(bytes).ok()?;
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("uplink", rate)) => rates.ul_mbr = rate.parse().ok()?,
            Some(("downlink", rate)) => rates.dl_mbr = rate.parse().ok()?,
            _ => {}
        }
    }
    Some(rates)
}

/// Parses the cause at the beginning of a refusal.
fn parse_cause(text: &str) -> Cause {
    let number = text.strip_prefix("cause ").map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse()
    });
    match number {
        Some(Ok(number @ 64..)) => Cause(number),
        _ => Cause::REQUEST_REJECTED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Mbr = Mbr {
        ul_mbr: 5,
        dl_mbr: 6,
    };

    #[test]
    fn answer_may_change_the_rates() {
        let read =
            |text: &str| parse_rates(text.as_bytes(), ASKED).map(|mbr| (mbr.ul_mbr, mbr.dl_mbr));
        assert_eq!(read(""), Some((5, 6)));
        assert_eq!(read("dnn a\nuplink 3\n"), Some((3, 6)));
        assert_eq!(read("downlink 1\nuplink 2"), Some((2, 1)));
        assert_eq!(read("uplink much"), None);
        assert_eq!(read("uplink -1"), None);
        assert_eq!(parse_rates(&[255], ASKED), None);
    }

    #[test]
    fn refusal_may_name_its_cause_and_never_accepts() {
        assert_eq!(
            parse_cause("cause 75: too many"),
            Cause::NO_RESOURCES_AVAILABLE
        );
        assert_eq!(parse_cause("cause 77"), Cause::SYSTEM_FAILURE);
        for text in [
            "",
            "no",
            "cause",
            "cause 1",
            "cause 999",
            "cause x",
            "cause -1",
        ] {
            assert_eq!(parse_cause(text), Cause::REQUEST_REJECTED, "{text}");
        }
    }

    #[test]
    fn network_is_named_by_labels_or_text() {
        for bytes in [&b"internet"[..], b"\x08internet"] {
            assert_eq!(network_name(bytes).as_deref(), Some("internet"));
        }
        assert_eq!(
            network_name(b"\x03ims\x06mnc001").as_deref(),
            Some("ims.mnc001")
        );
        for nothing in [&b""[..], b"\xff\xfe", b"\x01\xff"] {
            assert_eq!(network_name(nothing), None);
        }
    }

    #[test]
    fn peer_text_cannot_add_lines() {
        assert_eq!(single_word("internet"), "internet");
        assert_eq!(single_word("a\nuplink 1"), "a?uplink?1");
        assert_eq!(single_word(&"x".repeat(1000)).len(), 255);
    }
}
