//! The `files` interface: files below granted directories.

use std::sync::Arc;

use tokio::time::Instant;
use wasmtime::StoreContextMut;
use wasmtime::component::LinkerInstance;

use crate::contract::{Payload, Refusal};
use crate::fault::LimitExceeded;
use crate::files::GrantedDir;
use crate::guest::StoreData;
use crate::host_call::HostCall;

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
            let read =
                guest.in_granted_dir(&root, &path, |root, call| root.read(&path, at, count, call));
            Ok((read?,)) as Outcome<Vec<u8>>
        },
    )?;
    instance.func_wrap(
        "size",
        |mut cx: Context<'_>, (root, path): (String, String)| {
            let size = cx
                .data_mut()
                .in_granted_dir(&root, &path, |root, _| root.size(&path));
            Ok((size?,)) as Outcome<u64>
        },
    )?;
    instance.func_wrap(
        "write",
        |mut cx: Context<'_>, (root, path, at, bytes): (String, String, u64, Payload)| {
            let guest = cx.data_mut();
            let written = guest.in_granted_dir(&root, &path, |root, call| {
                root.write(&path, at, &bytes, call)
            });
            Ok((written?,)) as Outcome<()>
        },
    )?;
    instance.func_wrap(
        "resize",
        |mut cx: Context<'_>, (root, path, size): (String, String, u64)| {
            let guest = cx.data_mut();
            let resized =
                guest.in_granted_dir(&root, &path, |root, call| root.resize(&path, size, call));
            Ok((resized?,)) as Outcome<()>
        },
    )?;
    instance.func_wrap(
        "remove",
        |mut cx: Context<'_>, (root, path): (String, String)| {
            let removed = cx
                .data_mut()
                .in_granted_dir(&root, &path, |root, _| root.remove(&path));
            Ok((removed?,)) as Outcome<()>
        },
    )?;
    instance.func_wrap(
        "names",
        |mut cx: Context<'_>, (root, path, after, most): (String, String, String, u32)| {
            let guest = cx.data_mut();
            let names = guest.in_granted_dir(&root, &path, |root, call| {
                root.list(&path, &after, most, call)
            });
            Ok((names?,)) as Outcome<Vec<String>>
        },
    )
}

impl StoreData {
    /// Performs an operation below a granted directory; the outer error ends the call.
    fn in_granted_dir<T>(
        &mut self,
        name: &str,
        path: &str,
        work: impl FnOnce(&GrantedDir, &mut dyn HostCall) -> Result<T, Refusal>,
    ) -> wasmtime::Result<Result<T, Refusal>> {
        let outcome = self.host_work(|guest| {
            let root = guest.granted_dir(name)?;
            work(&root, guest)
        })?;
        if matches!(outcome, Err(Refusal::Denied)) {
            self.log_denied("files", &format!("{name}: {path}"));
        }
        Ok(outcome)
    }

    fn granted_dir(&mut self, name: &str) -> Result<Arc<GrantedDir>, Refusal> {
        if let Some(opened) = self.granted_dirs.get(name) {
            return Ok(Arc::clone(opened));
        }
        let Some(grant) = self.image.manifest().grant.files.get(name) else {
            return Err(Refusal::Denied);
        };
        let opened = GrantedDir::open(grant, self.host.dir_usages()).map_err(|error| {
            if let Some(omitted) = self.usage.log_limits().faults.take(Instant::now()) {
                let (component, path) = (&self.env.path, grant.path.display());
                tracing::warn!(
                    %component, %path, %error, omitted,
                    "cannot open a granted directory"
                );
            }
            Refusal::Failed
        });
        let opened = Arc::new(opened?);
        self.granted_dirs
            .insert(name.to_owned(), Arc::clone(&opened));
        Ok(opened)
    }
}
