//! Fault injection: a node that refuses, delays or drops messages, restarts, or changes its
//! Recovery Time Stamp as configured.
//!
//! A scenario is applied between the sockets and the node, and the node itself behaves correctly: a
//! dropped message never arrives, a delayed one arrives later, a rejection is sent on behalf of the
//! node, and the time stamp is changed as the message leaves.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use serde::Deserialize;
use strowger_pfcp::association::NodeName;
use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{Frame, IeType, MessageType, Seid};
use tokio::sync::Notify;

use crate::session::peer_seid;

/// The faults to inject into a node. It is cheap to clone, and its counts continue when the node
/// restarts.
///
/// ```
/// use strowger_pfcp_node::FaultScenario;
///
/// let scenario: FaultScenario = toml::from_str(
///     "[[rule]]\non = \"session establishment\"\nafter = 10\ncount = 5\nrefuse = 75\n\
///      [[rule]]\non = \"heartbeat\"\nprobability = 0.5\ndrop = true\n",
/// )?;
/// # let _ = scenario;
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "ScenarioFile")]
pub struct FaultScenario(Arc<SharedScenario>);

impl Default for FaultScenario {
    /// Returns a scenario without faults.
    fn default() -> Self {
        ScenarioFile { rule: Vec::new() }.into()
    }
}

#[derive(Debug)]
struct SharedScenario {
    rules: Vec<FaultRule>,
    state: Mutex<ScenarioState>,
    restart: Notify,
    /// The number of seconds added to the Recovery Time Stamp in sent messages.
    shift: AtomicI32,
}

#[derive(Debug)]
struct ScenarioState {
    /// For each rule: the number of messages that matched, and the number of times that the rule
    /// applied.
    counts: Vec<(u64, u64)>,
    random: SplitMix64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioFile {
    #[serde(default)]
    rule: Vec<FaultRule>,
}

/// A rule of a scenario. The first rule that applies decides about a message.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RuleEntry")]
struct FaultRule {
    /// The message types that the rule matches; empty for all types.
    on: Vec<MessageType>,
    after: u64,
    count: u64,
    probability: f64,
    fault: ScenarioFault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScenarioFault {
    Refuse(Cause),
    Delay(Duration),
    Drop,
    Restart,
    /// Adds a number of seconds to the Recovery Time Stamp from now on; the message itself passes.
    TimeStamp(i32),
}

/// A rule as written in a scenario file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    on: Option<String>,
    #[serde(default)]
    after: u64,
    count: Option<u64>,
    probability: Option<f64>,
    refuse: Option<u8>,
    #[serde(default, deserialize_with = "strowger::deserialize_duration")]
    delay: Option<Duration>,
    #[serde(default)]
    drop: bool,
    #[serde(default)]
    restart: bool,
    time_stamp: Option<i32>,
}

impl TryFrom<RuleEntry> for FaultRule {
    type Error = String;

    fn try_from(written: RuleEntry) -> Result<Self, String> {
        let mut faults = Vec::new();
        faults.extend(
            written
                .refuse
                .map(|cause| ScenarioFault::Refuse(Cause(cause))),
        );
        faults.extend(written.delay.map(ScenarioFault::Delay));
        faults.extend(written.drop.then_some(ScenarioFault::Drop));
        faults.extend(written.restart.then_some(ScenarioFault::Restart));
        faults.extend(written.time_stamp.map(ScenarioFault::TimeStamp));
        let &[fault] = faults.as_slice() else {
            let count = faults.len();
            return Err(format!(
                "a rule does one thing, this does {count}: give one of `refuse`, `delay`, `drop`, \
                 `restart` and `time_stamp`"
            ));
        };
        if let ScenarioFault::Refuse(cause) = fault
            && cause.is_acceptance()
        {
            return Err(format!("`refuse` is {}, which accepts", cause.0));
        }
        let probability = written.probability.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&probability) {
            return Err(format!("`probability` is {probability}, not from 0 to 1"));
        }
        Ok(Self {
            on: written.on.as_deref().map_or(Ok(Vec::new()), types)?,
            after: written.after,
            count: written.count.unwrap_or(u64::MAX),
            probability,
            fault,
        })
    }
}

