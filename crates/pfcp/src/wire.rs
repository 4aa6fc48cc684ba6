//! The wire format: message headers, the messages of a datagram, and the elements of a body.
//!
//! ```text
//! datagram   | message                                      | message (follow-on) |
//! message    | header: 8 or 16 bytes | body: elements ...   |
//! element    | type: 2 | length: 2 | [enterprise: 2] value: length |
//! ```
//!
//! Everything here borrows the datagram, and every length is checked before it is used. Offsets in
//! errors count from the first byte of the input.

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
pub(crate) use index::{DEPTH, IndexNode};
pub use part::{Part, Parts};
pub use tlv::{Tlv, Tlvs};
pub(crate) use tree::{Tree, UnreadElements};
pub use writer::Writer;
