//! The outbox of a connection: its open calls, and the bytes that are not written yet.
//!
//! Answers arrive in the turns of the actors that give them, and leave in the writer task, so the
//! state is shared under a lock; nothing waits while holding it. A call is in the table from its
//! frame to its answer. The code that removes it from the table answers it, so each call is
//! answered exactly once.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;
use strowger::{
    CallReply, CallSink, DeliveryHandle, Fault, FaultCode, Payload, PayloadStream, ReplyLane,
};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use crate::access::AuditGuard;
use crate::frame::{Frame, FrameKind};
use crate::limits::Limits;

pub(super) struct Outbox {
    state: Mutex<OutboxState>,
    /// Notified when there are bytes to write, or the connection is closing.
    work: Notify,
    /// Notified when there is room for more bytes, or the connection is gone.
    room: Notify,
    limits: Limits,
    items: ReplyLane<PayloadStream>,
}

struct OutboxState {
    bytes: BytesMut,
    /// Number of bytes that the writer has taken but not written yet.
    writing: usize,
    open_calls: FxHashMap<u32, OpenCall>,
    stage: OutboxStage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutboxStage {
    Open,
    /// The client sends nothing more; open calls are still answered.
    Ending,
    /// Nothing is added any more; buffered bytes are still written.
    Closing,
    /// Nothing is written any more.
    Gone,
}

/// A call that has not been answered yet.
#[derive(Default)]
pub(super) struct OpenCall {
    /// The handle of its message in the mailbox.
    pub(super) delivery: Option<DeliveryHandle>,
    /// The deadline, and the time that the call had.
    pub(super) deadline: Option<(Instant, Duration)>,
    /// Number of items that the client takes; created when it grants credit, or when it is first
    /// needed.
    pub(super) credit: Option<Arc<Semaphore>>,
    /// The audit record of a write; created when the call is authorized.
    pub(super) record: Option<AuditGuard>,
}

impl OpenCall {
    /// Records the outcome of the call.
    fn close(&mut self, result: &Result<Payload, Fault>) {
        if let Some(record) = &mut self.record {
            record.close(result.as_ref().map(|_| ()).map_err(|fault| fault.code));
        }
    }
}

/// The result of taking bytes for the writer.
pub(super) enum TakenBytes {
    Bytes,
    Nothing,
    End,
}

/// Number of unwritten bytes at which streams pause.
const PAUSE_STREAMS_AT: usize = 256 * 1024;

/// Maximum credit of a call; more is ignored.
const MAX_CREDIT: usize = 1 << 20;

impl Outbox {
    pub(super) fn new(limits: Limits, items: ReplyLane<PayloadStream>) -> Self {
        Self {
            state: Mutex::new(OutboxState {
                bytes: BytesMut::new(),
                writing: 0,
                open_calls: FxHashMap::default(),
                stage: OutboxStage::Open,
            }),
            work: Notify::new(),
            room: Notify::new(),
            limits,
            items,
        }
    }

    /// Adds an open call.
    pub(super) fn add_call(&self, id: u32, open: OpenCall) -> Result<(), Fault> {
        let mut state = self.state.lock();
        let most = self.limits.in_flight;
        if state.open_calls.len() >= most {
            let text = format!("{most} calls in flight, which is the limit");
            return Err(Fault::new(FaultCode::Full, text));
        }
        state.open_calls.insert(id, open);
        Ok(())
    }

    /// Returns `true` if no call is open.
    pub(super) fn is_idle(&self) -> bool {
        self.state.lock().open_calls.is_empty()
    }

    /// Stores the delivery handle of a call, or cancels its message if the call has ended.
    pub(super) fn set_delivery(&self, id: u32, delivery: DeliveryHandle) {
        let mut state = self.state.lock();
        match state.open_calls.get_mut(&id) {
            Some(open) => open.delivery = Some(delivery),
            None => {
                drop(state);
                delivery.cancel();
            }
        }
    }

    /// Answers a call, unless it was answered or given up before.
    pub(super) fn finish(&self, id: u32, result: Result<Payload, Fault>) {
        let mut state = self.state.lock();
        let Some(mut open) = state.open_calls.remove(&id) else {
            return;
        };
        open.close(&result);
        self.write_result(&mut state, id, result);
        self.unlock_and_wake(state, Some(open));
    }

    /// Answers a call that was never added to the table.
    pub(super) fn reply_unlisted(&self, id: u32, result: Result<Payload, Fault>) {
        let mut state = self.state.lock();
        self.write_result(&mut state, id, result);
        self.unlock_and_wake(state, None);
    }

