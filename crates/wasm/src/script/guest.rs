//! The contract of `wit/script.wit`, and what the host knows of a realm.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{SystemTime, UNIX_EPOCH};

use wasmtime::component::{Component, ComponentExportIndex, Instance, Linker, TypedFunc};
use wasmtime::{ResourceLimiter, Store, StoreContextMut, UpdateDeadline};

use super::meter::Clock;
use super::{Answering, RunLimits, ScriptCaller};

/// A limit that the host found passed, inside a call.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("passed the limit `{0}`")]
pub(super) struct Passed(pub(super) &'static str);

/// Nobody wants the result.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("cancelled")]
pub(super) struct Gone;

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Value,
    Thrown,
    Waiting,
    Stack,
    Unknown,
}

impl State {
    pub(super) const fn of(number: u32) -> Self {
        match number {
            0 => Self::Value,
            1 => Self::Thrown,
            2 => Self::Waiting,
            3 => Self::Stack,
            _ => Self::Unknown,
        }
    }
}

type Ended = ((u32, Vec<u8>),);
type Begin = TypedFunc<(u32, u32, u32, Vec<u8>), ()>;
type Step = TypedFunc<(Vec<u8>, Vec<u8>), Ended>;
type Settle = TypedFunc<(u32, bool, Vec<u8>), Ended>;

/// Where in the component its functions are.
pub(super) struct Exports([ComponentExportIndex; 5]);

const REALM: &str = "strowger:script/realm@0.1.0";
const HOST: &str = "strowger:script/host@0.1.0";

impl Exports {
    /// Finds them; or names the one that is missing.
    pub(super) fn find(component: &Component) -> Result<Self, String> {
        let realm = component.get_export_index(None, REALM);
        let realm = realm.ok_or_else(|| REALM.to_owned())?;
        let find = |name: &str| {
            let found = component.get_export_index(Some(&realm), name);
            found.ok_or_else(|| format!("{REALM}#{name}"))
        };
        Ok(Self([
            find("begin")?,
            find("evaluate")?,
            find("call")?,
            find("set")?,
            find("settle")?,
        ]))
    }
}

/// The functions of a realm.
pub(super) struct Functions {
    pub(super) begin: Begin,
    pub(super) evaluate: Step,
    pub(super) call: Step,
    pub(super) set: Step,
    pub(super) settle: Settle,
}

impl Functions {
    pub(super) fn bind(
        instance: &Instance,
        store: &mut Store<Data>,
        Exports([begin, evaluate, call, set, settle]): &Exports,
    ) -> wasmtime::Result<Self> {
        Ok(Self {
            begin: instance.get_typed_func(&mut *store, begin)?,
            evaluate: instance.get_typed_func(&mut *store, evaluate)?,
            call: instance.get_typed_func(&mut *store, call)?,
            set: instance.get_typed_func(&mut *store, set)?,
            settle: instance.get_typed_func(&mut *store, settle)?,
        })
    }
}

/// The data of a realm's Store.
pub(super) struct Data {
    pub(super) memory: Memory,
    clock: Arc<Clock>,
    limits: RunLimits,
    /// Whoever the run under way is for.
    caller: Option<Box<dyn ScriptCaller>>,
    written: usize,
    calls: VecDeque<(u32, Answering)>,
}

impl Data {
    pub(super) fn new(memory: usize, clock: Arc<Clock>) -> Self {
        Self {
            memory: Memory {
                max: memory,
                used: 0,
                refused: false,
            },
            clock,
            limits: RunLimits::default(),
            caller: None,
            written: 0,
            calls: VecDeque::new(),
        }
    }

    pub(super) fn begin(&mut self, limits: RunLimits, caller: Box<dyn ScriptCaller>) {
        self.limits = limits;
        self.caller = Some(caller);
        self.written = 0;
    }

    /// Drops what belongs to the run.
    pub(super) fn end(&mut self) {
        self.caller = None;
        self.calls.clear();
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.caller
            .as_ref()
            .is_some_and(|caller| caller.is_wanted())
    }

