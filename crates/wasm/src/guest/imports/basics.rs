//! The interfaces `log`, `clock`, `random`, `config` and `fault`.

use std::time::SystemTime;

use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Lift, LinkerInstance, Lower};

use crate::fault::{GuestAborted, LimitExceeded, printable};
use crate::guest::StoreData;

/// The severity of a log line: `log.level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ComponentType, Lower, Lift)]
#[component(enum)]
#[repr(u8)]
enum Level {
    #[component(name = "error")]
    Error,
    #[component(name = "warn")]
    Warn,
    #[component(name = "info")]
    Info,
    #[component(name = "debug")]
    Debug,
}

/// The levels of the contract and those of `tracing`.
const LOG_LEVELS: [(Level, tracing::Level); 4] = [
    (Level::Error, tracing::Level::ERROR),
    (Level::Warn, tracing::Level::WARN),
    (Level::Info, tracing::Level::INFO),
    (Level::Debug, tracing::Level::DEBUG),
];

/// Maximum number of random bytes per call.
const MAX_RANDOM: u32 = 4096;

pub(super) fn link_log(instance: &mut LinkerInstance<'_, StoreData>) -> wasmtime::Result<()> {
    instance.func_wrap(
        "write",
        |mut store: StoreContextMut<'_, StoreData>, (level, text): (Level, String)| {
            let guest = store.data_mut();
            let now = guest.now();
            let text = &*guest.last_line.insert(printable(&text));
            let Some(omitted) = guest.usage.log_limits().own.take(now) else {
                return Ok(());
            };
            let component = &guest.env.path;
            if omitted > 0 {
                tracing::warn!(%component, omitted, "log lines dropped: limits.log_rate exceeded");
            }
            let known = LOG_LEVELS.iter().find(|(own, _)| *own == level);
            match known.map(|(_, level)| *level) {
                Some(tracing::Level::ERROR) => tracing::error!(%component, "{text}"),
                Some(tracing::Level::WARN) => tracing::warn!(%component, "{text}"),
                Some(tracing::Level::INFO) => tracing::info!(%component, "{text}"),
                _ => tracing::debug!(%component, "{text}"),
            }
            Ok(())
        },
    )
}

pub(super) fn link_clock(instance: &mut LinkerInstance<'_, StoreData>) -> wasmtime::Result<()> {
    instance.func_wrap("now", |store: StoreContextMut<'_, StoreData>, (): ()| {
        let guest = store.data();
        let since = guest.env.system.now().duration_since(guest.host.start());
        Ok((u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),))
    })?;
    instance.func_wrap("wall", |_: StoreContextMut<'_, StoreData>, (): ()| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let nanos = since.map_or(0, |since| since.as_nanos());
        Ok((u64::try_from(nanos).unwrap_or(u64::MAX),))
    })
}

pub(super) fn link_random(instance: &mut LinkerInstance<'_, StoreData>) -> wasmtime::Result<()> {
    instance.func_wrap(
        "bytes",
        |_: StoreContextMut<'_, StoreData>, (count,): (u32,)| {
            if count > MAX_RANDOM {
                return Err(wasmtime::Error::new(LimitExceeded("payload")));
            }
            let mut bytes = vec![0; count as usize];
            getrandom::fill(&mut bytes)
                .map_err(|error| wasmtime::Error::msg(format!("no random bytes: {error}")))?;
            Ok((bytes,))
        },
    )
}

pub(super) fn link_config(instance: &mut LinkerInstance<'_, StoreData>) -> wasmtime::Result<()> {
    instance.func_wrap(
        "get",
        |store: StoreContextMut<'_, StoreData>, (key,): (String,)| {
            Ok((store.data().image.setting(&key).map(str::to_owned),))
        },
    )
}

pub(super) fn link_fault(instance: &mut LinkerInstance<'_, StoreData>) -> wasmtime::Result<()> {
    instance.func_wrap(
        "fail",
        |_: StoreContextMut<'_, StoreData>, (text,): (String,)| {
            Err::<(), _>(wasmtime::Error::new(GuestAborted(printable(&text))))
        },
    )
}