    /// Answers a call with a fault and cancels its message. Returns `true` if the call was open.
    pub(super) fn fail(&self, id: u32, fault: Fault) -> bool {
        let mut state = self.state.lock();
        let Some(mut open) = state.open_calls.remove(&id) else {
            return false;
        };
        let delivery = open.delivery.take();
        let result = Err(fault);
        open.close(&result);
        self.write_result(&mut state, id, result);
        self.unlock_and_wake(state, Some(open));
        if let Some(delivery) = delivery {
            delivery.cancel();
        }
        true
    }

    /// Returns the overdue calls with the time that each had, and the next deadline.
    pub(super) fn overdue(&self, now: Instant) -> (Vec<(u32, Duration)>, Option<Instant>) {
        let state = self.state.lock();
        let deadlines = state.open_calls.iter();
        let deadlines =
            deadlines.filter_map(|(id, open)| open.deadline.map(|(at, span)| (*id, at, span)));
        let (mut over, mut next) = (Vec::new(), None::<Instant>);
        for (id, at, span) in deadlines {
            if at <= now {
                over.push((at, id, span));
            } else {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        }
        // Faults are sent in the order of the deadlines.
        over.sort_unstable_by_key(|(at, id, _)| (*at, *id));
        let over = over.into_iter().map(|(_, id, span)| (id, span));
        (over.collect(), next)
    }

    /// Adds credit to a call, up to a maximum.
    pub(super) fn add_credit(&self, id: u32, more: u32) {
        let mut state = self.state.lock();
        if let Some(open) = state.open_calls.get_mut(&id) {
            let none = || Arc::new(Semaphore::new(0));
            add_permits(open.credit.get_or_insert_with(none), more);
        }
    }

    /// Returns the credit of a call; `None` if the call has ended.
    pub(super) fn credit(&self, id: u32) -> Option<Arc<Semaphore>> {
        let mut state = self.state.lock();
        let open = state.open_calls.get_mut(&id)?;
        let none = || Arc::new(Semaphore::new(0));
        Some(Arc::clone(open.credit.get_or_insert_with(none)))
    }

    /// Sends an item once there is room. Returns `false` if the call has ended.
    pub(super) async fn send_item(&self, id: u32, payload: Payload) -> Result<bool, Fault> {
        self.check_size(&payload)?;
        let item = Frame::new(FrameKind::Item, id).with_payload(payload.content, payload.bytes);
        let write = |state: &mut OutboxState| {
            if !state.open_calls.contains_key(&id) {
                return Some(false);
            }
            let has_room = state.unwritten() < PAUSE_STREAMS_AT.min(self.limits.memory);
            has_room.then(|| {
                state.write(&item);
                true
            })
        };
        let is_open = self.wait_for_room(write).await;
        self.work.notify_one();
        Ok(is_open)
    }

    /// Waits until enough bytes were written to handle more frames.
    pub(super) async fn ready_for_frames(&self) {
        self.wait_for_room(|state| {
            let has_room = state.unwritten() <= self.limits.memory / 2;
            (has_room || state.stage == OutboxStage::Gone).then_some(())
        })
        .await;
    }

    /// Waits until a look at the state has a result; looks again whenever there is more room.
    async fn wait_for_room<T>(&self, mut look: impl FnMut(&mut OutboxState) -> Option<T>) -> T {
        loop {
            // Enabled before the state is checked, so that no notification in between is lost.
            let mut room = std::pin::pin!(self.room.notified());
            room.as_mut().enable();
            let seen = look(&mut self.state.lock());
            if let Some(seen) = seen {
                return seen;
            }
            room.await;
        }
    }

    /// Writes a frame that does not answer a call.
    pub(super) fn write(&self, frame: &Frame) {
        let mut state = self.state.lock();
        state.write(frame);
        self.unlock_and_wake(state, None);
    }

    /// Writes the reason for closing; nothing is written after it.
    pub(super) fn close(&self, fault: &Fault) {
        let mut state = self.state.lock();
        if state.stage == OutboxStage::Open || state.stage == OutboxStage::Ending {
            state.write(&Frame::new(FrameKind::Error, 0).with_json(&fault.to_json()));
            state.stage = OutboxStage::Closing;
        }
        self.drop_calls(state);
    }

    /// Records that the client sends nothing more.
    pub(super) fn end_input(&self) {
        let mut state = self.state.lock();
        if state.stage == OutboxStage::Open {
            state.stage = OutboxStage::Ending;
        }
        self.unlock_and_wake(state, None);
    }

    /// Returns `true` if the client sends nothing more, or the connection is closing.
    pub(super) fn is_ending(&self) -> bool {
        self.state.lock().stage != OutboxStage::Open
    }

    /// Records that nothing can be written any more.
    pub(super) fn disconnect(&self) {
        let mut state = self.state.lock();
        state.stage = OutboxStage::Gone;
        state.bytes = BytesMut::new();
        self.drop_calls(state);
        self.room.notify_waiters();
    }

    /// Drops all calls, because their answers can no longer be read.
    fn drop_calls(&self, mut state: MutexGuard<'_, OutboxState>) {
        let open = std::mem::take(&mut state.open_calls);
        drop(state);
        for delivery in open.into_values().filter_map(|open| open.delivery) {
            delivery.cancel();
        }
        self.work.notify_one();
        self.room.notify_waiters();
    }

    /// Passes the buffered bytes to the writer.
    pub(super) fn take(&self, bytes: &mut BytesMut) -> TakenBytes {
        let mut state = self.state.lock();
        std::mem::swap(bytes, &mut state.bytes);
        let was = std::mem::replace(&mut state.writing, bytes.len());
        if was > 0 {
            self.room.notify_waiters();
        }
        match state.stage {
            _ if !bytes.is_empty() => TakenBytes::Bytes,
            OutboxStage::Open | OutboxStage::Ending => TakenBytes::Nothing,
            OutboxStage::Closing | OutboxStage::Gone => TakenBytes::End,
        }
    }

    /// Waits until there may be something to take.
    pub(super) async fn wait_for_work(&self) {
        self.work.notified().await;
    }

    /// Checks that a payload fits into a frame.
    fn check_size(&self, payload: &Payload) -> Result<(), Fault> {
        let (length, limit) = (payload.bytes.len(), self.limits.frame);
        if length <= limit {
            return Ok(());
        }
        let text = format!("the reply is {length} bytes, limit is {limit}");
        Err(Fault::new(FaultCode::Failed, text))
    }

    fn write_result(&self, state: &mut OutboxState, id: u32, result: Result<Payload, Fault>) {
        let result = result.and_then(|payload| {
            self.check_size(&payload)?;
            let (unwritten, limit) = (state.unwritten(), self.limits.memory);
            if unwritten + payload.bytes.len() <= limit {
                return Ok(payload);
            }
            let length = payload.bytes.len();
            let text = format!(
                "the reply is {length} bytes and {unwritten} bytes are unread; limit of both is \
                 {limit}"
            );
            Err(Fault::new(FaultCode::Full, text))
        });
        match result {
            Ok(payload) => {
                let done = Frame::new(FrameKind::Done, id);
                state.write(&done.with_payload(payload.content, payload.bytes));
            }
            Err(fault) => {
                let mut error = Frame::new(FrameKind::Error, id).with_json(&fault.to_json());
                if error.payload.len() > self.limits.frame {
                    error = error.with_json(&Fault::new(fault.code, "").to_json());
                }
                state.write(&error);
            }
        }
    }

    /// Ends a change under the lock: wakes the writer, and drops foreign values after unlocking.
    fn unlock_and_wake(&self, mut state: MutexGuard<'_, OutboxState>, open: Option<OpenCall>) {
        if state.stage == OutboxStage::Ending && state.open_calls.is_empty() {
            state.stage = OutboxStage::Closing;
        }
        drop(state);
        self.work.notify_one();
        drop(open);
    }
}

impl CallSink for Outbox {
    fn answer(&self, call: u64, result: Result<CallReply, Fault>) {
        let Ok(id) = u32::try_from(call) else { return };
        match result {
            Ok(CallReply::Single(payload)) => self.finish(id, Ok(payload)),
            Ok(CallReply::Stream(items)) => self.items.reply(call).send(items),
            Ok(_) => self.finish(
                id,
                Err(Fault::new(FaultCode::Failed, "an answer of a new kind")),
            ),
            Err(fault) => self.finish(id, Err(fault)),
        }
    }

    fn is_waiting(&self, call: u64) -> bool {
        let id = u32::try_from(call);
        id.is_ok_and(|id| self.state.lock().open_calls.contains_key(&id))
    }
}

impl OutboxState {
    fn unwritten(&self) -> usize {
        self.bytes.len() + self.writing
    }

    /// Appends a frame, unless the connection is closing.
    fn write(&mut self, frame: &Frame) {
        if self.stage == OutboxStage::Closing || self.stage == OutboxStage::Gone {
            return;
        }
        // Never fails: longer payloads were refused before, by the limit of a frame.
        let _ = frame.encode_into(usize::MAX, &mut self.bytes);
    }
}

/// Adds credit, up to a maximum.
pub(super) fn add_permits(credit: &Semaphore, more: u32) {
    let room = MAX_CREDIT.saturating_sub(credit.available_permits());
    credit.add_permits(room.min(more as usize));
}
