//! The endpoints of a node, called by clients that behave and by clients that do not.

mod control;
mod hostile;
mod http;
mod mcp;
mod messages;
mod socket;
mod watch;
