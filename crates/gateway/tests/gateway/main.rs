//! The endpoints of a node, called by clients that behave and by clients that do not.

mod control;
mod hostile;
mod http;
#[cfg(feature = "mcp")]
mod mcp;
mod messages;
mod socket;
mod watch;
