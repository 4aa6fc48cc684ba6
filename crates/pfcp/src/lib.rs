//! PFCP (TS 29.244) without I/O, clock or async.
//!
//! A datagram becomes frames; a frame is checked in one walk and read through a borrowed view, or
//! becomes an owned message. All three come from the same rows:
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
//! The root has what every program needs. The rest is at home in its module:
//!
//! | | |
//! |---|---|
//! | [`ie`] | the information elements, with an index by family |
//! | [`message`] | the 25 messages |
//! | [`mod@validate`] | what is wrong with a message, as data |
//! | [`mod@compare`] | what two messages say differently |
//! | [`vendor`] | names and fields for the elements of vendors |
//! | [`wire`] | headers, frames and elements that nobody has interpreted yet |
//! | [`transaction`] | requests repeated, answers kept |
//! | [`association`] | peers, and when they restarted |
//! | [`session`] | the rules that a peer has set up |
//! | [`usage`] | what passes a session, counted and reported |
//! | [`endpoint`] | all of these as one node |
//!
//! The last five are the state machines of the protocol, also without I/O: time is an argument,
//! `handle_*` takes in, `poll_*` gives out.

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
mod planted;
mod text;

pub use compare::{Difference, Ignore, compare};
pub use error::{Error, ErrorKind, IePath, PathStep};
pub use ie::{Ie, IeType, Interfaces, Release};
#[cfg(feature = "serde")]
pub use json::{JsonError, JsonPath, JsonStep, from_json, to_json};
pub use message::{Message, MessageType, MessageView};
pub use validate::{Rejection, validate};
pub use wire::{Frame, Frames, Header, Index, Seid, Sequence, frames};
