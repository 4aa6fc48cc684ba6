//! The `kv` interface: bytes by key.

use std::sync::Arc;

use wasmtime::StoreContextMut;
use wasmtime::component::LinkerInstance;

use crate::contract::{Payload, Refusal};
use crate::guest::StoreData;
use crate::host_call::HostCall;
use crate::kv::KvSpace;
use crate::manifest::KvGrant;

type Outcome<T> = wasmtime::Result<(Result<T, Refusal>,)>;
type Context<'a> = StoreContextMut<'a, StoreData>;
/// The parameters of `swap`: the key, the expected value and the new value.
type Swap = (String, Option<Payload>, Option<Payload>);

pub(super) fn link(instance: &mut LinkerInstance<'_, StoreData>) -> wasmtime::Result<()> {
    instance.func_wrap("get", |mut cx: Context<'_>, (key,): (String,)| {
        let found = cx.data_mut().in_space(|space, _| space.get(&key));
        Ok((found?,)) as Outcome<Option<Vec<u8>>>
    })?;
    instance.func_wrap(
        "set",
        |mut cx: Context<'_>, (key, value): (String, Payload)| {
            let written = cx
                .data_mut()
                .write(|space, quota, call| space.set(&key, &value, quota, call));
            Ok((written?,)) as Outcome<()>
        },
    )?;
    instance.func_wrap(
        "swap",
        |mut cx: Context<'_>, (key, expected, value): Swap| {
            let written = cx.data_mut().write(|space, quota, call| {
                space.swap(&key, expected.as_deref(), value.as_deref(), quota, call)
            });
            Ok((written?,)) as Outcome<bool>
        },
    )?;
    instance.func_wrap("remove", |mut cx: Context<'_>, (key,): (String,)| {
        let written = cx
            .data_mut()
            .write(|space, quota, call| space.remove(&key, quota, call));
        Ok((written?,)) as Outcome<bool>
    })?;
    instance.func_wrap(
        "keys",
        |mut cx: Context<'_>, (prefix, after, most): (String, String, u32)| {
            let keys = cx
                .data_mut()
                .in_space(|space, _| space.list(&prefix, &after, most));
            Ok((keys?,)) as Outcome<Vec<String>>
        },
    )
}

impl StoreData {
    /// Performs an operation in the space of the component; the outer error ends the call.
    fn in_space<T>(
        &mut self,
        work: impl FnOnce(&KvSpace, &mut dyn HostCall) -> Result<T, Refusal>,
    ) -> wasmtime::Result<Result<T, Refusal>> {
        let name = &self.image.manifest().component.name;
        let space = self
            .space
            .get_or_insert_with(|| Arc::new(self.host.kv().space(name)));
        let space = Arc::clone(space);
        match space.may_block() {
            true => self.host_work(|guest| work(&space, guest)),
            false => Ok(work(&space, self)),
        }
    }

    /// Takes one token of the write rate, and writes.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&KvSpace, &KvGrant, &mut dyn HostCall) -> Result<T, Refusal>,
    ) -> wasmtime::Result<Result<T, Refusal>> {
        let now = self.now();
        let Some(quota) = self.image.manifest().grant.kv else {
            return Ok(Err(Refusal::Denied));
        };
        if !self.writes.take(now) {
            return Ok(Err(Refusal::Rate));
        }
        self.in_space(|space, call| work(space, &quota, call))
    }
}