    /// The first answer of a function that the run called; `None` if it called none.
    pub(super) async fn answer(&mut self) -> Option<(u32, Result<String, String>)> {
        if self.calls.is_empty() {
            return None;
        }
        poll_fn(|cx| {
            for at in 0..self.calls.len() {
                let (token, call) = &mut self.calls[at];
                if let Poll::Ready(answer) = call.as_mut().poll(cx) {
                    let token = *token;
                    self.calls.remove(at);
                    return Poll::Ready(Some((token, answer)));
                }
            }
            Poll::Pending
        })
        .await
    }

    fn caller(&mut self) -> wasmtime::Result<&mut dyn ScriptCaller> {
        match &mut self.caller {
            Some(caller) => Ok(&mut **caller),
            None => Err(wasmtime::Error::new(Gone)),
        }
    }
}

/// The memory of a realm.
pub(super) struct Memory {
    max: usize,
    used: usize,
    refused: bool,
}

impl Memory {
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    /// Whether it wanted more than it may have.
    pub(super) const fn was_refused(&self) -> bool {
        self.refused
    }
}

impl ResourceLimiter for Memory {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > self.max {
            self.refused = true;
            return Ok(false);
        }
        self.used = desired;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        _desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(true)
    }
}

/// At each tick: has it computed for too long, does anybody want it? Then others have their turn.
pub(super) fn tick(mut cx: StoreContextMut<'_, Data>) -> wasmtime::Result<UpdateDeadline> {
    let data = cx.data_mut();
    if data.clock.spent() > data.limits.time {
        return Err(wasmtime::Error::new(Passed("time")));
    }
    if data.caller.is_some() && !data.is_wanted() {
        return Err(wasmtime::Error::new(Gone));
    }
    Ok(UpdateDeadline::Yield(1))
}

/// What a line takes besides its text; one without text takes room too.
const LINE: usize = 32;

pub(super) fn link(linker: &mut Linker<Data>) -> wasmtime::Result<()> {
    let mut host = linker.instance(HOST)?;
    host.func_wrap(
        "print",
        |mut cx: StoreContextMut<'_, Data>, (level, text): (u32, Vec<u8>)| {
            let data = cx.data_mut();
            data.written = data.written.saturating_add(text.len() + LINE);
            if data.written > data.limits.output {
                return Err(wasmtime::Error::new(Passed("output")));
            }
            let text = String::from_utf8_lossy(&text).into_owned();
            data.caller()?.print(level, text);
            Ok(())
        },
    )?;
    host.func_wrap(
        "call",
        |mut cx: StoreContextMut<'_, Data>, (function, token, json): (u32, u32, Vec<u8>)| {
            let data = cx.data_mut();
            if data.calls.len() >= data.limits.calls {
                return Ok((1_u32,));
            }
            let answering = data.ask(function, &json)?;
            data.calls.push_back((token, answering));
            Ok((0_u32,))
        },
    )?;
    host.func_wrap_async(
        "invoke",
        |mut cx: StoreContextMut<'_, Data>, (function, json): (u32, Vec<u8>)| {
            Box::new(async move {
                let answer = cx.data_mut().ask(function, &json)?.await;
                let (well, text) = match answer {
                    Ok(text) => (true, text),
                    Err(text) => (false, text),
                };
                Ok(((well, text.into_bytes()),))
            })
        },
    )?;
    host.func_wrap(
        "crowded",
        |_: StoreContextMut<'_, Data>, (): ()| -> wasmtime::Result<()> {
            Err(wasmtime::Error::new(Passed("jobs")))
        },
    )?;
    host.func_wrap("now", |cx: StoreContextMut<'_, Data>, (): ()| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let granted = cx.data().limits.clock;
        let now = now.ok().filter(|_| granted).unwrap_or_default();
        Ok((now.as_secs_f64() * 1000.0,))
    })?;
    host.func_wrap("random", |cx: StoreContextMut<'_, Data>, (): ()| {
        if !cx.data().limits.random {
            return Ok((0_u64,));
        }
        let bits = getrandom::u64().map_err(|error| wasmtime::Error::msg(error.to_string()))?;
        Ok((bits,))
    })
}

impl Data {
    fn ask(&mut self, function: u32, json: &[u8]) -> wasmtime::Result<Answering> {
        if json.len() > self.limits.result {
            return Err(wasmtime::Error::new(Passed("result")));
        }
        let json = String::from_utf8_lossy(json).into_owned();
        Ok(self.caller()?.call(function as usize, json))
    }
}