/// Returns the message types for a number or a part of a name.
fn types(text: &str) -> Result<Vec<MessageType>, String> {
    if let Ok(number) = text.parse() {
        return Ok(vec![MessageType(number)]);
    }
    let wanted = text.to_lowercase();
    let named = |kind: &MessageType| {
        let name = kind.name().map(str::to_lowercase);
        name.is_some_and(|name| name.contains(&wanted))
    };
    let found: Vec<_> = (0..=u8::MAX).map(MessageType).filter(named).collect();
    match found.is_empty() {
        true => Err(format!("`on` is \"{text}\", which is in no message's name")),
        false => Ok(found),
    }
}

impl From<ScenarioFile> for FaultScenario {
    fn from(rules: ScenarioFile) -> Self {
        let counts = vec![(0, 0); rules.rule.len()];
        Self(Arc::new(SharedScenario {
            rules: rules.rule,
            state: Mutex::new(ScenarioState {
                counts,
                random: SplitMix64::seed_from_u64(1),
            }),
            restart: Notify::new(),
            shift: AtomicI32::new(0),
        }))
    }
}

impl FaultScenario {
    /// Waits until a rule asks for a restart of the node.
    pub async fn restart(&self) {
        self.0.restart.notified().await;
    }

    /// Returns the number of times that each rule applied, in the order of the rules.
    #[must_use]
    pub fn applied_counts(&self) -> Vec<u64> {
        let state = self.0.state.lock();
        state.counts.iter().map(|(_, applied)| *applied).collect()
    }

    /// Decides about a received datagram before the node sees it.
    pub(crate) fn decide(&self, bytes: &[u8]) -> Option<ScenarioFault> {
        let kind = Frame::decode(bytes).ok()?.header.message_type;
        let mut state = self.0.state.lock();
        for (at, rule) in self.0.rules.iter().enumerate() {
            if !rule.on.is_empty() && !rule.on.contains(&kind) {
                continue;
            }
            // Only requests with a cause in their response can be refused.
            if matches!(rule.fault, ScenarioFault::Refuse(_)) && !can_be_refused(kind) {
                continue;
            }
            let Some(&(seen, applied)) = state.counts.get(at) else {
                continue;
            };
            let applies =
                seen >= rule.after && applied < rule.count && state.applies(rule.probability);
            state.counts[at] = (seen + 1, applied + u64::from(applies));
            if !applies {
                continue;
            }
            match rule.fault {
                ScenarioFault::Restart => self.0.restart.notify_one(),
                ScenarioFault::TimeStamp(shift) => self.0.shift.store(shift, Ordering::Relaxed),
                ScenarioFault::Refuse(_) | ScenarioFault::Delay(_) | ScenarioFault::Drop => {}
            }
            return Some(rule.fault);
        }
        None
    }

    /// Returns a sent message with the Recovery Time Stamp changed, if the scenario changes it.
    pub(crate) fn with_changed_time_stamp(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let shift = self.0.shift.load(Ordering::Relaxed);
        let frame = Frame::decode(bytes).ok().filter(|_| shift != 0)?;
        let mut tlvs = Tlvs::at(frame.body, frame.bytes.len() - frame.body.len());
        let is_stamp = |tlv: &strowger_pfcp::wire::Tlv<'_>| tlv.ie == IeType::RECOVERY_TIME_STAMP;
        let stamp = tlvs.find_map(|tlv| tlv.ok().filter(is_stamp))?;
        let changed = u32::from_be_bytes(*stamp.value.first_chunk()?).wrapping_add_signed(shift);
        let at = stamp.value_offset();
        let mut bytes = bytes.to_vec();
        bytes
            .get_mut(at..at + 4)?
            .copy_from_slice(&changed.to_be_bytes());
        Some(bytes)
    }
}

impl ScenarioState {
    fn applies(&mut self, probability: f64) -> bool {
        draw(&mut self.random, probability)
    }
}

/// Draws an event that happens with this probability.
pub(crate) fn draw(random: &mut SplitMix64, probability: f64) -> bool {
    f64::from(random.next_u32()) / 2_f64.powi(32) < probability
}

impl fmt::Display for FaultScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rules", self.0.rules.len())
    }
}

impl PartialEq for FaultScenario {
    fn eq(&self, other: &Self) -> bool {
        self.0.rules == other.0.rules
    }
}

impl Eq for FaultScenario {}

fn can_be_refused(kind: MessageType) -> bool {
    let has_cause = kind.is_session() || matches!(kind.0, 3 | 5 | 7 | 9 | 14 | 16);
    kind.is_request() && has_cause
}

