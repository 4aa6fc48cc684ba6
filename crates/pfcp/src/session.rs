//! Sessions: the rules that a peer has provisioned, as it encoded them.
//!
//! A [`RuleSet`] holds the rules in encoded form, each as the element that would create its current
//! state. A live session is therefore a single allocation, which is walked on demand. A request is
//! applied to a draft that borrows the old bytes:
//!
//! ```text
//! RuleSet ──borrow──> Draft ── remove, create, update ──> check references ─> allocate ─> RuleSet'
//!    │                                                                           │
//!    └───────────── stays as it is when anything on the way is refused ──────────┘
//! ```

mod allocate;
mod detection;
mod draft;
mod kind;
mod merge;
mod reference;
mod refusal;

use std::net::IpAddr;

use crate::error::{Error, ErrorKind};
use crate::ie::{
    BarId, CreateFar, CreatePdr, CreateQer, CreateUrr, FTeid, FarId, Ie, IeType, Interfaces, PdrId,
    QerId, TrafficEndpointId, UeIpAddress, UrrId,
};
use crate::message::{MessageType, MessageView, with_thread_index};
use crate::validate::{Deviation, tolerate};
use crate::wire::{Frame, Tlv, Tlvs};

pub use allocate::{Allocator, NoAllocator, UeAddressRequest};
pub use detection::UeDestination;
pub use kind::{RuleId, RuleKind};
pub use refusal::Refusal;

use draft::RuleSetDraft;
use reference::is_well_formed;

/// The rules of a session, and the other session parameters that its peer sent.
///
/// Typed values are decoded on demand. Equal rules have equal bytes, no matter how they were
/// created.
///
/// ```
/// use std::net::IpAddr;
///
/// use strowger_pfcp::ie::{
///     ApplyAction, CreateFar, CreatePdr, FarId, FSeid, FTeid, NodeId, Pdi, SourceInterface,
/// };
/// use strowger_pfcp::message::SessionEstablishmentRequest;
/// use strowger_pfcp::session::{NoAllocator, RuleSet};
/// use strowger_pfcp::{Frame, Message, Seid, Sequence};
///
/// let address = IpAddr::from([127, 0, 0, 7]);
/// let pdi = Pdi::new(SourceInterface::ACCESS).local_f_teid(FTeid::new(7, address));
/// let body = SessionEstablishmentRequest::new(NodeId::fqdn("smf"), FSeid::new(Seid(1), address))
///     .create_pdrs([CreatePdr::new(1, pdi).far_id(1)])
///     .create_fars([CreateFar::new(1, ApplyAction::DROP)]);
/// let bytes = Message::session(Seid(0), Sequence::new(1), body).encode()?;
///
/// let frame = Frame::decode(&bytes)?;
/// let rules = RuleSet::establish(&frame, &mut NoAllocator).expect("sound rules").rules;
/// assert_eq!(rules.f_teids(), [FTeid::new(7, address)]);
/// assert!(rules.rule(FarId(1).into()).is_some());
/// assert_eq!(RuleSet::restore(rules.bytes())?, rules);
/// # Ok::<(), strowger_pfcp::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RuleSet {
    /// The session parameters, followed by the rules sorted by kind and number. Each is a complete
    /// element, and a rule contains its number.
    bytes: Box<[u8]>,
}

/// The result of applying a request to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleChange {
    /// The new rules of the session.
    pub rules: RuleSet,
    /// The elements of the answer that report allocated values: Created PDR and Created Traffic
    /// Endpoint.
    pub created: Vec<u8>,
    /// The tolerated deviations of the request from the specification.
    pub deviations: Vec<Deviation>,
}

/// One rule of a [`RuleSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule<'a> {
    /// The identifier of the rule.
    pub id: RuleId,
    /// The value of the element that would create the current state of the rule.
    pub value: &'a [u8],
}

impl<'a> Rule<'a> {
    /// Returns an iterator over the elements of the rule.
    #[must_use]
    pub const fn tlvs(&self) -> Tlvs<'a> {
        Tlvs::new(self.value)
    }

    /// Decodes the rule as a typed value. `T` must be the type of the rule's kind.
    ///
    /// # Errors
    /// Returns an error if a member is missing or malformed.
    pub fn decode<T: Ie>(&self) -> Result<T, Error> {
        T::decode(self.value)
    }
}

