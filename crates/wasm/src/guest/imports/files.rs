//! Files below folders that were granted.

use wasmtime::StoreContextMut;
use wasmtime::component::LinkerInstance;

use crate::contract::{Payload, Refusal};
use crate::fault::Passed;
use crate::files::Root;
use crate::guest::Guest;

type Outcome<T> = wasmtime::Result<(Result<T, Refusal>,)>;
type Context<'a> = StoreContextMut<'a, Guest>;

pub(super) fn link(instance: &mut LinkerInstance<'_, Guest>) -> wasmtime::Result<()> {
    instance.func_wrap(
        "read",
        |mut cx: Context<'_>, (root, path, at, count): (String, String, u64, u32)| {
            let guest = cx.data_mut();
            // What the host would have to hold for it counts as what crosses.
            if count as usize > guest.image.manifest().limits.payload {
                return Err(wasmtime::Error::new(Passed("payload")));
            }
            let count = count as usize;
            let read = guest.below(&root, &path, |root| root.read(&path, at, count));
            Ok((read,)) as Outcome<Vec<u8>>
        },
    )?;
    instance.func_wrap(
        "size",
        |mut cx: Context<'_>, (root, path): (String, String)| {
            let size = cx.data_mut().below(&root, &path, |root| root.size(&path));
            Ok((size,)) as Outcome<u64>
        },
    )?;
    instance.func_wrap(
        "write",
        |mut cx: Context<'_>, (root, path, at, octets): (String, String, u64, Payload)| {
            let guest = cx.data_mut();
            let written = guest.below(&root, &path, |root| root.write(&path, at, &octets));
            Ok((written,)) as Outcome<()>
        },
    )?;
    instance.func_wrap(
        "resize",
        |mut cx: Context<'_>, (root, path, size): (String, String, u64)| {
            let guest = cx.data_mut();
            let resized = guest.below(&root, &path, |root| root.resize(&path, size));
            Ok((resized,)) as Outcome<()>
        },
    )?;
    instance.func_wrap(
        "remove",
        |mut cx: Context<'_>, (root, path): (String, String)| {
            let removed = cx.data_mut().below(&root, &path, |root| root.remove(&path));
            Ok((removed,)) as Outcome<()>
        },
    )?;
    instance.func_wrap(
        "names",
        |mut cx: Context<'_>, (root, path, after, most): (String, String, String, u32)| {
            let guest = cx.data_mut();
            let names = guest.below(&root, &path, |root| root.list(&path, &after, most));
            Ok((names,)) as Outcome<Vec<String>>
        },
    )
}

impl Guest {
    /// Does something below a folder that was granted.
    fn below<T>(
        &mut self,
        name: &str,
        path: &str,
        work: impl FnOnce(&mut Root) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let outcome = self.root(name).and_then(work);
        if matches!(outcome, Err(Refusal::Denied)) {
            self.refuse("files", &format!("{name}: {path}"));
        }
        outcome
    }

    fn root(&mut self, name: &str) -> Result<&mut Root, Refusal> {
        let Some(grant) = self.image.manifest().grant.files.get(name) else {
            return Err(Refusal::Denied);
        };
        if !self.roots.contains_key(name) {
            self.roots.insert(name.to_owned(), Root::open(grant)?);
        }
        self.roots.get_mut(name).ok_or(Refusal::Failed)
    }
}
