//! A PFCP stack (3GPP TS 29.244) without I/O, a clock or async code.
//!
//! A datagram is split into frames. A frame is checked in one pass and then read through a borrowed
//! view, or converted to an owned message. Checks, views and messages all use the same tables:
//!
//! ```text
//!  datagram --frames()--> Frame --MessageView::of()--> MessageView --to_message()--> Message
//!                                   |        |                                         |
//!                            validate()   to_json(), Display                       encode()
//! ```
//!
//! ```
//! use strowger_pfcp::ie::{ApplyAction, CreateFar, CreatePdr, FTeid, Pdi, SourceInterface};
//! use strowger_pfcp::message::SessionEstablishmentRequest;
//! use strowger_pfcp::{Message, Seid, Sequence};
//!
//! let address: std::net::IpAddr = [127, 0, 0, 1].into();
//! let pdi = Pdi::new(SourceInterface::ACCESS).local_f_teid(FTeid::new(7, address));
//! let pdr = CreatePdr::new(1, pdi).precedence(100).far_id(1);
//! let far = CreateFar::new(1, ApplyAction::DROP);
//! let body = SessionEstablishmentRequest::new(address, (1, address))
//!     .create_pdrs([pdr])
//!     .create_fars([far]);
//! let message = Message::session(Seid(0), Sequence::new(1), body);
//! assert_eq!(Message::decode(&message.encode()?)?, message);
//! # Ok::<(), strowger_pfcp::Error>(())
//! ```
//!
//! The crate root re-exports the items that every program needs. The rest is in the modules:
//!
//! | | |
//! |---|---|
//! | [`ie`] | the information elements (IEs), with an index by family |
//! | [`message`] | the 25 messages |
//! | [`mod@validate`] | validation, with every fault reported as data |
//! | [`mod@compare`] | the differences between two messages |
//! | [`vendor`] | names and fields for vendor-specific IEs |
//! | [`wire`] | headers, frames and uninterpreted IEs |
//! | [`transaction`] | retransmission of requests, and repetition of answers |
//! | [`association`] | peers, and the detection of their restarts |
//! | [`session`] | the rules that a peer has provisioned |
//! | [`usage`] | usage measurement and reporting for a session |
//! | [`endpoint`] | all of these combined into one node |
//!
//! The last five are the state machines of the protocol. They perform no I/O either: time is an
//! argument, `handle_*` methods take input, and `poll_*` methods return output.

#![forbid(unsafe_code)]

pub mod association;
pub mod compare;
pub mod endpoint;
pub mod ie;
pub mod message;
pub mod session;
pub mod transaction;
pub mod usage;
pub mod validate;
pub mod vendor;
pub mod wire;

mod error;
#[cfg(feature = "serde")]
mod json;
mod seeded_bug;
mod text;

pub use compare::{Difference, Ignore, compare};
pub use error::{Error, ErrorKind, IePath, PathStep};
pub use ie::{Ie, IeType, Interfaces, Release};
#[cfg(feature = "serde")]
pub use json::{JsonError, JsonPath, JsonStep, from_json, to_json};
pub use message::{Message, MessageType, MessageView};
pub use validate::{Rejection, validate};
pub use wire::{Frame, Frames, Header, Index, Seid, Sequence, frames};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
