//! An actor that performs slow operations from inside the system: drains, and batches that start
//! together.

use std::time::Duration;

use strowger::{Actor, ActorRef, BoxError, Context, DynamicRef};

use crate::accounting::{Shared, note};
use crate::actors::StormMessage;
use crate::streams_and_groups::Listener;

pub(crate) enum BatchOperation {
    /// Drains a worker.
    Drain(&'static str, Duration),
    /// Starts listeners with these keys, all or none.
    Together(DynamicRef<Listener>, Vec<String>),
}

pub(crate) struct BatchOperator(Shared);

impl Actor for BatchOperator {
    type Msg = BatchOperation;
    type Args = Shared;
    type Error = BoxError;

    async fn pre_start(books: Shared, _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self(books))
    }

    async fn handle(
        &mut self,
        grip: BatchOperation,
        cx: &mut Context<Self>,
    ) -> Result<(), BoxError> {
        let books = Shared::clone(&self.0);
        match grip {
            BatchOperation::Drain(path, within) => {
                if let Some(worker) = cx.system().find(path) {
                    let worker = worker.downcast().ok_or("workers take letters")?;
                    cx.task("drain", drain(path, worker, within, books));
                }
            }
            BatchOperation::Together(crowd, keys) => {
                cx.task("together", together(crowd, keys, books))
            }
        }
        Ok(())
    }
}

async fn drain(path: &str, worker: ActorRef<StormMessage>, within: Duration, books: Shared) {
    let left = worker.drain(within).await;
    note(&books, |books| {
        books.hand_back(path, left.len() as u64);
    });
}

async fn together(crowd: DynamicRef<Listener>, keys: Vec<String>, books: Shared) {
    let wanted = keys.len();
    let before: Vec<_> = keys.iter().map(|key| crowd.child(key)).collect();
    let children = keys
        .iter()
        .cloned()
        .zip(std::iter::repeat(Shared::clone(&books)));
    let started = crowd.start_all(children.collect::<Vec<_>>()).await;
    note(&books, |books| match started {
        Ok(started) => {
            books.count("batch started together");
            if started.len() != wanted {
                books.note_violation(format!("{} of {wanted} started together", started.len()));
            }
        }
        Err(_) => {
            books.count("batch refused together");
            for (key, before) in keys.iter().zip(before) {
                if before.is_none() && crowd.child(key).is_some() {
                    books.note_violation(format!("{key} is left of a batch that was refused"));
                }
            }
        }
    });
}
