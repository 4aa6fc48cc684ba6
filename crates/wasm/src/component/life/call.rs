//! One call into a component: where it runs, and how it ends.

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use wasmtime::Store;
use wasmtime::component::{ComponentNamedList, Lift, Lower, TypedFunc};

use super::{Awake, Being, Life};
use crate::contract::Functions;
use crate::engine::Busy;
use crate::fault::{Called, Fault, FaultKind, Phase};
use crate::guest::{Bounds, Guest, Place};
use crate::guests::{Clock, Party};
use crate::host::Permit;
use crate::load::Image;

/// A call that has the Store with it.
type Errand<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Life {
    /// Makes a Store with this data, and an instance in it.
    pub(super) async fn instantiate(&self, guest: Guest) -> Result<Awake, Fault> {
        let image = Arc::clone(&guest.image);
        let clock = Arc::clone(&guest.clock);
        let mut store = Store::new(image.pre.engine(), guest);
        store.limiter(|guest| &mut guest.memory);
        store.epoch_deadline_callback(|mut cx| Ok(cx.data_mut().tick()));
        store.set_hostcall_fuel(image.manifest().limits.payload);
        let (bounds, fuel) = (self.rule.init, self.rule.fuel);
        let waits = self.rule.waits;
        if !self.is_moved() && !waits {
            let _busy = self.host.ticks().busy();
            let armed = arm(&mut store, bounds, fuel, Place::Worker);
            let instance = armed.and_then(|()| image.pre.instantiate(&mut store));
            store.data_mut().end_call();
            return bind(store, instance, &image, bounds);
        }
        let stack = self.own_stack();
        let fiber = waits || stack.is_some();
        let moved = self.is_moved();
        let errand = Box::pin(async move {
            let place = if moved {
                Place::Thread { fiber }
            } else {
                Place::Worker
            };
            let armed = arm(&mut store, bounds, fuel, place);
            let instance = match armed {
                Err(error) => Err(error),
                Ok(()) if fiber => image.pre.instantiate_async(&mut store).await,
                Ok(()) => image.pre.instantiate(&mut store),
            };
            let mut awake = bind(store, instance, &image, bounds)?;
            awake.stack = stack;
            Ok(awake)
        });
        self.send(errand, clock, moved, Phase::Instantiate).await?
    }

    /// The functions of the contract.
    pub(super) fn functions(&self, phase: Phase) -> Result<&Functions, Fault> {
        match &self.being {
            Being::Awake(awake) => Ok(&awake.functions),
            Being::Asleep(_) | Being::Away(_) => Err(asleep(phase)),
        }
    }

    pub(super) async fn call<P, R>(
        &mut self,
        function: &TypedFunc<P, R>,
        params: P,
        phase: Phase,
    ) -> Result<R, Fault>
    where
        P: ComponentNamedList + Lower + Send + Sync + 'static,
        R: ComponentNamedList + Lift + Send + Sync + 'static,
    {
        let moved = self.is_moved();
        if !self.rule.waits && !moved {
            return self.call_now(function, params, phase);
        }
        let mut awake = self.take_store(phase)?;
        let waits = self.rule.waits;
        if moved && !waits && awake.stack.is_none() {
            awake.stack = self.own_stack();
        }
        let fiber = waits || awake.stack.is_some();
        let place = if moved {
            Place::Thread { fiber }
        } else {
            Place::Worker
        };
        let (bounds, fuel) = (self.bounds(phase), self.rule.fuel);
        let clock = Arc::clone(&awake.store.data().clock);
        let function = *function;
        let errand = Box::pin(async move {
            let store = &mut awake.store;
            let called = match arm(store, bounds, fuel, place) {
                Err(error) => Err(error),
                Ok(()) if fiber => function.call_async(&mut *store, params).await,
                Ok(()) => function.call(&mut *store, params),
            };
            let called = called.map_err(|error| ended(store, phase, bounds, &error));
            (awake, called)
        });
        let (awake, called) = self.send(errand, clock, moved, phase).await?;
        self.being = Being::Awake(awake);
        called
    }

    /// The same of one whose calls never wait, on this thread.
    pub(super) fn call_now<P, R>(
        &mut self,
        function: &TypedFunc<P, R>,
        params: P,
        phase: Phase,
    ) -> Result<R, Fault>
    where
        P: ComponentNamedList + Lower + Send + Sync + 'static,
        R: ComponentNamedList + Lift + Send + Sync + 'static,
    {
        let (bounds, fuel) = (self.bounds(phase), self.rule.fuel);
        let Being::Awake(Awake { store, .. }) = &mut self.being else {
            return Err(asleep(phase));
        };
        let _busy: Busy<'_> = self.host.ticks().busy();
        let called = match arm(store, bounds, fuel, Place::Worker) {
            Ok(()) => function.call(&mut *store, params),
            Err(error) => Err(error),
        };
        store.data_mut().end_call();
        called.map_err(|error| ended(store, phase, bounds, &error))
    }

    /// Runs a call that has the Store with it: on a guest thread, or here until it has passed its
    /// slice.
    async fn send<T: Send + 'static>(
        &self,
        mut errand: Errand<T>,
        clock: Arc<Clock>,
        moved: bool,
        phase: Phase,
    ) -> Result<T, Fault> {
        if !moved {
            let here = poll_fn(|cx| {
                let _busy = self.host.ticks().busy();
                match errand.as_mut().poll(cx) {
                    Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                    Poll::Pending if clock.wants_move() => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                }
            });
            if let Some(outcome) = here.await {
                return Ok(outcome);
            }
        }
        let party = Party {
            host: self.host.clone(),
            usage: Arc::clone(&self.usage),
            clock: Arc::clone(&clock),
            runtime: self.runtime.clone(),
        };
        let outcome = self.host.guests().run(party, errand).await;
        self.usage.called(clock.is_ticked());
        outcome.map_err(|lost| Fault {
            phase,
            kind: FaultKind::Host {
                text: lost.to_string(),
            },
        })
    }

    /// Returns `true` if its calls run on guest threads.
    fn is_moved(&self) -> bool {
        self.runtime.is_some() && (self.usage.is_heavy() || self.host.is_crowded())
    }

    /// A stack of its own for a component that never waits.
    fn own_stack(&self) -> Option<Box<Permit>> {
        let stack = (!self.rule.waits).then(|| self.host.admit_stack());
        stack.flatten().map(Box::new)
    }

    fn take_store(&mut self, phase: Phase) -> Result<Awake, Fault> {
        let away = Being::Away(match &self.being {
            Being::Awake(awake) => Arc::clone(&awake.store.data().image),
            Being::Asleep(_) | Being::Away(_) => return Err(asleep(phase)),
        });
        match mem::replace(&mut self.being, away) {
            Being::Awake(awake) => Ok(awake),
            Being::Asleep(_) | Being::Away(_) => Err(asleep(phase)),
        }
    }

    const fn bounds(&self, phase: Phase) -> Bounds {
        match phase {
            Phase::Init => self.rule.init,
            _ => self.rule.call,
        }
    }
}

