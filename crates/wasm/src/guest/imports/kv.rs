//! The `kv` interface: bytes by key.

use wasmtime::StoreContextMut;
use wasmtime::component::LinkerInstance;

use crate::contract::{Payload, Refusal};
use crate::guest::StoreData;
use crate::kv::KvSpace;
use crate::manifest::KvGrant;

type Outcome<T> = wasmtime::Result<(Result<T, Refusal>,)>;
type Context<'a> = StoreContextMut<'a, StoreData>;
/// The parameters of `swap`: the key, the expected value and the new value.
type Swap = (String, Option<Payload>, Option<Payload>);

pub(super) fn link(instance: &mut LinkerInstance<'_, StoreData>) -> wasmtime::Result<()> {
    instance.func_wrap("get", |mut cx: Context<'_>, (key,): (String,)| {
        let found = cx.data_mut().space().get(&key);
        Ok((found,)) as Outcome<Option<Vec<u8>>>
    })?;
    instance.func_wrap(
        "set",
        |mut cx: Context<'_>, (key, value): (String, Payload)| {
            let written = cx
                .data_mut()
                .write(|space, quota| space.set(&key, &value, quota));
            Ok((written,)) as Outcome<()>
        },
    )?;
    instance.func_wrap(
        "swap",
        |mut cx: Context<'_>, (key, expected, value): Swap| {
            let written = cx.data_mut().write(|space, quota| {
                space.swap(&key, expected.as_deref(), value.as_deref(), quota)
            });
            Ok((written,)) as Outcome<bool>
        },
    )?;
    instance.func_wrap("remove", |mut cx: Context<'_>, (key,): (String,)| {
        let written = cx
            .data_mut()
            .write(|space, quota| space.remove(&key, quota));
        Ok((written,)) as Outcome<bool>
    })?;
    instance.func_wrap(
        "keys",
        |mut cx: Context<'_>, (prefix, after, most): (String, String, u32)| {
            let keys = cx.data_mut().space().list(&prefix, &after, most);
            Ok((keys,)) as Outcome<Vec<String>>
        },
    )
}

impl StoreData {
    fn space(&mut self) -> &KvSpace {
        let name = &self.image.manifest().component.name;
        self.space.get_or_insert_with(|| self.host.kv().space(name))
    }

    /// Takes one token of the write rate, and writes.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&KvSpace, &KvGrant) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let now = self.now();
        let Some(quota) = self.image.manifest().grant.kv else {
            return Err(Refusal::Denied);
        };
        if !self.writes.take(now) {
            return Err(Refusal::Rate);
        }
        work(self.space(), &quota)
    }
}
