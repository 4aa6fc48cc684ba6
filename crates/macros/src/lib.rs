//! Generates the code between an actor's handlers and its messages. Used through the crate
//! `strowger`, which re-exports it.
//!
//! Function bodies are not parsed: they are passed through token by token, so the compiler reports
//! errors inside them at their own place.

mod block;
mod handler;
mod tokens;
mod write;

use proc_macro::TokenStream;

/// Generates an actor's message type and its `handle` from a block of handlers. Documented in full
/// where `strowger` re-exports it.
#[proc_macro_attribute]
pub fn handlers(options: TokenStream, block: TokenStream) -> TokenStream {
    write::expand(options.into(), block.into()).into()
}