/// Returns the rejection of a request on behalf of a node; `named` returns the peer's SEID of a
/// session.
pub(crate) fn refusal(
    bytes: &[u8],
    cause: Cause,
    node: &NodeName,
    named: &dyn Fn(Seid) -> Option<Seid>,
) -> Option<Vec<u8>> {
    let frame = Frame::decode(bytes).ok()?;
    let kind = frame.header.message_type;
    let establishes = kind == MessageType::SESSION_ESTABLISHMENT_REQUEST;
    let body = match establishes || !kind.is_session() {
        true => BodyBuilder::new().node(node),
        false => BodyBuilder::new(),
    };
    let seid = match establishes {
        true => peer_seid(&frame),
        false => frame.header.seid.and_then(named),
    };
    let header = answer_header(&frame.header, seid);
    message(&header, body.cause(cause).as_slice()).ok()
}

#[cfg(test)]
mod tests {
    use strowger_pfcp::{Header, Seid, Sequence};

    use super::*;

    fn scenario(text: &str) -> Result<FaultScenario, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    fn deletion() -> Vec<u8> {
        let kind = MessageType::SESSION_DELETION_REQUEST;
        let header = Header::session(kind, Seid(1), Sequence::new(1));
        message(&header, &[]).expect("short")
    }

    #[test]
    fn fault_rule_honours_after_and_count() {
        let text = "[[rule]]\non = \"deletion request\"\nafter = 2\ncount = 1\nrefuse = 75\n";
        let scenario = scenario(text).expect("it is sound");
        let faults: Vec<_> = (0..4).map(|_| scenario.decide(&deletion())).collect();
        let refused = Some(ScenarioFault::Refuse(Cause::NO_RESOURCES_AVAILABLE));
        assert_eq!(faults, [None, None, refused, None]);
        assert_eq!(scenario.applied_counts(), [1]);
    }

    #[test]
    fn scenario_error_names_line_and_key() {
        let wrong = scenario("[[rule]]\non = \"heartbeat\"\nrefus = 75\n").expect_err("a key");
        assert!(
            wrong.contains("line 3") && wrong.contains("refus"),
            "{wrong}"
        );
        let wrong = scenario("[[rule]]\nrefuse = 1\n").expect_err("a cause");
        assert!(wrong.contains("`refuse` is 1, which accepts"), "{wrong}");
        assert!(scenario("[[rule]]\ndrop = true\nrestart = true\n").is_err());
        assert!(scenario("[[rule]]\non = \"gtp\"\ndrop = true\n").is_err());
        assert!(scenario("[[rule]]\ndelay = \"soon\"\n").is_err());
    }

    #[test]
    fn a_heartbeat_cannot_be_refused() {
        let scenario = scenario("[[rule]]\nrefuse = 64\n").expect("it is sound");
        let header = Header::node(MessageType::HEARTBEAT_REQUEST, Sequence::new(1));
        let bytes = message(&header, &[]).expect("short");
        assert_eq!(scenario.decide(&bytes), None);
    }

    #[test]
    fn refusal_carries_seid_of_peer() {
        let node = NodeName::from_fqdn("upf").expect("a name");
        let named = |seid| (seid == Seid(1)).then_some(Seid(7));
        let answer = refusal(&deletion(), Cause(64), &node, &named);
        let answer = answer.expect("it is a request");
        let header = Frame::decode(&answer).expect("a message").header;
        assert_eq!(header.message_type, MessageType::SESSION_DELETION_RESPONSE);
        assert_eq!(header.seid, Some(Seid(7)));
    }

    #[test]
    fn time_stamp_fault_changes_recovery_stamp() {
        let scenario = scenario("[[rule]]\ntime_stamp = -5\n").expect("it is sound");
        let header = Header::node(MessageType(2), Sequence::new(1));
        let answer = message(&header, &[0, 96, 0, 4, 0, 0, 0, 9]).expect("short");
        assert_eq!(scenario.with_changed_time_stamp(&answer), None);
        assert_eq!(
            scenario.decide(&deletion()),
            Some(ScenarioFault::TimeStamp(-5))
        );
        let changed = scenario
            .with_changed_time_stamp(&answer)
            .expect("it has a time stamp");
        assert_eq!(
            changed,
            message(&header, &[0, 96, 0, 4, 0, 0, 0, 4]).expect("short")
        );
        assert_eq!(scenario.with_changed_time_stamp(&deletion()), None);
    }
}
