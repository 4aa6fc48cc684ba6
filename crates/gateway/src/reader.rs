//! Readings of the whole system, made by one actor for all who ask, and never so often that the
//! system would notice.

use std::convert::Infallible;
use std::time::Duration;

use strowger::{
    Actor, ActorRef, ActorSystem, Ask, Context, MailboxSpec, Observer, Request, Top, TopQuery,
};
use tokio::time::{Instant, sleep, sleep_until};

/// Asks for a reading.
#[derive(Debug, Clone)]
pub(crate) struct Read(pub(crate) TopQuery);

impl Request for Read {
    type Reply = Top;
}

pub(crate) enum ReaderMsg {
    Read(Ask<Read>),
    /// It is time to see whether anybody asks.
    Look,
}

impl strowger::Accepts<Ask<Read>> for ReaderMsg {
    fn wrap(ask: Ask<Read>) -> Self {
        Self::Read(ask)
    }
}

/// Reads the system for others.
pub(crate) struct Reader {
    observer: Option<Observer>,
    last: Instant,
    took: Duration,
}

/// A reading waits until this many times what the last one took has passed: all of them together
/// take at most one percent of one thread, however many actors there are.
const REST: u32 = 100;

/// Rates of the first reading are counted over this time.
const FIRST: Duration = Duration::from_millis(250);

/// What rates are counted from is forgotten when nobody asked for so long.
const FORGET: Duration = Duration::from_secs(10);

impl Actor for Reader {
    type Msg = ReaderMsg;
    type Args = ();
    type Error = Infallible;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(64);

    async fn pre_start((): (), cx: &mut Context<Self>) -> Result<Self, Infallible> {
        cx.send_every(FORGET, || ReaderMsg::Look);
        Ok(Self {
            observer: None,
            last: cx.now(),
            took: Duration::ZERO,
        })
    }

    async fn handle(
        &mut self,
        message: ReaderMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        match message {
            ReaderMsg::Read(Ask { request, reply }) => {
                let top = self.read(&request.0, &cx.system()).await;
                reply.send(top);
            }
            ReaderMsg::Look => {
                if cx.now().saturating_duration_since(self.last) >= FORGET {
                    self.observer = None;
                }
            }
        }
        Ok(())
    }
}

impl Reader {
    async fn read(&mut self, query: &TopQuery, system: &ActorSystem) -> Top {
        sleep_until(self.last + self.took * REST).await;
        let observer = match &mut self.observer {
            Some(observer) => observer,
            none => {
                let observer = none.insert(system.observer());
                observer.top(&query.clone().rows(0)).await;
                sleep(FIRST).await;
                observer
            }
        };
        let top = observer.top(query).await;
        self.last = system.now();
        self.took = top.took;
        top
    }
}

/// The reader at this path.
pub(crate) fn find(system: &ActorSystem, path: &str) -> Option<ActorRef<ReaderMsg>> {
    system.find(path)?.downcast()
}
