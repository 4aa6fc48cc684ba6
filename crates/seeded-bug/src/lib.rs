//! Seeded bugs: defects that tests switch on one at a time, to show that they find them.
//!
//! A crate lists its bugs with [`bugs!`] and asks `seeded(Bug::..)` at the place of each. With the
//! feature `present`, which only dev-dependencies turn on, the environment variable `STROWGER_BUG`
//! names the active bug. In all other builds the answer is a constant `false`, and the bugs are
//! compiled out.
//!
//! ```
//! mod seeded_bug {
//!     strowger_seeded_bug::bugs! {
//!         /// The last item is left out.
//!         LastItemForgotten,
//!     }
//! }
//! use seeded_bug::{Bug, seeded};
//!
//! fn sum(items: &[u32]) -> u32 {
//!     let left_out = usize::from(seeded(Bug::LastItemForgotten));
//!     items[..items.len() - left_out].iter().sum()
//! }
//! assert_eq!(sum(&[1, 2]), 3);
//! ```

/// `true` if this build contains the seeded bugs. Models of loom never do: their number of
/// interleavings must not depend on it.
pub const PRESENT: bool = cfg!(all(feature = "present", not(strowger_loom)));

/// Returns the index of the active bug in a list of names.
#[doc(hidden)]
#[must_use]
pub fn active(names: &[&str]) -> Option<usize> {
    index_of(&std::env::var("STROWGER_BUG").ok()?, names)
}

fn index_of(bug: &str, names: &[&str]) -> Option<usize> {
    names.iter().position(|name| *name == bug)
}

/// Defines the enum `Bug` of a crate, and the function `seeded`, which returns `true` for the bug
/// that is active. The environment is read once.
#[macro_export]
macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// A bug that can be seeded.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Bug {
            $($(#[$doc])* $name,)+
        }

        /// Returns `true` if this bug is active.
        #[inline(always)]
        pub(crate) fn seeded(bug: Bug) -> bool {
            static ACTIVE: ::std::sync::OnceLock<Option<usize>> = ::std::sync::OnceLock::new();
            $crate::PRESENT
                && *ACTIVE.get_or_init(|| $crate::active(&[$(stringify!($name)),+]))
                    == Some(bug as usize)
        }
    };
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    #[test]
    fn bug_is_found_by_its_whole_name() {
        let names = ["One", "OneMore"];
        assert_eq!(super::index_of("OneMore", &names), Some(1));
        assert_eq!(super::index_of("OneM", &names), None);
        assert_eq!(super::index_of("", &names), None);
    }
}
