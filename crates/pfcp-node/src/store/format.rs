//! The encoding of records.
//!
//! ```text
//! | magic 4 | kind 1 | length 4 | commit 8 | payload | xxh3 of all before 8 |
//! ```
//!
//! Each record states its kind, its length and the group that committed it, so that it can be found
//! and checked for damage without the database around it. Numbers are big-endian.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;

use strowger_pfcp::association::{NodeName, Recovery};
use strowger_pfcp::session::RuleSet;
use strowger_pfcp::transaction::ResponseKey;
use strowger_pfcp::{MessageType, Seid, Sequence};
use xxhash_rust::xxh3::xxh3_64;

use super::{SessionRecord, StoredPeer, StoredPfds, StoredResponse};
use crate::pool::{AddressClaim, InstanceKey, Ipv6Prefix};

/// The format that this program writes, and the newest that it reads.
pub(super) const FORMAT: u32 = 1;

/// The first bytes of each record.
pub(super) const MAGIC: [u8; 4] = *b"SWr1";

/// Number of bytes before the payload.
const HEADER_LENGTH: usize = 17;
/// Number of bytes after the payload.
const TRAILER_LENGTH: usize = 8;
/// The maximum length of a payload: a rule set fits into one message, and its owner is stored
/// beside it.
const MAX_PAYLOAD: usize = 1 << 26;

/// The key of a record in the database.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum RecordKey {
    Session(Seid),
    Association(NodeName),
    /// A slot in the ring of responses.
    Answer(u32),
    /// An application, by the value of its Application ID.
    Application(Vec<u8>),
    /// The state of the store as a whole, which exists once.
    HeadRecord,
}

impl RecordKey {
    /// Encodes the key for the database.
    pub(super) fn encode(&self) -> Vec<u8> {
        let (kind, name) = match self {
            Self::Session(seid) => (1, seid.0.to_be_bytes().to_vec()),
            Self::Association(node) => (2, node.value().to_vec()),
            Self::Answer(slot) => (3, slot.to_be_bytes().to_vec()),
            Self::HeadRecord => (4, Vec::new()),
            Self::Application(application) => (5, application.clone()),
        };
        [&[kind][..], &name].concat()
    }

    /// Decodes a key.
    fn of(key: &[u8]) -> Option<Self> {
        let (kind, name) = key.split_first()?;
        let mut input = Decoder(name);
        Some(match kind {
            1 => Self::Session(Seid(input.u64()?)),
            2 => Self::Association(NodeName::from_value(name)?),
            3 => Self::Answer(input.u32()?),
            4 => Self::HeadRecord,
            5 => Self::Application(name.to_vec()),
            _ => return None,
        })
    }
}

/// A record of the store, by the first byte of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    Session(Arc<SessionRecord>),
    Association(Arc<StoredPeer>),
    Answer { slot: u32, answer: StoredResponse },
    HeadRecord(HeadRecord),
    Application(Arc<StoredPfds>),
}

/// The state of the store as a whole after a group was committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HeadRecord {
    /// Number of sessions.
    pub(super) sessions: u64,
    /// The wrapping sum of the digests of all other records: any missing, changed or extra record
    /// changes the sum.
    pub(super) sum: u64,
    /// A SEID that no session has had.
    pub(super) next_seid: u64,
    /// The Recovery Time Stamp of the node.
    pub(super) recovery: u32,
    /// The seed of the digests of requests.
    pub(super) seed: u64,
    /// The digest of a constant request. If another build computes a different one, the stored
    /// responses cannot be matched to requests.
    pub(super) probe: u64,
    /// The next slot in the ring of responses.
    pub(super) slot: u32,
    /// The keys that the group removed, except responses. A record that is found without the
    /// database may be a removed one.
    pub(super) removed: Vec<RecordKey>,
}

/// A record that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadRecord {
    pub(super) commit: u64,
    pub(super) record: Record,
    /// The digest of the complete record.
    pub(super) sum: u64,
    /// The length of the record in bytes.
    pub(super) bytes: usize,
}

impl Record {
    /// Returns the key of the record.
    pub(super) fn key(&self) -> RecordKey {
        match self {
            Self::Session(record) => RecordKey::Session(record.seid),
            Self::Association(owner) => RecordKey::Association(owner.node.clone()),
            Self::Answer { slot, .. } => RecordKey::Answer(*slot),
            Self::HeadRecord(_) => RecordKey::HeadRecord,
            Self::Application(one) => RecordKey::Application(one.application.clone()),
        }
    }