/// Looks up the functions of an instance.
fn bind(
    mut store: Store<Guest>,
    instance: wasmtime::Result<wasmtime::component::Instance>,
    image: &Image,
    bounds: Bounds,
) -> Result<Awake, Fault> {
    let phase = Phase::Instantiate;
    let instance = instance.map_err(|error| ended(&store, phase, bounds, &error))?;
    let functions = Functions::bind(&instance, &mut store, &image.exports);
    let functions = functions.map_err(|error| Fault {
        phase,
        kind: FaultKind::Abi {
            text: crate::fault::cut(&format!("{error:#}")),
        },
    })?;
    Ok(Awake {
        store,
        functions,
        stack: None,
    })
}

/// The fault in which a call ended.
#[cold]
fn ended(store: &Store<Guest>, phase: Phase, bounds: Bounds, error: &wasmtime::Error) -> Fault {
    let guest = store.data();
    let called = Called {
        phase,
        limit: bounds.cpu,
        late: guest.late(),
        refused: guest.memory.refused(),
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
fn arm(store: &mut Store<Guest>, bounds: Bounds, fuel: u64, place: Place) -> wasmtime::Result<()> {
    store.data_mut().begin(bounds, place);
    store.set_epoch_deadline(1);
    if fuel > 0 {
        store.set_fuel(fuel)?;
    }
    Ok(())
}
