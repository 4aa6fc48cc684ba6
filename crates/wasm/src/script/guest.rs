//! The contract of `wit/script.wit`, and the host's data of a realm.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{SystemTime, UNIX_EPOCH};

use wasmtime::component::{Component, ComponentExportIndex, Instance, Linker, TypedFunc};
use wasmtime::{ResourceLimiter, Store, StoreContextMut, UpdateDeadline};

use super::meter::ScriptClock;
use super::{ExceededLimit, ScriptCallFuture, ScriptCaller, ScriptLimits};

/// The error of a run whose result is no longer wanted.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("cancelled")]
pub(super) struct RunCancelled;

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepState {
    Value,
    Thrown,
    Waiting,
    Stack,
    Unknown,
}

impl StepState {
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

type StepResult = ((u32, Vec<u8>),);
type BeginFn = TypedFunc<(u32, u32, u32, Vec<u8>), ()>;
type StepFn = TypedFunc<(Vec<u8>, Vec<u8>), StepResult>;
type SettleFn = TypedFunc<(u32, bool, Vec<u8>), StepResult>;

/// The export indices of the component's functions.
pub(super) struct RealmExports([ComponentExportIndex; 5]);

const REALM: &str = "strowger:script/realm@0.1.0";
const HOST: &str = "strowger:script/host@0.1.0";

impl RealmExports {
    /// Looks up the exports; the error is the name of the missing one.
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
pub(super) struct RealmFunctions {
    pub(super) begin: BeginFn,
    pub(super) evaluate: StepFn,
    pub(super) call: StepFn,
    pub(super) set: StepFn,
    pub(super) settle: SettleFn,
}

impl RealmFunctions {
    pub(super) fn bind(
        instance: &Instance,
        store: &mut Store<RealmData>,
        RealmExports([begin, evaluate, call, set, settle]): &RealmExports,
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
pub(super) struct RealmData {
    pub(super) memory: RealmMemory,
    clock: Arc<ScriptClock>,
    limits: ScriptLimits,
    /// The caller of the current run.
    caller: Option<Box<dyn ScriptCaller>>,
    written: usize,
    calls: VecDeque<(u32, ScriptCallFuture)>,
}

impl RealmData {
    pub(super) fn new(memory: usize, clock: Arc<ScriptClock>) -> Self {
        Self {
            memory: RealmMemory {
                max: memory,
                used: 0,
                refused: None,
            },
            clock,
            limits: ScriptLimits::default(),
            caller: None,
            written: 0,
            calls: VecDeque::new(),
        }
    }

    pub(super) fn begin(&mut self, limits: ScriptLimits, caller: Box<dyn ScriptCaller>) {
        self.limits = limits;
        self.caller = Some(caller);
        self.written = 0;
    }

    /// Drops everything that belongs to the run.
    pub(super) fn end(&mut self) {
        self.caller = None;
        self.calls.clear();
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.caller
            .as_ref()
            .is_some_and(|caller| caller.is_wanted())
    }

    /// Waits for the first answer of a host function that the run called; returns `None` if no call
    /// is in progress.
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

    /// Returns the error for an exceeded stack limit.
    pub(super) fn stack_exceeded(&self) -> ExceededLimit {
        ExceededLimit::new("stack", self.limits.stack.into(), None)
    }

    /// Returns the error for a result that exceeded its limit before it was read.
    pub(super) const fn result_exceeded(&self) -> ExceededLimit {
        ExceededLimit::new("result", self.limits.result as u64, None)
    }

    fn caller(&mut self) -> wasmtime::Result<&mut dyn ScriptCaller> {
        match &mut self.caller {
            Some(caller) => Ok(&mut **caller),
            None => Err(wasmtime::Error::new(RunCancelled)),
        }
    }
}

/// The memory of a realm.
pub(super) struct RealmMemory {
    max: usize,
    used: usize,
    /// The size that it requested, if that exceeded the limit.
    refused: Option<usize>,
}

impl RealmMemory {
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    pub(super) const fn max(&self) -> usize {
        self.max
    }

    /// Returns the error for the memory limit, if it was exceeded.
    pub(super) fn exceeded(&self) -> Option<ExceededLimit> {
        let wanted = self.refused?;
        let most = self.max as u64;
        Some(ExceededLimit::new("memory", most, Some(wanted as u64)))
    }
}

impl ResourceLimiter for RealmMemory {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > self.max {
            self.refused = Some(desired);
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

/// Ends the run at a tick if it has computed for too long or its result is no longer wanted;
/// otherwise yields to other tasks.
pub(super) fn tick(mut cx: StoreContextMut<'_, RealmData>) -> wasmtime::Result<UpdateDeadline> {
    let data = cx.data_mut();
    if data.clock.spent() > data.limits.time {
        let most = u64::try_from(data.limits.time.as_millis()).unwrap_or(u64::MAX);
        return Err(ExceededLimit::new("time", most, None).into());
    }
    if data.caller.is_some() && !data.is_wanted() {
        return Err(wasmtime::Error::new(RunCancelled));
    }
    Ok(UpdateDeadline::Yield(1))
}

/// Decodes text of the engine. A lone surrogate, which JavaScript allows and UTF-8 does not,
/// becomes U+FFFD, as with a `TextEncoder`.
pub(super) fn text_of(mut bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    loop {
        let error = match std::str::from_utf8(bytes) {
            Ok(rest) => {
                text.push_str(rest);
                return text;
            }
            Err(error) => error,
        };
        let (valid, rest) = bytes.split_at(error.valid_up_to());
        text.push_str(&String::from_utf8_lossy(valid));
        text.push(char::REPLACEMENT_CHARACTER);
        let wrong = match rest {
            // The three bytes that would encode one of D800 to DFFF.
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => 3,
            _ => error.error_len().unwrap_or(rest.len()),
        };
        bytes = &rest[wrong..];
    }
}

/// Size that each line counts in addition to its text, so that empty lines count as well.
const LINE_OVERHEAD: usize = 32;

pub(super) fn link(linker: &mut Linker<RealmData>) -> wasmtime::Result<()> {
    let mut host = linker.instance(HOST)?;
    host.func_wrap(
        "print",
        |mut cx: StoreContextMut<'_, RealmData>, (level, text): (u32, Vec<u8>)| {
            let data = cx.data_mut();
            data.written = data.written.saturating_add(text.len() + LINE_OVERHEAD);
            if data.written > data.limits.output {
                let (most, used) = (data.limits.output as u64, data.written as u64);
                return Err(ExceededLimit::new("output", most, Some(used)).into());
            }
            data.caller()?.print(level, text_of(&text));
            Ok(())
        },
    )?;
    host.func_wrap(
        "call",
        |mut cx: StoreContextMut<'_, RealmData>, (function, token, json): (u32, u32, Vec<u8>)| {
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
        |mut cx: StoreContextMut<'_, RealmData>, (function, json): (u32, Vec<u8>)| {
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
        |cx: StoreContextMut<'_, RealmData>, (): ()| -> wasmtime::Result<()> {
            let most = u64::from(cx.data().limits.jobs);
            Err(ExceededLimit::new("jobs", most, Some(most + 1)).into())
        },
    )?;
    host.func_wrap("now", |cx: StoreContextMut<'_, RealmData>, (): ()| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let granted = cx.data().limits.clock;
        let now = now.ok().filter(|_| granted).unwrap_or_default();
        Ok((now.as_secs_f64() * 1000.0,))
    })?;
    host.func_wrap("random", |cx: StoreContextMut<'_, RealmData>, (): ()| {
        if !cx.data().limits.random {
            return Ok((0_u64,));
        }
        let bits = getrandom::u64().map_err(|error| wasmtime::Error::msg(error.to_string()))?;
        Ok((bits,))
    })
}

impl RealmData {
    fn ask(&mut self, function: u32, json: &[u8]) -> wasmtime::Result<ScriptCallFuture> {
        if json.len() > self.limits.result {
            let (most, used) = (self.limits.result as u64, json.len() as u64);
            return Err(ExceededLimit::new("result", most, Some(used)).into());
        }
        Ok(self.caller()?.call(function as usize, text_of(json)))
    }
}
