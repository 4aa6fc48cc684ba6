//! An attempt to deliver the messages to one receiver.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{Delivery, InboundMessage};
use crate::entity::{EntityError, Hosted};
use crate::store::EntityId;

/// Maximum time until a receiver is awake. If senders of its own kind leave no room for it, those
/// whose attempt has ended are put to sleep. An activation that takes longer goes on, and the next
/// attempt finds it.
pub(crate) const ENTER_LIMIT: Duration = Duration::from_secs(1);
/// Maximum time until a receiver acknowledges a message. A receiver that takes longer gets the
/// message again, and ignores the repetition.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(30);

/// A pending delivery, which ends with the acknowledgement.
pub(crate) type DeliveryFuture = Pin<Box<dyn Future<Output = Result<(), DeliveryFailure>> + Send>>;

/// The reason why a message was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeliveryFailure {
    #[error(
        "kind `{kind}` has no host in this process; start it with the `Entities` of the sender"
    )]
    NoHost { kind: String },
    #[error("{0}")]
    NotActivated(EntityError),
    #[error("not activated within {} s", ENTER_LIMIT.as_secs())]
    StillNotActive,
    #[error("{limit} deliveries wait for the receiver, the limit")]
    TooManyWait { limit: usize },
    #[error("the receiver ended before it had stored the message")]
    ReceiverEnded,
    #[error("the receiver does not implement `DurableActor::receive`")]
    NotReceived,
    #[error("no acknowledgement within {} s", ATTEMPT_LIMIT.as_secs())]
    TimedOut,
    #[error("the sender ended")]
    SenderEnded,
}

/// The result of an attempt.
#[derive(Debug)]
pub(super) struct LaneReport {
    pub(super) receiver: EntityId,
    /// The number of the last message that was acknowledged.
    pub(super) acknowledged: Option<u64>,
    /// The reason why the next message was not acknowledged.
    pub(super) failure: Option<DeliveryFailure>,
}

/// An attempt, which reports also if it is aborted.
pub(super) struct LaneAttempt {
    messages: Vec<Delivery>,
    report: Option<LaneReport>,
    reports: Arc<Mutex<Vec<LaneReport>>>,
}

impl LaneAttempt {
    pub(super) const fn new(
        receiver: EntityId,
        messages: Vec<Delivery>,
        reports: Arc<Mutex<Vec<LaneReport>>>,
    ) -> Self {
        let report = LaneReport {
            receiver,
            acknowledged: None,
            failure: Some(DeliveryFailure::SenderEnded),
        };
        Self {
            messages,
            report: Some(report),
            reports,
        }
    }

    /// Delivers the messages in order, until one of them is not acknowledged.
    pub(super) async fn run(mut self, hosted: Hosted) {
        let Some(report) = &mut self.report else {
            return;
        };
        for delivery in std::mem::take(&mut self.messages) {
            let number = delivery.number;
            let delivered = deliver(&hosted, &report.receiver, delivery);
            let delivered = tokio::time::timeout(ATTEMPT_LIMIT, delivered).await;
            if let Err(failure) = delivered.unwrap_or(Err(DeliveryFailure::TimedOut)) {
                report.failure = Some(failure);
                return;
            }
            report.acknowledged = Some(number);
        }
        report.failure = None;
    }
}

impl Drop for LaneAttempt {
    fn drop(&mut self) {
        self.reports.lock().extend(self.report.take());
    }
}

/// Delivers a message, and waits until the receiver has stored its effect.
async fn deliver(
    hosted: &Hosted,
    receiver: &EntityId,
    delivery: Delivery,
) -> Result<(), DeliveryFailure> {
    let (done, acknowledged) = oneshot::channel();
    let inbound = InboundMessage::new(delivery, done);
    hosted.deliver(receiver, inbound, acknowledged).await
}
