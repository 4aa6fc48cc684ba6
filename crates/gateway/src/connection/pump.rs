//! The transfer of a stream's items to the client.

use std::future::poll_fn;
use std::sync::Arc;

use strowger::{Fault, PayloadStream};
use tokio::sync::Semaphore;

use super::outbox::Outbox;

/// Sends items one by one. Returns `None` if the call has ended.
pub(super) async fn pump(
    id: u32,
    mut items: PayloadStream,
    credit: Arc<Semaphore>,
    outbox: Arc<Outbox>,
) -> Option<Result<(), Fault>> {
    // The end of the stream needs no credit, so credit is taken only after an item has arrived.
    while let Some(item) = poll_fn(|cx| items.poll_next(cx)).await {
        let item = match item {
            Ok(item) => item,
            Err(fault) => return Some(Err(fault)),
        };
        credit.acquire().await.ok()?.forget();
        match outbox.send_item(id, item).await {
            Ok(true) => {}
            Ok(false) => return None,
            Err(fault) => return Some(Err(fault)),
        }
    }
    Some(Ok(()))
}
