//! One life of a component: a Store, an instance in it, and calls with limits.
//!
//! A call runs on the worker of the actor, on the worker's own stack if the component never waits.
//! A call of a heavy component takes the Store along to a guest thread, and brings it back.

mod call;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use wasmtime::Store;

use super::refused;
use crate::contract::{Answered, Envelope, Functions, Kind, Payload, Reason};
use crate::fault::{Fault, Phase};
use crate::guest::{Bounds, Guest, Ties, is_worker};
use crate::host::{Host, Permit};
use crate::load::Image;
use crate::usage::Usage;

/// State that a component gave, with the version of its form.
pub(super) type Kept = (u32, Payload);

/// How a life begins.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) reason: Reason,
    pub(super) attempt: u32,
    pub(super) kept: Option<Kept>,
}

/// A component that runs, or sleeps. After an error of any call it must be dropped.
pub(super) struct Life {
    being: Being,
    host: Host,
    usage: Arc<Usage>,
    rule: Rule,
    /// The runtime of its actor, if calls can go on on other threads: where time is virtual
    /// everything stays on the one thread there is.
    runtime: Option<Handle>,
}

enum Being {
    Awake(Awake),
    /// A call has taken the Store along; one that does not come back ends the life.
    Away(Arc<Image>),
    /// Without a Store: what it is tied to, and nothing that runs.
    Asleep(Box<Guest>),
}

struct Awake {
    store: Store<Guest>,
    functions: Functions,
    /// A stack of its own, for one that never waits and is heavy.
    stack: Option<Box<Permit>>,
}

/// What every call needs to know.
#[derive(Debug, Clone, Copy)]
struct Rule {
    init: Bounds,
    call: Bounds,
    fuel: u64,
    waits: bool,
}

/// The bounds of a call with this limit of processor time.
fn bounds(host: &Host, cpu: Duration) -> Bounds {
    let wall = cpu.saturating_mul(host.limits().wall);
    let wall = wall.saturating_add(Duration::from_secs(1));
    Bounds { cpu, wall }
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Life({:?})", self.image())
    }
}

impl Life {
    /// Makes a Store and an instance in it. Tokens count from this one.
    pub(super) async fn begin(
        host: &Host,
        image: Arc<Image>,
        usage: Arc<Usage>,
        ties: Ties,
        tokens: u64,
    ) -> Result<Self, Fault> {
        let limits = &image.manifest().limits;
        let rule = Rule {
            init: bounds(host, limits.init),
            call: bounds(host, limits.deadline),
            fuel: limits.fuel,
            waits: image.waits(),
        };
        let mut life = Self {
            being: Being::Away(Arc::clone(&image)),
            host: host.clone(),
            usage: Arc::clone(&usage),
            rule,
            runtime: is_worker().then(Handle::current),
        };
        let guest = Guest::new(host.clone(), image, usage, ties, tokens);
        life.being = Being::Awake(life.instantiate(guest).await?);
        Ok(life)
    }

    pub(super) const fn is_awake(&self) -> bool {
        matches!(self.being, Being::Awake(_))
    }

    /// Returns `true` if it is awake, no call of it waits, and none is delayed or runs elsewhere.
    #[inline]
    pub(super) fn is_prompt(&self) -> bool {
        self.is_awake() && !self.rule.waits && self.usage.is_free() && !self.host.is_crowded()
    }

    /// Drops the Store. What was subscribed to stays.
    pub(super) fn sleep(&mut self) {
        let old = self.guest();
        let (ties, tokens) = (old.ties.clone(), old.next_token());
        let (image, usage) = (Arc::clone(&old.image), Arc::clone(&self.usage));
        let mut guest = Guest::new(self.host.clone(), image, usage, ties, tokens);
        guest.hold(self.guest_mut());
        self.being = Being::Asleep(Box::new(guest));
    }

    pub(super) fn guest(&self) -> &Guest {
        match &self.being {
            Being::Awake(awake) => awake.store.data(),
            Being::Asleep(guest) => guest,
            Being::Away(_) => unreachable!("its actor waits for the call, or is over"),
        }
    }

    pub(super) fn guest_mut(&mut self) -> &mut Guest {
        match &mut self.being {
            Being::Awake(awake) => awake.store.data_mut(),
            Being::Asleep(guest) => guest,
            Being::Away(_) => unreachable!("its actor waits for the call, or is over"),
        }
    }

    pub(super) fn image(&self) -> &Image {
        match &self.being {
            Being::Away(image) => image,
            _ => &self.guest().image,
        }
    }

    pub(super) async fn init(&mut self, start: Start) -> Result<(), Fault> {
        let (version, state) = start.kept.unzip();
        let params = (start.reason, start.attempt, version.unwrap_or(0), state);
        let init = self.functions(Phase::Init)?.init;
        let (said,) = self.call(&init, params, Phase::Init).await?;
        said.map_err(|text| refused(Phase::Init, &text))
    }

    pub(super) async fn handle(
        &mut self,
        kind: Kind,
        token: u64,
        payload: Payload,
    ) -> Result<Answered, Fault> {
        let handle = self.functions(Phase::Handle)?.handle;
        let params = (kind, token, payload);
        let (answered,) = self.call(&handle, params, Phase::Handle).await?;
        Ok(answered)
    }

    /// The same here and now, of one that is prompt.
    pub(super) fn handle_now(
        &mut self,
        kind: Kind,
        token: u64,
        payload: Payload,
    ) -> Result<Answered, Fault> {
        let handle = self.functions(Phase::Handle)?.handle;
        let params = (kind, token, payload);
        let (answered,) = self.call_now(&handle, params, Phase::Handle)?;
        Ok(answered)
    }

    pub(super) async fn batch(
        &mut self,
        batch: Vec<Envelope>,
    ) -> Result<Result<(), String>, Fault> {
        let Some(function) = self.functions(Phase::Batch)?.batch else {
            return Ok(Ok(()));
        };
        let (answered,) = self.call(&function, (batch,), Phase::Batch).await?;
        Ok(answered)
    }

    /// The same here and now, of one that is prompt.
    pub(super) fn batch_now(&mut self, batch: Vec<Envelope>) -> Result<Result<(), String>, Fault> {
        let Some(function) = self.functions(Phase::Batch)?.batch else {
            return Ok(Ok(()));
        };
        let (answered,) = self.call_now(&function, (batch,), Phase::Batch)?;
        Ok(answered)
    }

    pub(super) async fn snapshot(&mut self) -> Result<Kept, Fault> {
        let Some((snapshot, version)) = self.functions(Phase::Snapshot)?.stateful else {
            return Ok((0, Payload::from([])));
        };
        let (state,) = self.call(&snapshot, (), Phase::Snapshot).await?;
        let (version,) = self.call(&version, (), Phase::Snapshot).await?;
        Ok((version, Payload::from(state)))
    }

    /// What the component says of its health; the outer error is one of the call.
    pub(super) async fn health(&mut self) -> Result<Result<(), Fault>, Fault> {
        let health = self.functions(Phase::Health)?.health;
        let (said,) = self.call(&health, (), Phase::Health).await?;
        Ok(said.map_err(|text| refused(Phase::Health, &text)))
    }

    pub(super) async fn stop(&mut self) -> Result<(), Fault> {
        let stop = self.functions(Phase::Stop)?.stop;
        self.call(&stop, (), Phase::Stop).await
    }
}
