//! Snapshots of the whole system, taken by one actor for all callers, and rarely enough to cost
//! next to nothing.

use std::convert::Infallible;
use std::time::Duration;

use strowger::{
    Actor, ActorRef, ActorSystem, Ask, Context, MailboxSpec, Request, SystemObserver, TopQuery,
    TopReport,
};
use tokio::time::{Instant, sleep, sleep_until};

/// The request for a snapshot.
#[derive(Debug, Clone)]
pub(crate) struct TakeSnapshot(pub(crate) TopQuery);

impl Request for TakeSnapshot {
    type Reply = TopReport;
}

pub(crate) enum SnapshotMsg {
    Take(Ask<TakeSnapshot>),
    /// The timer message that checks if there were recent requests.
    CheckIdle,
}

impl strowger::Accepts<Ask<TakeSnapshot>> for SnapshotMsg {
    fn wrap(ask: Ask<TakeSnapshot>) -> Self {
        Self::Take(ask)
    }
}

/// The actor that takes snapshots.
pub(crate) struct SnapshotTaker {
    observer: Option<SystemObserver>,
    last: Instant,
    last_duration: Duration,
}

/// Minimum pause between snapshots, as a multiple of the duration of the last one: together they
/// take at most one percent of one thread, however many actors there are.
const PAUSE_FACTOR: u32 = 100;

/// The period over which the rates of the first snapshot are measured.
const FIRST_PERIOD: Duration = Duration::from_millis(250);

/// Time without requests after which the baseline for rates is dropped.
const BASELINE_LIFETIME: Duration = Duration::from_secs(10);

impl Actor for SnapshotTaker {
    type Msg = SnapshotMsg;
    type Args = ();
    type Error = Infallible;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(64);

    async fn pre_start((): (), cx: &mut Context<Self>) -> Result<Self, Infallible> {
        cx.send_every(BASELINE_LIFETIME, || SnapshotMsg::CheckIdle);
        Ok(Self {
            observer: None,
            last: cx.now(),
            last_duration: Duration::ZERO,
        })
    }

    async fn handle(
        &mut self,
        message: SnapshotMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        match message {
            SnapshotMsg::Take(Ask { request, reply }) => {
                let top = self.take(&request.0, &cx.system()).await;
                reply.send(top);
            }
            SnapshotMsg::CheckIdle => {
                if cx.now().saturating_duration_since(self.last) >= BASELINE_LIFETIME {
                    self.observer = None;
                }
            }
        }
        Ok(())
    }
}

impl SnapshotTaker {
    async fn take(&mut self, query: &TopQuery, system: &ActorSystem) -> TopReport {
        sleep_until(self.last + self.last_duration * PAUSE_FACTOR).await;
        let observer = match &mut self.observer {
            Some(observer) => observer,
            none => {
                let observer = none.insert(system.observer());
                observer.top(&query.clone().rows(0)).await;
                sleep(FIRST_PERIOD).await;
                observer
            }
        };
        let top = observer.top(query).await;
        self.last = system.now();
        self.last_duration = top.duration;
        top
    }
}

/// Finds the snapshot taker at a path.
pub(crate) fn find(system: &ActorSystem, path: &str) -> Option<ActorRef<SnapshotMsg>> {
    system.find(path)?.downcast()
}
