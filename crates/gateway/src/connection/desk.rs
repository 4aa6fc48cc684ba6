//! What a connection owes its client: the calls that are open, and the octets that are not written.
//!
//! Answers come in the turns of those who give them, and leave in that of the writer; so this is
//! shared, and nothing waits under its lock. A call is in the table from its frame to its answer:
//! whoever takes it out of there answers it, and so it is answered once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use rustc_hash::FxHashMap;
use strowger::{Answer, Calls, Code, Content, Fault, Items, Lane, Payload, Ticket};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use crate::frame::{Frame, HEADER, Kind};
use crate::limits::Limits;

pub(super) struct Desk {
    state: Mutex<State>,
    /// There is something to write, or nothing will be any more.
    work: Notify,
    /// There is room again, or will not be any more.
    room: Notify,
    limits: Limits,
    items: Lane<Items>,
}

struct State {
    octets: BytesMut,
    /// How many octets the writer has taken and not written.
    writing: usize,
    open: FxHashMap<u32, Open>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// The client says no more: what is open is answered yet.
    Ending,
    /// What waits is written yet.
    Closing,
    /// Nobody writes any more.
    Gone,
}

/// A call that has no answer yet.
#[derive(Default)]
pub(super) struct Open {
    /// The message in its mailbox.
    pub(super) ticket: Option<Ticket>,
    /// Until when there has to be an answer, and how long that was.
    pub(super) due: Option<(Instant, Duration)>,
    /// How many items the client takes; made when it gives some.
    pub(super) credit: Option<Arc<Semaphore>>,
}

/// What there is for the writer.
pub(super) enum Taken {
    Octets,
    Nothing,
    End,
}

/// Streams wait while so much waits to be written.
const ITEMS: usize = 256 * 1024;

/// The most items that a client may have asked for and not received.
const MOST_CREDIT: usize = 1 << 20;