    /// Encodes the record; returns its bytes and its digest.
    pub(super) fn encode(&self, commit: u64) -> (Vec<u8>, u64) {
        let mut out = Encoder(Vec::with_capacity(512));
        out.bytes(&MAGIC);
        let kind = match self {
            Self::Session(record) if record.kept.is_empty() && !record.moved => 1,
            Self::Session(_) => 7,
            Self::Association(_) => 2,
            Self::Answer { answer, .. } => match answer.recovery {
                None => 3,
                Some(_) => 6,
            },
            Self::HeadRecord(_) => 4,
            Self::Application(_) => 5,
        };
        out.u8(kind);
        out.u32(0);
        out.u64(commit);
        match self {
            Self::Session(record) => {
                out.u64(record.seid.0);
                out.u64(record.peer_seid.0);
                out.owner(&record.owner);
                if kind == 7 {
                    out.u8(record.moved.into());
                    out.claims(&record.kept);
                }
                out.bytes(record.rules.bytes());
            }
            Self::Association(owner) => out.owner(owner),
            Self::Answer { slot, answer } => {
                out.u32(*slot);
                out.address(answer.key.peer);
                out.u32(answer.key.sequence.get());
                out.u8(answer.key.message_type.0);
                out.u64(answer.key.digest);
                out.u64(answer.at);
                if let Some(recovery) = answer.recovery {
                    out.u32(recovery.0);
                }
                out.bytes(&answer.bytes);
            }
            Self::HeadRecord(head) => {
                out.u64(head.sessions);
                out.u64(head.sum);
                out.u64(head.next_seid);
                out.u32(head.recovery);
                out.u64(head.seed);
                out.u64(head.probe);
                out.u32(head.slot);
                out.removed(&head.removed);
            }
            Self::Application(one) => {
                out.short(&one.application);
                out.bytes(&one.contents);
            }
        }
        let mut bytes = out.0;
        let length = u32::try_from(bytes.len() - HEADER_LENGTH).unwrap_or(u32::MAX);
        bytes[5..9].copy_from_slice(&length.to_be_bytes());
        let sum = xxh3_64(&bytes);
        bytes.extend_from_slice(&sum.to_be_bytes());
        (bytes, sum)
    }

    /// Decodes the record at the start of `bytes`; returns `None` unless it is complete and
    /// undamaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<ReadRecord> {
        if !bytes.starts_with(&MAGIC) {
            return None;
        }
        let length: [u8; 4] = *bytes.get(5..)?.first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
        if length > MAX_PAYLOAD {
            return None;
        }
        let (front, rest) = bytes.split_at_checked(HEADER_LENGTH + length)?;
        let sum = u64::from_be_bytes(*rest.first_chunk()?);
        if sum != xxh3_64(front) {
            return None;
        }
        let mut input = Decoder(&front[9..]);
        let commit = input.u64()?;
        let record = match front[4] {
            kind @ (1 | 7) => Self::Session(Arc::new(SessionRecord {
                seid: Seid(input.u64()?),
                peer_seid: Seid(input.u64()?),
                owner: Arc::new(input.owner()?),
                moved: kind == 7 && input.u8()? != 0,
                kept: match kind {
                    1 => Box::default(),
                    _ => input.claims()?,
                },
                rules: RuleSet::restore(input.0).ok()?,
            })),
            2 => Self::Association(Arc::new(input.owner()?)),
            kind @ (3 | 6) => Self::Answer {
                slot: input.u32()?,
                answer: StoredResponse {
                    key: ResponseKey {
                        peer: input.address()?,
                        sequence: Sequence::new(input.u32()?),
                        message_type: MessageType(input.u8()?),
                        digest: input.u64()?,
                    },
                    at: input.u64()?,
                    recovery: match kind {
                        3 => None,
                        _ => Some(Recovery(input.u32()?)),
                    },
                    bytes: input.0.into(),
                },
            },
            4 => Self::HeadRecord(HeadRecord {
                sessions: input.u64()?,
                sum: input.u64()?,
                next_seid: input.u64()?,
                recovery: input.u32()?,
                seed: input.u64()?,
                probe: input.u64()?,
                slot: input.u32()?,
                removed: input.removed()?,
            }),
            5 => Self::Application(Arc::new(StoredPfds {
                application: input.short()?.to_vec(),
                contents: input.0.to_vec(),
            })),
            _ => return None,
        };
        let bytes = HEADER_LENGTH + length + TRAILER_LENGTH;
        Some(ReadRecord {
            commit,
            record,
            sum,
            bytes,
        })
    }
}

