//! Replacing the version of a running component.

use std::sync::Arc;

use super::ComponentActor;
use super::incarnation::{Incarnation, SavedState};
use crate::contract::StartReason;
use crate::fault::{CallPhase, Fault, FaultKind};
use crate::host::CapacityPermit;
use crate::load::Image;
use crate::message::Upgrade;

impl ComponentActor {
    /// Replaces the running version with another one. On an inner error the running version
    /// continues; the outer error is a fault of the running version itself.
    pub(super) async fn upgrade(&mut self, upgrade: Upgrade) -> Result<Result<(), Fault>, Fault> {
        let Upgrade { image, over } = upgrade;
        if over.is_some_and(|over| !Arc::ptr_eq(&over, &self.shared.image())) {
            let text = "another version was started meanwhile".to_owned();
            return Ok(Err(Fault {
                phase: CallPhase::Instantiate,
                kind: FaultKind::Host { text },
            }));
        }
        let stateful =
            image.exports.is_stateful() && self.incarnation.image().exports.is_stateful();
        let saved = if stateful {
            Some(self.incarnation.snapshot().await?)
        } else {
            None
        };
        let next = self.start_version(&image, saved.clone()).await;
        let upgraded = next.map(|(mut incarnation, permit)| {
            incarnation
                .guest_mut()
                .take_over(self.incarnation.guest_mut());
            self.incarnation = incarnation;
            self.shared.set_version(image, permit);
            self.unsaved = 0;
            saved
        });
        let upgraded = upgraded.map(|saved| self.hand_over(saved));
        if upgraded.is_err() {
            self.incarnation.guest_mut().renew_subscriptions();
        }
        Ok(upgraded)
    }

    /// Saves the state that the previous version handed over: the new version has received it, and
    /// may fail before it returns a state of its own.
    fn hand_over(&self, saved: Option<SavedState>) {
        let Some(saved) = saved else {
            return self.shared.discard_state();
        };
        if let Err(fault) = self.shared.save_state(saved)
            && let Some(omitted) = self.shared.take_log_line()
        {
            let component = self.shared.name();
            tracing::warn!(component, %fault, omitted, "cannot save the state");
        }
    }

    /// Starts an incarnation of another version beside the running one, and checks its health.
    async fn start_version(
        &self,
        image: &Arc<Image>,
        saved: Option<SavedState>,
    ) -> Result<(Incarnation, CapacityPermit), Fault> {
        let host = self.shared.host();
        let permit = host.reserve_instance(image.waits()).map_err(|full| Fault {
            phase: CallPhase::Instantiate,
            kind: FaultKind::Host {
                text: full.to_string(),
            },
        })?;
        let guest = self.incarnation.guest();
        let (env, tokens) = (guest.env.clone(), guest.next_token());
        let usage = self.shared.usage()?;
        let mut incarnation =
            Incarnation::begin(host, Arc::clone(image), usage, env, tokens).await?;
        incarnation
            .init(self.shared.start_params(StartReason::Upgrade, saved))
            .await?;
        incarnation.health().await??;
        Ok((incarnation, permit))
    }
}
