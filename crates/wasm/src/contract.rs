//! The contract of `wit/component.wit`, in Rust.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{
    Component, ComponentExportIndex, ComponentNamedList, ComponentType, Instance, Lift, Lower,
    TypedFunc,
};

/// The bytes of a message; shared between receivers, not copied.
pub type Payload = Arc<[u8]>;

/// The package of the contract.
pub(crate) const PACKAGE: &str = "strowger:component";
/// The version of the contract; a component may be built for an earlier, compatible one.
pub(crate) const VERSION: &str = "0.1.0";

/// Returns the full name of an interface, as components import and export it.
pub(crate) fn interface(name: &str) -> String {
    format!("{PACKAGE}/{name}@{VERSION}")
}

/// The reason why an incarnation starts: `actor.reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lower, Lift)]
#[component(enum)]
#[repr(u8)]
pub(crate) enum StartReason {
    #[component(name = "fresh")]
    Fresh,
    #[component(name = "restart")]
    Restart,
    #[component(name = "upgrade")]
    Upgrade,
}

/// The kind of a message: `actor.kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lower, Lift)]
#[component(enum)]
#[repr(u8)]
pub(crate) enum MessageKind {
    #[component(name = "message")]
    Message,
    #[component(name = "request")]
    Request,
    #[component(name = "answer")]
    Answer,
    #[component(name = "failure")]
    Failure,
    #[component(name = "event")]
    Event,
    #[component(name = "timer")]
    Timer,
}

/// A message in a batch: `batch.envelope`.
#[derive(Debug, Clone, ComponentType, Lower, Lift)]
#[component(record)]
pub(crate) struct Envelope {
    pub(crate) kind: MessageKind,
    pub(crate) token: u64,
    pub(crate) payload: Payload,
}

/// The reason why the host refused a request: `refusal.reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lower, Lift)]
#[component(enum)]
#[repr(u8)]
pub(crate) enum Refusal {
    #[component(name = "denied")]
    Denied,
    #[component(name = "unknown")]
    Unknown,
    #[component(name = "full")]
    Full,
    #[component(name = "closed")]
    Closed,
    #[component(name = "rate")]
    Rate,
    #[component(name = "limit")]
    Limit,
    #[component(name = "late")]
    Late,
    #[component(name = "failed")]
    Failed,
    #[component(name = "ring")]
    Ring,
}

/// The answer of a component: bytes, or the text of a refusal.
pub(crate) type HandleResult = Result<Vec<u8>, String>;

type InitFn = TypedFunc<(StartReason, u32, u32, Option<Payload>), (Result<(), String>,)>;
type HandleFn = TypedFunc<(MessageKind, u64, Payload), (HandleResult,)>;
type StopFn = TypedFunc<(), ()>;
type HealthFn = TypedFunc<(), (Result<(), String>,)>;
type SnapshotFn = TypedFunc<(), (Vec<u8>,)>;
type VersionFn = TypedFunc<(), (u32,)>;
type BatchFn = TypedFunc<(Vec<Envelope>,), (Result<(), String>,)>;

/// The export indices of the contract's functions in a component; looked up once per component.
#[derive(Clone)]
pub(crate) struct ActorExports {
    init: ComponentExportIndex,
    handle: ComponentExportIndex,
    stop: ComponentExportIndex,
    health: ComponentExportIndex,
    stateful: Option<(ComponentExportIndex, ComponentExportIndex)>,
    batch: Option<ComponentExportIndex>,
}

impl ActorExports {
    /// Looks up the exports; the error is the name of the missing one.
    pub(crate) fn find(component: &Component) -> Result<Self, String> {
        let within = |name: &str| component.get_export_index(None, interface(name));
        let missing = |name: &str, function: &str| format!("{}#{function}", interface(name));
        let find = |name: &str, function: &str| {
            within(name)
                .and_then(|instance| component.get_export_index(Some(&instance), function))
                .ok_or_else(|| missing(name, function))
        };
        let stateful = match within("stateful") {
            Some(_) => Some((find("stateful", "snapshot")?, find("stateful", "version")?)),
            None => None,
        };
        let batch = match within("batch") {
            Some(_) => Some(find("batch", "handle")?),
            None => None,
        };
        Ok(Self {
            init: find("actor", "init")?,
            handle: find("actor", "handle")?,
            stop: find("actor", "stop")?,
            health: find("actor", "health")?,
            stateful,
            batch,
        })
    }

    pub(crate) const fn is_stateful(&self) -> bool {
        self.stateful.is_some()
    }

    pub(crate) const fn takes_batches(&self) -> bool {
        self.batch.is_some()
    }
}

/// The functions of an instance, with checked types.
#[derive(Clone)]
pub(crate) struct ActorFunctions {
    pub(crate) init: InitFn,
    pub(crate) handle: HandleFn,
    pub(crate) stop: StopFn,
    pub(crate) health: HealthFn,
    pub(crate) stateful: Option<(SnapshotFn, VersionFn)>,
    pub(crate) batch: Option<BatchFn>,
}

impl ActorFunctions {
    pub(crate) fn bind<T: 'static>(
        instance: &Instance,
        store: &mut Store<T>,
        exports: &ActorExports,
    ) -> wasmtime::Result<Self> {
        fn typed<T: 'static, P, R>(
            instance: &Instance,
            store: &mut Store<T>,
            index: &ComponentExportIndex,
        ) -> wasmtime::Result<TypedFunc<P, R>>
        where
            P: ComponentNamedList + Lower,
            R: ComponentNamedList + Lift,
        {
            instance.get_typed_func(store, index)
        }
        Ok(Self {
            init: typed(instance, store, &exports.init)?,
            handle: typed(instance, store, &exports.handle)?,
            stop: typed(instance, store, &exports.stop)?,
            health: typed(instance, store, &exports.health)?,
            stateful: match &exports.stateful {
                Some((snapshot, version)) => Some((
                    typed(instance, store, snapshot)?,
                    typed(instance, store, version)?,
                )),
                None => None,
            },
            batch: match &exports.batch {
                Some(batch) => Some(typed(instance, store, batch)?),
                None => None,
            },
        })
    }
}