impl RuleSet {
    /// Creates the rules that a Session Establishment Request asks for.
    ///
    /// The message is checked for all interfaces at once, with the tolerance of [`tolerate`]. A
    /// caller that knows the interface of the message checks it for that interface beforehand.
    ///
    /// If the request is refused, the allocator must reclaim the values that it has allocated.
    ///
    /// # Errors
    /// Returns the refusal to answer with.
    pub fn establish(
        frame: &Frame<'_>,
        allocator: &mut dyn Allocator,
    ) -> Result<RuleChange, Refusal> {
        if frame.header.message_type != MessageType::SESSION_ESTABLISHMENT_REQUEST {
            return Err(Refusal::unsupported());
        }
        Self::default().change(frame, allocator)
    }

    /// Returns the rules that a Session Modification Request asks for. The current rules are not
    /// changed.
    ///
    /// Removals are applied first, then creations, then updates, so that a number can be reused in
    /// the message that frees it. An element of an update replaces all elements of its type; an
    /// empty element removes them.
    ///
    /// # Errors
    /// Returns the refusal to answer with.
    pub fn modify(
        &self,
        frame: &Frame<'_>,
        allocator: &mut dyn Allocator,
    ) -> Result<RuleChange, Refusal> {
        if frame.header.message_type != MessageType::SESSION_MODIFICATION_REQUEST {
            return Err(Refusal::unsupported());
        }
        self.change(frame, allocator)
    }

    fn change(
        &self,
        frame: &Frame<'_>,
        allocator: &mut dyn Allocator,
    ) -> Result<RuleChange, Refusal> {
        let deviations = with_thread_index(frame.bytes.len(), |index| {
            let view = MessageView::of(frame, index);
            let view = view.map_err(|error| Refusal::of(&error, frame.bytes))?;
            Ok::<_, Refusal>(tolerate(&view, Interfaces::ALL)?.deviations)
        })?;
        let mut draft = RuleSetDraft::of(self);
        draft.apply(frame)?;
        draft.check_references()?;
        let created = draft.allocate(allocator)?;
        let rules = draft.finish()?;
        Ok(RuleChange {
            rules,
            created,
            deviations,
        })
    }

    /// Restores the rules from the bytes returned by [`RuleSet::bytes`].
    ///
    /// # Errors
    /// Returns an error if the bytes cannot have come from there.
    pub fn restore(bytes: &[u8]) -> Result<Self, Error> {
        let mut last = None;
        for tlv in Tlvs::new(bytes) {
            let tlv = tlv?;
            let malformed = |field| Error::new(tlv.offset, ErrorKind::Malformed { field });
            let Some(kind) = RuleKind::created_by(tlv.ie) else {
                if last.is_some() {
                    return Err(malformed("order"));
                }
                continue;
            };
            if !is_well_formed(tlv.value) {
                return Err(malformed("rule"));
            }
            let id = kind.find_id(tlv.value).map_err(|_| malformed("rule"))?;
            if last.replace(id).is_some_and(|last| last >= id) {
                return Err(malformed("order"));
            }
        }
        Ok(Self {
            bytes: bytes.into(),
        })
    }

