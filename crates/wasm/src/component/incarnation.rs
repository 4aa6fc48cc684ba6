//! One incarnation of a component: a Store, an instance in it, and calls with limits.
//!
//! A call runs on the worker of the actor, and on the worker's own stack if the component never
//! waits. A call of a heavy component moves the Store to a guest thread and back.

mod call;

pub(super) use self::call::unless_killed;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use wasmtime::Store;

use super::refusal_fault;
use crate::contract::{ActorFunctions, Envelope, HandleResult, MessageKind, Payload, StartReason};
use crate::fault::{CallPhase, Fault};
use crate::guest::{ActorEnv, CpuLimits, StoreData, is_worker};
use crate::host::{CapacityPermit, Host};
use crate::load::Image;
use crate::usage::ComponentUsage;

/// State returned by a component, with the version of its format.
pub(super) type SavedState = (u32, Payload);

/// The parameters that an incarnation starts with.
#[derive(Debug, Clone)]
pub(super) struct StartParams {
    pub(super) reason: StartReason,
    pub(super) attempt: u32,
    pub(super) saved: Option<SavedState>,
}

/// A component that runs or is passivated. It must be dropped after an error of any call.
pub(super) struct Incarnation {
    state: StoreState,
    host: Host,
    usage: Arc<ComponentUsage>,
    call_params: CallParams,
    /// The runtime of the actor, if calls can move to other threads. With virtual time, everything
    /// stays on the only thread.
    runtime: Option<Handle>,
}

enum StoreState {
    Active(ActiveStore),
    /// A call has taken the Store. If it does not return it, the incarnation ends.
    InCall(Arc<Image>),
    /// Passivated: without a Store, only with the environment of its actor.
    Passivated(Box<StoreData>),
}

struct ActiveStore {
    store: Store<StoreData>,
    functions: ActorFunctions,
    /// A stack of its own, for a heavy component that never waits.
    stack: Option<Box<CapacityPermit>>,
}

/// The parameters of every call.
#[derive(Debug, Clone, Copy)]
struct CallParams {
    init: CpuLimits,
    call: CpuLimits,
    fuel: u64,
    waits: bool,
}

/// Returns the bounds of a call with this limit of processor time.
fn cpu_limits(host: &Host, cpu: Duration) -> CpuLimits {
    let wall = cpu.saturating_mul(host.limits().wall);
    let wall = wall.saturating_add(Duration::from_secs(1));
    CpuLimits { cpu, wall }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incarnation({:?})", self.image())
    }
}

impl Incarnation {
    /// Creates a Store and an instance in it. `tokens` is the first token.
    pub(super) async fn begin(
        host: &Host,
        image: Arc<Image>,
        usage: Arc<ComponentUsage>,
        env: ActorEnv,
        tokens: u64,
    ) -> Result<Self, Fault> {
        let limits = &image.manifest().limits;
        let call_params = CallParams {
            init: cpu_limits(host, limits.init),
            call: cpu_limits(host, limits.deadline),
            fuel: limits.fuel,
            waits: image.waits(),
        };
        let mut incarnation = Self {
            state: StoreState::InCall(Arc::clone(&image)),
            host: host.clone(),
            usage: Arc::clone(&usage),
            call_params,
            runtime: is_worker().then(Handle::current),
        };
        let guest = StoreData::new(host.clone(), image, usage, env, tokens);
        incarnation.state = StoreState::Active(incarnation.instantiate(guest).await?);
        Ok(incarnation)
    }

    pub(super) const fn is_active(&self) -> bool {
        matches!(self.state, StoreState::Active(_))
    }

    /// Returns `true` if it is active, its calls never wait, and none is delayed or runs elsewhere.
    #[inline]
    pub(super) fn can_call_now(&self) -> bool {
        self.is_active()
            && !self.call_params.waits
            && self.usage.is_unrestricted()
            && !self.host.workers_are_occupied()
    }

    /// Drops the Store. Subscriptions are kept.
    pub(super) fn passivate(&mut self) {
        let old = self.guest();
        let (env, tokens) = (old.env.clone(), old.next_token());
        let (image, usage) = (Arc::clone(&old.image), Arc::clone(&self.usage));
        let mut guest = StoreData::new(self.host.clone(), image, usage, env, tokens);
        guest.keep_subscriptions(self.guest_mut());
        self.state = StoreState::Passivated(Box::new(guest));
    }

