//! The code of `docs/compare.md` and of the guides: compiled here, quoted there. Every Rust block
//! of a page in `docs/` must appear word for word in one of these files or in an example; `cargo
//! xtask tidy` checks that.

#![expect(missing_docs, reason = "the pages that quote it say what it is")]

pub mod actix;
pub mod kameo;
pub mod ractor;
pub mod strowger;
pub mod tokio;
