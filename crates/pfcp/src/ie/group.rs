//! Grouped information elements, by purpose.

pub(super) mod access;
pub(super) mod bridge;
pub(super) mod create;
pub(super) mod created;
pub(super) mod media;
pub(super) mod multicast;
pub(super) mod node;
pub(super) mod quality;
pub(super) mod remove;
pub(super) mod report;
pub(super) mod session;
pub(super) mod tunnel;
pub(super) mod update;

use super::members::group;
