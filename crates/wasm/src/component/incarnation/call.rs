//! One call into a component: the thread that it runs on, and its outcome.

use std::future::{Future, pending, poll_fn};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use wasmtime::component::{ComponentNamedList, Lift, Lower, TypedFunc};
use wasmtime::{Store, Trap};

use super::{ActiveStore, Incarnation, StoreState};
use crate::contract::ActorFunctions;
use crate::engine::CallGuard;
use crate::fault::{CallPhase, FailedCall, Fault, FaultKind};
use crate::guest::{CallPlace, CpuLimits, StoreData};
use crate::guest_threads::{JobContext, TurnClock};
use crate::host::CapacityPermit;
use crate::load::Image;

/// A call that owns the Store.
type StoreCall<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Incarnation {
    /// Creates a Store with this data, and an instance in it.
    pub(super) async fn instantiate(&self, guest: StoreData) -> Result<ActiveStore, Fault> {
        unless_killed(self.instantiate_anywhere(guest).await).await
    }

    async fn instantiate_anywhere(&self, guest: StoreData) -> Result<ActiveStore, Fault> {
        let image = Arc::clone(&guest.image);
        let clock = Arc::clone(&guest.clock);
        let mut store = Store::new(image.pre.engine(), guest);
        store.limiter(|guest| &mut guest.memory);
        store.epoch_deadline_callback(|mut cx| Ok(cx.data_mut().tick()));
        store.set_hostcall_fuel(image.manifest().limits.payload);
        let (cpu_limits, fuel) = (self.call_params.init, self.call_params.fuel);
        let waits = self.call_params.waits;
        if !self.runs_on_guest_threads() && !waits {
            let _busy = self.host.ticks().begin_call();
            let armed = arm_limits(&mut store, cpu_limits, fuel, CallPlace::Worker);
            let instance = armed.and_then(|()| image.pre.instantiate(&mut store));
            store.data_mut().end_call();
            return bind_functions(store, instance, &image, cpu_limits);
        }
        let stack = self.reserve_stack();
        let fiber = waits || stack.is_some();
        let moved = self.runs_on_guest_threads();
        let call = Box::pin(async move {
            let place = if moved {
                CallPlace::Thread { fiber }
            } else {
                CallPlace::Worker
            };
            let armed = arm_limits(&mut store, cpu_limits, fuel, place);
            let instance = match armed {
                Err(error) => Err(error),
                Ok(()) if fiber => image.pre.instantiate_async(&mut store).await,
                Ok(()) => image.pre.instantiate(&mut store),
            };
            let mut active = bind_functions(store, instance, &image, cpu_limits)?;
            active.stack = stack;
            Ok(active)
        });
        self.run(call, clock, moved, CallPhase::Instantiate).await?
    }

    /// Returns the functions of the contract.
    pub(super) fn functions(&self, phase: CallPhase) -> Result<&ActorFunctions, Fault> {
        match &self.state {
            StoreState::Active(active) => Ok(&active.functions),
            StoreState::Passivated(_) | StoreState::InCall(_) => Err(not_active(phase)),
        }
    }

    pub(super) async fn call<P, R>(
        &mut self,
        function: &TypedFunc<P, R>,
        params: P,
        phase: CallPhase,
    ) -> Result<R, Fault>
    where
        P: ComponentNamedList + Lower + Send + Sync + 'static,
        R: ComponentNamedList + Lift + Send + Sync + 'static,
    {
        unless_killed(self.call_anywhere(function, params, phase).await).await
    }

    async fn call_anywhere<P, R>(
        &mut self,
        function: &TypedFunc<P, R>,
        params: P,
        phase: CallPhase,
    ) -> Result<R, Fault>
    where
        P: ComponentNamedList + Lower + Send + Sync + 'static,
        R: ComponentNamedList + Lift + Send + Sync + 'static,
    {
        let moved = self.runs_on_guest_threads();
        if !self.call_params.waits && !moved {
            return self.call_now(function, params, phase);
        }
        let mut active = self.take_store(phase)?;
        let waits = self.call_params.waits;
        if moved && !waits && active.stack.is_none() {
            active.stack = self.reserve_stack();
        }
        let fiber = waits || active.stack.is_some();
        let place = if moved {
            CallPlace::Thread { fiber }
        } else {
            CallPlace::Worker
        };
        let (cpu_limits, fuel) = (self.cpu_limits(phase), self.call_params.fuel);
        let clock = Arc::clone(&active.store.data().clock);
        let function = *function;
        let call = Box::pin(async move {
            let store = &mut active.store;
            let called = match arm_limits(store, cpu_limits, fuel, place) {
                Err(error) => Err(error),
                Ok(()) if fiber => function.call_async(&mut *store, params).await,
                Ok(()) => function.call(&mut *store, params),
            };
            let called = called.map_err(|error| call_fault(store, phase, cpu_limits, &error));
            (active, called)
        });
        let (active, called) = self.run(call, clock, moved, phase).await?;
        self.state = StoreState::Active(active);
        called
    }

    /// Makes a call on this thread, for a component whose calls never wait.
    pub(super) fn call_now<P, R>(
        &mut self,
        function: &TypedFunc<P, R>,
        params: P,
        phase: CallPhase,
    ) -> Result<R, Fault>
    where
        P: ComponentNamedList + Lower + Send + Sync + 'static,
        R: ComponentNamedList + Lift + Send + Sync + 'static,
    {
        let (cpu_limits, fuel) = (self.cpu_limits(phase), self.call_params.fuel);
        let StoreState::Active(ActiveStore { store, .. }) = &mut self.state else {
            return Err(not_active(phase));
        };
        let _busy: CallGuard<'_> = self.host.ticks().begin_call();
        let called = match arm_limits(store, cpu_limits, fuel, CallPlace::Worker) {
            Ok(()) => function.call(&mut *store, params),
            Err(error) => Err(error),
        };
        store.data_mut().end_call();
        called.map_err(|error| call_fault(store, phase, cpu_limits, &error))
    }

    /// Runs a call that owns the Store: on a guest thread, or on this worker until it exceeds its
    /// slice.
    async fn run<T: Send + 'static>(
        &self,
        mut call: StoreCall<T>,
        clock: Arc<TurnClock>,
        moved: bool,
        phase: CallPhase,
    ) -> Result<T, Fault> {
        if !moved {
            let here = poll_fn(|cx| {
                let _busy = self.host.ticks().begin_call();
                match call.as_mut().poll(cx) {
                    Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                    // The call may also be pending because it waits for an answer.
                    Poll::Pending if clock.wants_move() => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                }
            });
            if let Some(outcome) = here.await {
                return Ok(outcome);
            }
        }
        let context = JobContext {
            host: self.host.clone(),
            usage: Arc::clone(&self.usage),
            clock: Arc::clone(&clock),
            runtime: self.runtime.clone(),
        };
        let outcome = self.host.guest_threads().run(context, call).await;
        self.usage.record_call(clock.is_ticked());
        outcome.map_err(|error| Fault {
            phase,
            kind: FaultKind::Host {
                text: error.to_string(),
            },
        })
    }

    /// Returns `true` if calls run on guest threads.
    fn runs_on_guest_threads(&self) -> bool {
        self.runtime.is_some() && (self.usage.is_heavy() || self.host.workers_are_occupied())
    }

    /// Reserves a stack for a component that never waits.
    fn reserve_stack(&self) -> Option<Box<CapacityPermit>> {
        let stack = (!self.call_params.waits).then(|| self.host.reserve_stack());
        stack.flatten().map(Box::new)
    }

    fn take_store(&mut self, phase: CallPhase) -> Result<ActiveStore, Fault> {
        let in_call = StoreState::InCall(match &self.state {
            StoreState::Active(active) => Arc::clone(&active.store.data().image),
            StoreState::Passivated(_) | StoreState::InCall(_) => return Err(not_active(phase)),
        });
        match mem::replace(&mut self.state, in_call) {
            StoreState::Active(active) => Ok(active),
            StoreState::Passivated(_) | StoreState::InCall(_) => Err(not_active(phase)),
        }
    }

    const fn cpu_limits(&self, phase: CallPhase) -> CpuLimits {
        match phase {
            CallPhase::Init => self.call_params.init,
            _ => self.call_params.call,
        }
    }
}

