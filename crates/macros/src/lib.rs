//! Writes the glue between an actor's handlers and its messages; used through the crate
//! `strowger`, which re-exports it.
//!
//! The block is read without its bodies: they pass through token by token, so that what is wrong
//! inside of them is said by the compiler where it stands.

mod block;
mod handler;
mod tokens;
mod write;

use proc_macro::TokenStream;

/// Writes an actor's message type and its `handle` from a block of handlers; documented in full
/// where `strowger` re-exports it.
#[proc_macro_attribute]
pub fn handlers(options: TokenStream, block: TokenStream) -> TokenStream {
    write::expand(options.into(), block.into()).into()
}