struct Encoder(Vec<u8>);

impl Encoder {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Writes bytes with a length prefix: the value of an IE, whose length fits into 16 bits.
    fn short(&mut self, bytes: &[u8]) {
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.bytes(&length.to_be_bytes());
        self.bytes(bytes);
    }

    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    /// Writes the SEIDs of sessions; then, if there are any, SEID 0, which no session has, and the
    /// keys of other records.
    fn removed(&mut self, keys: &[RecordKey]) {
        let mut others = Vec::new();
        for key in keys {
            match key {
                RecordKey::Session(seid) => self.u64(seid.0),
                other => others.push(other.encode()),
            }
        }
        if !others.is_empty() {
            self.u64(0);
        }
        for key in others {
            self.short(&key);
        }
    }

    fn ip(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                self.u8(4);
                self.bytes(&address.octets());
            }
            IpAddr::V6(address) => {
                self.u8(6);
                self.bytes(&address.octets());
            }
        }
    }

    fn address(&mut self, address: SocketAddr) {
        self.ip(address.ip());
        self.bytes(&address.port().to_be_bytes());
        if let SocketAddr::V6(address) = address {
            // A link-local address is useless without its scope.
            self.u32(address.scope_id());
        }
    }

    /// Writes UE addresses with a count before them.
    fn claims(&mut self, claims: &[AddressClaim]) {
        self.u32(u32::try_from(claims.len()).unwrap_or(u32::MAX));
        for claim in claims {
            match *claim {
                AddressClaim::Ue { instance, address } => {
                    self.u64(instance.0);
                    self.ip(address.into());
                }
                AddressClaim::Prefix { instance, prefix } => {
                    let (address, length) = prefix.parts();
                    self.u64(instance.0);
                    self.ip(address.into());
                    self.u8(length);
                }
                // Tunnels are always those of the rules.
                AddressClaim::Teid { .. } => {}
            }
        }
    }

    fn owner(&mut self, owner: &StoredPeer) {
        self.short(owner.node.value());
        self.address(owner.address);
        self.u32(owner.recovery.0);
        self.ip(owner.local);
    }
}

struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn short(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.array().map(u16::from_be_bytes)?);
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn removed(&mut self) -> Option<Vec<RecordKey>> {
        let mut keys = Vec::new();
        while !self.0.is_empty() {
            match self.u64()? {
                0 => break,
                seid => keys.push(RecordKey::Session(Seid(seid))),
            }
        }
        while !self.0.is_empty() {
            keys.push(RecordKey::of(self.short()?)?);
        }
        Some(keys)
    }

    fn ip(&mut self) -> Option<IpAddr> {
        match self.u8()? {
            4 => self.array::<4>().map(|bytes| Ipv4Addr::from(bytes).into()),
            6 => self.array::<16>().map(|bytes| Ipv6Addr::from(bytes).into()),
            _ => None,
        }
    }

    fn address(&mut self) -> Option<SocketAddr> {
        let ip = self.ip()?;
        let port = self.array().map(u16::from_be_bytes)?;
        Some(match ip {
            IpAddr::V4(ip) => SocketAddr::V4(SocketAddrV4::new(ip, port)),
            IpAddr::V6(ip) => SocketAddr::V6(SocketAddrV6::new(ip, port, 0, self.u32()?)),
        })
    }

    fn claims(&mut self) -> Option<Box<[AddressClaim]>> {
        let count = self.u32()?;
        let claim = |_| {
            let instance = InstanceKey(self.u64()?);
            Some(match self.ip()? {
                IpAddr::V4(address) => AddressClaim::Ue { instance, address },
                IpAddr::V6(address) => {
                    let length = self.u8().filter(|length| *length <= 128)?;
                    let prefix = Ipv6Prefix::new(address, length);
                    AddressClaim::Prefix { instance, prefix }
                }
            })
        };
        (0..count).map(claim).collect()
    }

    fn owner(&mut self) -> Option<StoredPeer> {
        Some(StoredPeer {
            node: NodeName::from_value(self.short()?)?,
            address: self.address()?,
            recovery: Recovery(self.u32()?),
            local: self.ip()?,
        })
    }
}