/// Waits forever if a kill ended the call, which has no outcome: the actor ends at this await.
pub(in crate::component) async fn unless_killed<T>(outcome: Result<T, Fault>) -> Result<T, Fault> {
    match outcome {
        Err(fault) if fault.kind == FaultKind::Killed => pending().await,
        outcome => outcome,
    }
}

/// Looks up the functions of an instance.
fn bind_functions(
    mut store: Store<StoreData>,
    instance: wasmtime::Result<wasmtime::component::Instance>,
    image: &Image,
    cpu_limits: CpuLimits,
) -> Result<ActiveStore, Fault> {
    let phase = CallPhase::Instantiate;
    let instance = instance.map_err(|error| call_fault(&store, phase, cpu_limits, &error))?;
    let functions = ActorFunctions::bind(&instance, &mut store, &image.exports);
    let functions = functions.map_err(|error| Fault {
        phase,
        kind: FaultKind::Abi {
            text: crate::fault::printable(&format!("{error:#}")),
        },
    })?;
    Ok(ActiveStore {
        store,
        functions,
        stack: None,
    })
}

/// Returns the fault that ended a call.
#[cold]
fn call_fault(
    store: &Store<StoreData>,
    phase: CallPhase,
    cpu_limits: CpuLimits,
    error: &wasmtime::Error,
) -> Fault {
    let guest = store.data();
    let called = FailedCall {
        phase,
        limit: cpu_limits.cpu,
        late: guest.exceeded_wall_limit(),
        killed: guest.was_killed(),
        refused: guest.memory.refused(),
    };
    let mut fault = called.fault(error);
    // A language runtime that gives up in the guest logs its reason, if anything, and then traps
    // without a message.
    if let (FaultKind::Panic { text } | FaultKind::Bug { text }, Some(line)) =
        (&mut fault.kind, guest.last_line())
        && error.is::<Trap>()
    {
        *text = format!("{text}; last log line: {line}");
    }
    fault
}

fn not_active(phase: CallPhase) -> Fault {
    Fault {
        phase,
        kind: FaultKind::Host {
            text: "the component was called while passivated".to_owned(),
        },
    }
}

/// Sets the limits of a call: time and fuel. The first tick checks its time.
fn arm_limits(
    store: &mut Store<StoreData>,
    cpu_limits: CpuLimits,
    fuel: u64,
    place: CallPlace,
) -> wasmtime::Result<()> {
    store.data_mut().begin(cpu_limits, place);
    store.set_epoch_deadline(1);
    if fuel > 0 {
        store.set_fuel(fuel)?;
    }
    Ok(())
}
