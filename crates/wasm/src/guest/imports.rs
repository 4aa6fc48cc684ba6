//! The functions that components may import.

mod basics;
#[cfg(unix)]
mod files;
mod kv;
mod messaging;
mod streams;

use wasmtime::component::Linker;

use super::StoreData;
use crate::contract::interface;

/// Adds every interface of the host to a linker; those that wait only if the component waits.
/// Grants need no check here: they are checked before a component is linked.
pub(crate) fn link(linker: &mut Linker<StoreData>, waits: bool) -> wasmtime::Result<()> {
    messaging::link(&mut linker.instance(&interface("messaging"))?)?;
    if waits {
        messaging::link_rpc(&mut linker.instance(&interface("rpc"))?)?;
    }
    #[cfg(unix)]
    files::link(&mut linker.instance(&interface("files"))?)?;
    streams::link(&mut linker.instance(&interface("streams"))?)?;
    kv::link(&mut linker.instance(&interface("kv"))?)?;
    basics::link_log(&mut linker.instance(&interface("log"))?)?;
    basics::link_clock(&mut linker.instance(&interface("clock"))?)?;
    basics::link_random(&mut linker.instance(&interface("random"))?)?;
    basics::link_config(&mut linker.instance(&interface("config"))?)?;
    basics::link_fault(&mut linker.instance(&interface("fault"))?)?;
    Ok(())
}
