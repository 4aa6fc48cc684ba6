//! Usage reporting rules that take little memory until they count.
//!
//! A control plane may provision many rules, most of which see no traffic. Such a rule is its
//! parameters and the time of its creation, which equal rules of a session share. It gets an
//! [`UrrState`] with the first packet, report or update, or at once if it has a deadline, such as a
//! period or a monitoring time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::count::Epoch;
use super::parameters::UrrParameters;
use super::urr::UrrState;

/// A usage reporting rule of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MeterRule {
    initial: Arc<InitialUrr>,
    /// `None` until something differs from the start.
    state: Option<Box<UrrState>>,
}

/// The start of a rule, from which its first state follows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InitialUrr {
    parameters: Arc<UrrParameters>,
    created: Instant,
    /// The UR-SEQN of the first report.
    number: u32,
}

impl InitialUrr {
    fn state(&self, epoch: Epoch) -> Box<UrrState> {
        let parameters = Arc::clone(&self.parameters);
        UrrState::new(self.created, epoch, parameters, self.number).into()
    }
}

impl MeterRule {
    /// Creates a rule, which shares its start with `like` if both start alike.
    pub(super) fn new(
        now: Instant,
        epoch: Epoch,
        parameters: UrrParameters,
        number: u32,
        like: Option<&Self>,
    ) -> Self {
        let initial = InitialUrr {
            parameters: parameters.into(),
            created: now,
            number,
        };
        let initial = match like {
            Some(like) if *like.initial == initial => Arc::clone(&like.initial),
            _ => initial.into(),
        };
        let state = Some(initial.state(epoch)).filter(|state| !state.is_static());
        Self { initial, state }
    }

    pub(super) fn parameters(&self) -> &UrrParameters {
        let own = self.state.as_ref().map(|state| &state.parameters);
        own.unwrap_or(&self.initial.parameters)
    }

    /// Returns the state of the rule if it has one.
    pub(super) fn state_mut(&mut self) -> Option<&mut UrrState> {
        self.state.as_deref_mut()
    }

    /// Returns the state of the rule, which gets one if it has none.
    pub(super) fn start(&mut self, epoch: Epoch) -> &mut UrrState {
        self.state.get_or_insert_with(|| self.initial.state(epoch))
    }

    /// Returns `true` if a quota stops the traffic of the rule.
    pub(super) fn is_blocked(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.blocked)
    }

    pub(super) fn deadline(&self, idle_timeout: Duration) -> Option<Instant> {
        self.state.as_ref()?.deadline(idle_timeout)
    }
}
