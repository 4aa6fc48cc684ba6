//! Frames: the header of a message, the messages of a datagram, the elements of a body.
//!
//! ```text
//! datagram   | message                                      | message (follow-on) |
//! message    | header: 8 or 16 octets | body: elements ...  |
//! element    | type: 2 | length: 2 | [enterprise: 2] value: length |
//! ```
//!
//! Everything here borrows the datagram and checks every length before it is used; offsets in
//! errors count from the first octet that was handed in.

mod frames;
mod header;
mod index;
mod part;
mod shape;
mod tlv;
mod tree;
mod walk;
mod writer;

pub use frames::{Frame, Frames, frames};
pub use header::{Header, Seid, Sequence};
pub use index::Index;
pub(crate) use index::{DEPTH, Node};
pub use part::{Part, Parts};
pub use tlv::{Tlv, Tlvs};
pub(crate) use tree::{Below, Tree};
pub use writer::Writer;