impl Desk {
    pub(super) fn new(limits: Limits, items: Lane<Items>) -> Self {
        Self {
            state: Mutex::new(State {
                octets: BytesMut::new(),
                writing: 0,
                open: FxHashMap::default(),
                stage: Stage::Open,
            }),
            work: Notify::new(),
            room: Notify::new(),
            limits,
            items,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a call in.
    pub(super) fn admit(&self, id: u32, open: Open) -> Result<(), Fault> {
        let mut state = self.state();
        let most = self.limits.in_flight;
        if state.open.len() >= most {
            let text = format!("{most} calls are in flight, which is the limit");
            return Err(Fault::new(Code::Full, text));
        }
        state.open.insert(id, open);
        Ok(())
    }

    /// How many calls have no answer yet.
    pub(super) fn is_idle(&self) -> bool {
        self.state().open.is_empty()
    }

    /// Keeps the ticket of a call; its message is given up if the call is over.
    pub(super) fn hold(&self, id: u32, ticket: Ticket) {
        let mut state = self.state();
        match state.open.get_mut(&id) {
            Some(open) => open.ticket = Some(ticket),
            None => {
                drop(state);
                ticket.give_up();
            }
        }
    }

    /// Answers a call, unless it was answered or given up before.
    pub(super) fn finish(&self, id: u32, result: Result<Payload, Fault>) {
        let mut state = self.state();
        let Some(open) = state.open.remove(&id) else {
            return;
        };
        self.write_result(&mut state, id, result);
        self.settled(state, Some(open));
    }

    /// Answers a call that never was in the table.
    pub(super) fn reply(&self, id: u32, result: Result<Payload, Fault>) {
        let mut state = self.state();
        self.write_result(&mut state, id, result);
        self.settled(state, None);
    }

    /// Answers a call with a fault, and lets its message go; whether it was open.
    pub(super) fn give_up(&self, id: u32, fault: Fault) -> bool {
        let mut state = self.state();
        let Some(mut open) = state.open.remove(&id) else {
            return false;
        };
        let ticket = open.ticket.take();
        self.write_result(&mut state, id, Err(fault));
        self.settled(state, Some(open));
        if let Some(ticket) = ticket {
            ticket.give_up();
        }
        true
    }

    /// The calls whose time has passed, how long each had, and when the next is due.
    pub(super) fn overdue(&self, now: Instant) -> (Vec<(u32, Duration)>, Option<Instant>) {
        let state = self.state();
        let due = state.open.iter();
        let due = due.filter_map(|(id, open)| open.due.map(|(at, span)| (*id, at, span)));
        let (mut over, mut next) = (Vec::new(), None::<Instant>);
        for (id, at, span) in due {
            if at <= now {
                over.push((at, id, span));
            } else {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        }
        // The first that was due is the first that is told.
        over.sort_unstable_by_key(|(at, id, _)| (*at, *id));
        let over = over.into_iter().map(|(_, id, span)| (id, span));
        (over.collect(), next)
    }

    /// Adds credit to a call, up to a limit beyond which nobody counts.
    pub(super) fn grant(&self, id: u32, more: u32) {
        let mut state = self.state();
        if let Some(open) = state.open.get_mut(&id) {
            let none = || Arc::new(Semaphore::new(0));
            grant(open.credit.get_or_insert_with(none), more);
        }
    }

    /// The credit of a call; `None` if that is over.
    pub(super) fn credit(&self, id: u32) -> Option<Arc<Semaphore>> {
        let mut state = self.state();
        let open = state.open.get_mut(&id)?;
        let none = || Arc::new(Semaphore::new(0));
        Some(Arc::clone(open.credit.get_or_insert_with(none)))
    }

    /// Sends an item of a call once there is room; false if the call is over.
    pub(super) async fn item(&self, id: u32, payload: &Payload) -> Result<bool, Fault> {
        self.fit(payload)?;
        loop {
            let room = self.room.notified();
            let mut room = std::pin::pin!(room);
            room.as_mut().enable();
            {
                let mut state = self.state();
                if !state.open.contains_key(&id) {
                    return Ok(false);
                }
                if state.unwritten() < ITEMS.min(self.limits.memory) {
                    state.write(Kind::Item, id, payload);
                    self.settled(state, None);
                    return Ok(true);
                }
            }
            room.await;
        }
    }

    /// Waits until the client has read enough to be served further.
    pub(super) async fn ready(&self) {
        loop {
            let room = self.room.notified();
            let mut room = std::pin::pin!(room);
            room.as_mut().enable();
            {
                let state = self.state();
                if state.stage == Stage::Gone || state.unwritten() <= self.limits.memory / 2 {
                    return;
                }
            }
            room.await;
        }
    }

    /// Writes a frame that is no answer.
    pub(super) fn write(&self, frame: Frame) {
        let (kind, id) = (frame.kind, frame.id);
        let mut state = self.state();
        state.write(kind, id, &frame.into_payload());
        self.settled(state, None);
    }

    /// Says why it is over: nothing is written after it.
    pub(super) fn close(&self, fault: &Fault) {
        let mut state = self.state();
        if state.stage == Stage::Open || state.stage == Stage::Ending {
            let octets = fault.to_json().to_string();
            state.write(Kind::Error, 0, &Payload::new(Content::Json, octets));
            state.stage = Stage::Closing;
        }
        self.let_go(state);
    }

    /// Takes note that the client says no more.
    pub(super) fn end(&self) {
        let mut state = self.state();
        if state.stage == Stage::Open {
            state.stage = Stage::Ending;
        }
        self.settled(state, None);
    }

    /// Whether the client says no more.
    pub(super) fn is_ending(&self) -> bool {
        self.state().stage != Stage::Open
    }

    /// Takes note that nobody writes any more.
    pub(super) fn gone(&self) {
        let mut state = self.state();
        state.stage = Stage::Gone;
        state.octets = BytesMut::new();
        self.let_go(state);
        self.room.notify_waiters();
    }

    /// Lets all calls go: nobody will read their answers.
    fn let_go(&self, mut state: MutexGuard<'_, State>) {
        let open = std::mem::take(&mut state.open);
        drop(state);
        for ticket in open.into_values().filter_map(|open| open.ticket) {
            ticket.give_up();
        }
        self.work.notify_one();
        self.room.notify_waiters();
    }

    /// Hands what waits to the writer.
    pub(super) fn take(&self, octets: &mut BytesMut) -> Taken {
        let mut state = self.state();
        std::mem::swap(octets, &mut state.octets);
        let was = std::mem::replace(&mut state.writing, octets.len());
        if was > 0 {
            self.room.notify_waiters();
        }
        match state.stage {
            _ if !octets.is_empty() => Taken::Octets,
            Stage::Open | Stage::Ending => Taken::Nothing,
            Stage::Closing | Stage::Gone => Taken::End,
        }
    }

    /// Waits until there is something to take.
    pub(super) async fn some_work(&self) {
        self.work.notified().await;
    }

    /// What a payload that the client would not take is instead.
    fn fit(&self, payload: &Payload) -> Result<(), Fault> {
        let (have, limit) = (payload.octets.len(), self.limits.frame);
        if have <= limit {
            return Ok(());
        }
        let text = format!("the answer has {have} octets, the limit is {limit}");
        Err(Fault::new(Code::Failed, text))
    }

    fn write_result(&self, state: &mut State, id: u32, result: Result<Payload, Fault>) {
        let result = result.and_then(|payload| {
            self.fit(&payload)?;
            let (unwritten, limit) = (state.unwritten(), self.limits.memory);
            if unwritten + payload.octets.len() <= limit {
                return Ok(payload);
            }
            let have = payload.octets.len();
            let text = format!(
                "the answer has {have} octets, and {unwritten} wait to be read; together they \
                 may be {limit}"
            );
            Err(Fault::new(Code::Full, text))
        });
        match result {
            Ok(payload) => state.write(Kind::Done, id, &payload),
            Err(fault) => {
                let mut octets = fault.to_json().to_string();
                if octets.len() > self.limits.frame {
                    octets = Fault::new(fault.code, "").to_json().to_string();
                }
                state.write(Kind::Error, id, &Payload::new(Content::Json, octets));
            }
        }
    }

    /// Ends what is done under the lock: wakes the writer if there is work, and lets foreign values
    /// go outside of it.
    fn settled(&self, mut state: MutexGuard<'_, State>, open: Option<Open>) {
        if state.stage == Stage::Ending && state.open.is_empty() {
            state.stage = Stage::Closing;
        }
        drop(state);
        self.work.notify_one();
        drop(open);
    }
}

impl Calls for Desk {
    fn answer(&self, call: u64, result: Result<Answer, Fault>) {
        let Ok(id) = u32::try_from(call) else { return };
        match result {
            Ok(Answer::One(payload)) => self.finish(id, Ok(payload)),
            Ok(Answer::Items(items)) => self.items.reply(call).send(items),
            Ok(_) => self.finish(id, Err(Fault::new(Code::Failed, "an answer of a new kind"))),
            Err(fault) => self.finish(id, Err(fault)),
        }
    }

    fn is_wanted(&self, call: u64) -> bool {
        let id = u32::try_from(call);
        id.is_ok_and(|id| self.state().open.contains_key(&id))
    }
}

impl State {
    fn unwritten(&self) -> usize {
        self.octets.len() + self.writing
    }

    /// Appends a frame, unless it comes after the last.
    fn write(&mut self, kind: Kind, id: u32, payload: &Payload) {
        if self.stage == Stage::Closing || self.stage == Stage::Gone {
            return;
        }
        // What is longer was refused before: a frame has its limit.
        let Ok(length) = u32::try_from(payload.octets.len()) else {
            return;
        };
        self.octets.reserve(HEADER + payload.octets.len());
        self.octets.put_u32(length);
        self.octets.put_u8(kind as u8);
        self.octets.put_u8(payload.content as u8);
        self.octets.put_u16(0);
        self.octets.put_u32(id);
        self.octets.put_bytes(0, 12);
        self.octets.put_slice(&payload.octets);
    }
}

/// Adds credit, up to a limit beyond which nobody counts.
pub(super) fn grant(credit: &Semaphore, more: u32) {
    let room = MOST_CREDIT.saturating_sub(credit.available_permits());
    credit.add_permits(room.min(more as usize));
}
