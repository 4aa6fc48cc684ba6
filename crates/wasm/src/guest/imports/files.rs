//! The `files` interface: files below granted directories.

use tokio::time::Instant;
use wasmtime::StoreContextMut;
use wasmtime::component::LinkerInstance;

use crate::contract::{Payload, Refusal};
use crate::fault::LimitExceeded;
use crate::files::GrantedDir;
use crate::guest::StoreData;

type Outcome<T> = wasmtime::Result<(Result<T, Refusal>,)>;
type Context<'a> = StoreContextMut<'a, StoreData>;

pub(super) fn link(instance: &mut LinkerInstance<'_, StoreData>) -> wasmtime::Result<()> {
    instance.func_wrap(
        "read",
        |mut cx: Context<'_>, (root, path, at, count): (String, String, u64, u32)| {
            let guest = cx.data_mut();
            // The host would have to hold these bytes, so they count against the payload limit.
            if count as usize > guest.image.manifest().limits.payload {
                return Err(wasmtime::Error::new(LimitExceeded("payload")));
            }
            let count = count as usize;
            let read = guest.in_granted_dir(&root, &path, |root| root.read(&path, at, count));
            Ok((read,)) as Outcome<Vec<u8>>
        },
    )?;
    instance.func_wrap(
        "size",
        |mut cx: Context<'_>, (root, path): (String, String)| {
            let size = cx
                .data_mut()
                .in_granted_dir(&root, &path, |root| root.size(&path));
            Ok((size,)) as Outcome<u64>
        },
    )?;
    instance.func_wrap(
        "write",
        |mut cx: Context<'_>, (root, path, at, bytes): (String, String, u64, Payload)| {
            let guest = cx.data_mut();
            let written = guest.in_granted_dir(&root, &path, |root| root.write(&path, at, &bytes));
            Ok((written,)) as Outcome<()>
        },
    )?;
    instance.func_wrap(
        "resize",
        |mut cx: Context<'_>, (root, path, size): (String, String, u64)| {
            let guest = cx.data_mut();
            let resized = guest.in_granted_dir(&root, &path, |root| root.resize(&path, size));
            Ok((resized,)) as Outcome<()>
        },
    )?;
    instance.func_wrap(
        "remove",
        |mut cx: Context<'_>, (root, path): (String, String)| {
            let removed = cx
                .data_mut()
                .in_granted_dir(&root, &path, |root| root.remove(&path));
            Ok((removed,)) as Outcome<()>
        },
    )?;
    instance.func_wrap(
        "names",
        |mut cx: Context<'_>, (root, path, after, most): (String, String, String, u32)| {
            let guest = cx.data_mut();
            let names = guest.in_granted_dir(&root, &path, |root| root.list(&path, &after, most));
            Ok((names,)) as Outcome<Vec<String>>
        },
    )
}

impl StoreData {
    /// Performs an operation below a granted directory.
    fn in_granted_dir<T>(
        &mut self,
        name: &str,
        path: &str,
        work: impl FnOnce(&mut GrantedDir) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let outcome = self.granted_dir(name).and_then(work);
        if matches!(outcome, Err(Refusal::Denied)) {
            self.log_denied("files", &format!("{name}: {path}"));
        }
        outcome
    }

    fn granted_dir(&mut self, name: &str) -> Result<&mut GrantedDir, Refusal> {
        let Some(grant) = self.image.manifest().grant.files.get(name) else {
            return Err(Refusal::Denied);
        };
        if !self.granted_dirs.contains_key(name) {
            let opened = GrantedDir::open(grant).map_err(|error| {
                if let Some(omitted) = self.usage.log_limits().faults.take(Instant::now()) {
                    let (component, path) = (&self.env.path, grant.path.display());
                    tracing::warn!(
                        %component, %path, %error, omitted,
                        "cannot open a granted directory"
                    );
                }
                Refusal::Failed
            });
            self.granted_dirs.insert(name.to_owned(), opened?);
        }
        self.granted_dirs.get_mut(name).ok_or(Refusal::Failed)
    }
}