    /// Returns the encoded rules, for storage.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns `true` if there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Returns an iterator over all rules, sorted by kind and number.
    pub fn iter(&self) -> impl Iterator<Item = Rule<'_>> {
        let elements = Tlvs::new(&self.bytes).map_while(Result::ok);
        elements.filter_map(|tlv| {
            let id = RuleKind::created_by(tlv.ie)?.find_id(tlv.value).ok()?;
            let value = tlv.value;
            Some(Rule { id, value })
        })
    }

    /// Returns an iterator over the rules of a kind, sorted by number.
    pub fn rules(&self, kind: RuleKind) -> impl Iterator<Item = Rule<'_>> {
        let elements = Tlvs::new(&self.bytes).map_while(Result::ok);
        elements.filter_map(move |tlv| {
            let value = tlv.value;
            let id = (tlv.ie == kind.create()).then(|| kind.find_id(value).ok())??;
            Some(Rule { id, value })
        })
    }

    /// Finds a rule. The time is linear in the number of rules.
    #[must_use]
    pub fn rule(&self, id: RuleId) -> Option<Rule<'_>> {
        self.rules(id.kind).find(|rule| rule.id == id)
    }

    fn typed<T: Ie>(&self, kind: RuleKind) -> impl Iterator<Item = Result<T, Error>> {
        self.rules(kind).map(|rule| rule.decode())
    }

    /// Decodes the packet detection rules.
    pub fn pdrs(&self) -> impl Iterator<Item = Result<CreatePdr, Error>> {
        self.typed(RuleKind::Pdr)
    }

    /// Decodes the forwarding action rules.
    pub fn fars(&self) -> impl Iterator<Item = Result<CreateFar, Error>> {
        self.typed(RuleKind::Far)
    }

    /// Decodes the QoS enforcement rules.
    pub fn qers(&self) -> impl Iterator<Item = Result<CreateQer, Error>> {
        self.typed(RuleKind::Qer)
    }

    /// Decodes the usage reporting rules.
    pub fn urrs(&self) -> impl Iterator<Item = Result<CreateUrr, Error>> {
        self.typed(RuleKind::Urr)
    }

    /// Returns an iterator over the session parameters: F-SEID, PDN Type, User ID, ...
    pub fn session_elements(&self) -> impl Iterator<Item = Tlv<'_>> {
        let elements = Tlvs::new(&self.bytes).map_while(Result::ok);
        elements.take_while(|tlv| RuleKind::created_by(tlv.ie).is_none())
    }

    /// Decodes the F-TEIDs by which packets are detected.
    #[must_use]
    pub fn f_teids(&self) -> Vec<FTeid> {
        self.detected(IeType::F_TEID).map(|(_, end)| end).collect()
    }

    /// Finds the rule that detects packets by an F-TEID.
    #[must_use]
    pub fn rule_at(&self, teid: u32, address: IpAddr) -> Option<RuleId> {
        let is_at = |end: &FTeid| {
            let addresses = [end.ipv4.map(IpAddr::V4), end.ipv6.map(IpAddr::V6)];
            end.teid == Some(teid) && addresses.contains(&Some(address))
        };
        let mut ends = self.detected(IeType::F_TEID);
        ends.find(|(_, end)| is_at(end)).map(|(id, _)| id)
    }

    /// Decodes the UE IP addresses by which packets are detected.
    #[must_use]
    pub fn ue_addresses(&self) -> Vec<UeIpAddress> {
        let all = self.detected(IeType::UE_IP_ADDRESS);
        all.map(|(_, address)| address).collect()
    }

    /// Finds a rule that detects packets by a UE IP address that `wanted` selects.
    #[must_use]
    pub fn rule_of_ue(&self, wanted: impl Fn(&UeIpAddress) -> bool) -> Option<RuleId> {
        let mut all = self.detected(IeType::UE_IP_ADDRESS);
        all.find(|(_, ue)| wanted(ue)).map(|(id, _)| id)
    }

    /// Decodes the elements of a type in PDIs and traffic endpoints, each with the identifier of
    /// its rule.
    fn detected<T: Ie>(&self, ie: IeType) -> impl Iterator<Item = (RuleId, T)> {
        let pdis = self.rules(RuleKind::Pdr).flat_map(|rule| {
            of_type(rule.tlvs(), IeType::PDI).map(move |pdi| (rule.id, Tlvs::new(pdi.value)))
        });
        let endpoints = self.rules(RuleKind::TrafficEndpoint);
        let endpoints = endpoints.map(|rule| (rule.id, rule.tlvs()));
        pdis.chain(endpoints).flat_map(move |(id, tlvs)| {
            of_type(tlvs, ie).filter_map(move |tlv| Some((id, T::decode(tlv.value).ok()?)))
        })
    }
}

fn of_type(tlvs: Tlvs<'_>, ie: IeType) -> impl Iterator<Item = Tlv<'_>> {
    tlvs.map_while(Result::ok).filter(move |tlv| tlv.ie == ie)
}

impl std::fmt::Debug for RuleSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids = self.iter().map(|rule| rule.id.to_string());
        f.debug_struct("RuleSet")
            .field("octets", &self.bytes.len())
            .field("rules", &ids.collect::<Vec<_>>())
            .finish()
    }
}

macro_rules! rule_ids {
    ($($type:ident $kind:ident;)*) => {
        $(
            impl From<$type> for RuleId {
                fn from(id: $type) -> Self {
                    Self { kind: RuleKind::$kind, id: id.0.into() }
                }
            }
        )*
    };
}

rule_ids! {
    PdrId Pdr;
    FarId Far;
    QerId Qer;
    UrrId Urr;
    BarId Bar;
    TrafficEndpointId TrafficEndpoint;
}