    pub(super) fn guest(&self) -> &StoreData {
        match &self.state {
            StoreState::Active(active) => active.store.data(),
            StoreState::Passivated(guest) => guest,
            StoreState::InCall(_) => unreachable!("its actor waits for the call, or is over"),
        }
    }

    pub(super) fn guest_mut(&mut self) -> &mut StoreData {
        match &mut self.state {
            StoreState::Active(active) => active.store.data_mut(),
            StoreState::Passivated(guest) => guest,
            StoreState::InCall(_) => unreachable!("its actor waits for the call, or is over"),
        }
    }

    pub(super) fn image(&self) -> &Image {
        match &self.state {
            StoreState::InCall(image) => image,
            _ => &self.guest().image,
        }
    }

    pub(super) async fn init(&mut self, start: StartParams) -> Result<(), Fault> {
        let (version, state) = start.saved.unzip();
        let params = (start.reason, start.attempt, version.unwrap_or(0), state);
        let init = self.functions(CallPhase::Init)?.init;
        let (result,) = self.call(&init, params, CallPhase::Init).await?;
        result.map_err(|text| refusal_fault(CallPhase::Init, &text))
    }

    pub(super) async fn handle(
        &mut self,
        kind: MessageKind,
        token: u64,
        payload: Payload,
    ) -> Result<HandleResult, Fault> {
        let handle = self.functions(CallPhase::Handle)?.handle;
        let params = (kind, token, payload);
        let (answered,) = self.call(&handle, params, CallPhase::Handle).await?;
        Ok(answered)
    }

    /// Like [`Incarnation::handle`], but synchronous; only if `is_prompt` returns `true`.
    pub(super) fn handle_now(
        &mut self,
        kind: MessageKind,
        token: u64,
        payload: Payload,
    ) -> Result<HandleResult, Fault> {
        let handle = self.functions(CallPhase::Handle)?.handle;
        let params = (kind, token, payload);
        let (answered,) = self.call_now(&handle, params, CallPhase::Handle)?;
        Ok(answered)
    }

    pub(super) async fn batch(
        &mut self,
        batch: Vec<Envelope>,
    ) -> Result<Result<(), String>, Fault> {
        let Some(function) = self.functions(CallPhase::Batch)?.batch else {
            return Ok(Ok(()));
        };
        let (answered,) = self.call(&function, (batch,), CallPhase::Batch).await?;
        Ok(answered)
    }

    /// Like [`Incarnation::batch`], but synchronous; only if `is_prompt` returns `true`.
    pub(super) fn batch_now(&mut self, batch: Vec<Envelope>) -> Result<Result<(), String>, Fault> {
        let Some(function) = self.functions(CallPhase::Batch)?.batch else {
            return Ok(Ok(()));
        };
        let (answered,) = self.call_now(&function, (batch,), CallPhase::Batch)?;
        Ok(answered)
    }

    pub(super) async fn snapshot(&mut self) -> Result<SavedState, Fault> {
        let Some((snapshot, version)) = self.functions(CallPhase::Snapshot)?.stateful else {
            return Ok((0, Payload::from([])));
        };
        let (state,) = self.call(&snapshot, (), CallPhase::Snapshot).await?;
        let (version,) = self.call(&version, (), CallPhase::Snapshot).await?;
        Ok((version, Payload::from(state)))
    }

    /// Returns the health that the component reports; the outer error is a fault of the call.
    pub(super) async fn health(&mut self) -> Result<Result<(), Fault>, Fault> {
        let health = self.functions(CallPhase::Health)?.health;
        let (result,) = self.call(&health, (), CallPhase::Health).await?;
        Ok(result.map_err(|text| refusal_fault(CallPhase::Health, &text)))
    }

    pub(super) async fn stop(&mut self) -> Result<(), Fault> {
        let stop = self.functions(CallPhase::Stop)?.stop;
        self.call(&stop, (), CallPhase::Stop).await
    }
}
