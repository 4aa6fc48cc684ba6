//! One life of a component: a Store, an instance in it, and calls with limits.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::{ComponentNamedList, Lift, Lower, TypedFunc};
use wasmtime::{Store, UpdateDeadline};

use super::refused;
use crate::contract::{Answered, Envelope, Functions, Kind, Payload, Reason};
use crate::engine::Busy;
use crate::fault::{Called, Fault, FaultKind, Phase};
use crate::guest::{Guest, Moment, Ties};
use crate::host::Host;
use crate::load::Image;

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
    rule: Rule,
}

enum Being {
    Awake(Awake),
    /// Without a Store: what it is tied to, and nothing that runs.
    Asleep(Box<Guest>),
}

struct Awake {
    store: Store<Guest>,
    functions: Functions,
}

/// What every call needs to know.
#[derive(Debug, Clone, Copy)]
struct Rule {
    init: Duration,
    deadline: Duration,
    fuel: u64,
    waits: bool,
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
        ties: Ties,
        tokens: u64,
    ) -> Result<Self, Fault> {
        let engine = image.pre.engine();
        let guest = Guest::new(host.clone(), Arc::clone(&image), ties, tokens);
        let mut store = Store::new(engine, guest);
        store.limiter(|guest| &mut guest.memory);
        store.epoch_deadline_callback(|mut cx| {
            let guest = cx.data_mut();
            let left = guest.watch.look(Moment::now());
            let ticks = left.map(|left| guest.host.ticks().of(left));
            Ok(ticks.map_or(UpdateDeadline::Interrupt, UpdateDeadline::Continue))
        });
        let limits = &image.manifest().limits;
        let rule = Rule {
            init: limits.init,
            deadline: limits.deadline,
            fuel: limits.fuel,
            waits: image.waits(),
        };
        store.set_hostcall_fuel(limits.payload);
        let _busy = host.ticks().busy();
        let limit = rule.init;
        let failed = |store: &Store<Guest>, error: &wasmtime::Error| {
            let called = Called {
                phase: Phase::Instantiate,
                limit,
                refused: store.data().memory.refused(),
            };
            called.fault(error)
        };
        arm(&mut store, limit, rule.fuel).map_err(|error| failed(&store, &error))?;
        let instance = if rule.waits {
            Box::pin(image.pre.instantiate_async(&mut store)).await
        } else {
            image.pre.instantiate(&mut store)
        };
        let instance = instance.map_err(|error| failed(&store, &error))?;
        let functions = Functions::bind(&instance, &mut store, &image.exports);
        let functions = functions.map_err(|error| Fault {
            phase: Phase::Instantiate,
            kind: FaultKind::Abi {
                text: crate::fault::cut(&format!("{error:#}")),
            },
        })?;
        Ok(Self {
            being: Being::Awake(Awake { store, functions }),
            host: host.clone(),
            rule,
        })
    }

    pub(super) const fn is_awake(&self) -> bool {
        matches!(self.being, Being::Awake(_))
    }

    /// Whether it is awake, and no call of it waits.
    pub(super) const fn is_prompt(&self) -> bool {
        self.is_awake() && !self.rule.waits
    }

    /// Drops the Store. What was subscribed to stays.
    pub(super) fn sleep(&mut self) {
        let old = self.guest();
        let (ties, tokens) = (old.ties.clone(), old.next_token());
        let mut guest = Guest::new(self.host.clone(), Arc::clone(&old.image), ties, tokens);
        guest.hold(self.guest_mut());
        self.being = Being::Asleep(Box::new(guest));
    }

    pub(super) fn guest(&self) -> &Guest {
        match &self.being {
            Being::Awake(awake) => awake.store.data(),
            Being::Asleep(guest) => guest,
        }
    }

    pub(super) fn guest_mut(&mut self) -> &mut Guest {
        match &mut self.being {
            Being::Awake(awake) => awake.store.data_mut(),
            Being::Asleep(guest) => guest,
        }
    }

    pub(super) fn image(&self) -> &Image {
        &self.guest().image
    }

    /// The Store and the functions in it.
    fn awake(&mut self, phase: Phase) -> Result<&mut Awake, Fault> {
        match &mut self.being {
            Being::Awake(awake) => Ok(awake),
            Being::Asleep(_) => Err(asleep(phase)),
        }
    }

    pub(super) async fn init(&mut self, start: Start) -> Result<(), Fault> {
        let (version, state) = start.kept.unzip();
        let params = (start.reason, start.attempt, version.unwrap_or(0), state);
        let init = self.awake(Phase::Init)?.functions.init;
        let (said,) = self.call(&init, params, Phase::Init).await?;
        said.map_err(|text| refused(Phase::Init, &text))
    }

    pub(super) async fn handle(
        &mut self,
        kind: Kind,
        token: u64,
        payload: Payload,
    ) -> Result<Answered, Fault> {
        let handle = self.awake(Phase::Handle)?.functions.handle;
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
        let handle = self.awake(Phase::Handle)?.functions.handle;
        let params = (kind, token, payload);
        let (answered,) = self.call_now(&handle, params, Phase::Handle)?;
        Ok(answered)
    }

    pub(super) async fn batch(
        &mut self,
        batch: Vec<Envelope>,
    ) -> Result<Result<(), String>, Fault> {
        let Some(function) = self.awake(Phase::Batch)?.functions.batch else {
            return Ok(Ok(()));
        };
        let (answered,) = self.call(&function, (batch,), Phase::Batch).await?;
        Ok(answered)
    }

    /// The same here and now, of one that is prompt.
    pub(super) fn batch_now(&mut self, batch: Vec<Envelope>) -> Result<Result<(), String>, Fault> {
        let Some(function) = self.awake(Phase::Batch)?.functions.batch else {
            return Ok(Ok(()));
        };
        let (answered,) = self.call_now(&function, (batch,), Phase::Batch)?;
        Ok(answered)
    }

    pub(super) async fn snapshot(&mut self) -> Result<Kept, Fault> {
        let Some((snapshot, version)) = self.awake(Phase::Snapshot)?.functions.stateful else {
            return Ok((0, Payload::from([])));
        };
        let (state,) = self.call(&snapshot, (), Phase::Snapshot).await?;
        let (version,) = self.call(&version, (), Phase::Snapshot).await?;
        Ok((version, Payload::from(state)))
    }

    /// What the component says of its health; the outer error is one of the call.
    pub(super) async fn health(&mut self) -> Result<Result<(), Fault>, Fault> {
        let health = self.awake(Phase::Health)?.functions.health;
        let (said,) = self.call(&health, (), Phase::Health).await?;
        Ok(said.map_err(|text| refused(Phase::Health, &text)))
    }

    pub(super) async fn stop(&mut self) -> Result<(), Fault> {
        let stop = self.awake(Phase::Stop)?.functions.stop;
        self.call(&stop, (), Phase::Stop).await
    }

    async fn call<P, R>(
        &mut self,
        function: &TypedFunc<P, R>,
        params: P,
        phase: Phase,
    ) -> Result<R, Fault>
    where
        P: ComponentNamedList + Lower + Send + Sync + 'static,
        R: ComponentNamedList + Lift + Send + Sync + 'static,
    {
        if !self.rule.waits {
            return self.call_now(function, params, phase);
        }
        let call = self.begin_call(phase)?;
        // Only who waits pays for a future on the heap.
        let called = Box::pin(function.call_async(&mut *call.store, params)).await;
        called.map_err(|error| ended(call.store, phase, call.limit, &error))
    }

    /// The same of one whose calls never wait.
    fn call_now<P, R>(
        &mut self,
        function: &TypedFunc<P, R>,
        params: P,
        phase: Phase,
    ) -> Result<R, Fault>
    where
        P: ComponentNamedList + Lower + Send + Sync + 'static,
        R: ComponentNamedList + Lift + Send + Sync + 'static,
    {
        let call = self.begin_call(phase)?;
        let called = function.call(&mut *call.store, params);
        called.map_err(|error| ended(call.store, phase, call.limit, &error))
    }

    /// Gives a call its time and its instructions, and sees to it that there are ticks.
    fn begin_call(&mut self, phase: Phase) -> Result<Begun<'_>, Fault> {
        let Rule {
            init,
            deadline,
            fuel,
            ..
        } = self.rule;
        let limit = if phase == Phase::Init { init } else { deadline };
        let Self { being, host, .. } = self;
        let Being::Awake(Awake { store, .. }) = being else {
            return Err(asleep(phase));
        };
        let busy = host.ticks().busy();
        arm(store, limit, fuel).map_err(|error| ended(store, phase, limit, &error))?;
        Ok(Begun {
            store,
            limit,
            _busy: busy,
        })
    }
}

/// A call under way, for as long as this is there.
struct Begun<'a> {
    store: &'a mut Store<Guest>,
    limit: Duration,
    _busy: Busy<'a>,
}

/// The fault in which a call ended.
#[cold]
fn ended(store: &Store<Guest>, phase: Phase, limit: Duration, error: &wasmtime::Error) -> Fault {
    let refused = store.data().memory.refused();
    let called = Called {
        phase,
        limit,
        refused,
    };
    called.fault(error)
}

fn asleep(phase: Phase) -> Fault {
    Fault {
        phase,
        kind: FaultKind::Host {
            text: "it was called in its sleep".to_owned(),
        },
    }
}

/// Gives a call its time and its instructions. The first tick that it sees looks at its time.
fn arm(store: &mut Store<Guest>, limit: Duration, fuel: u64) -> wasmtime::Result<()> {
    store.data_mut().begin(limit);
    store.set_epoch_deadline(1);
    if fuel > 0 {
        store.set_fuel(fuel)?;
    }
    Ok(())
}
