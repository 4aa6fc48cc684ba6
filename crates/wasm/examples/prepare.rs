//! Prepares a guest at build time: `prepare CORE WIT WORLD OUT`.
//!
//! Runs the function `prepare` of a core module, replaces the module's initial memory with the
//! resulting one, and adds the world, so that `strowger component build` can wrap it. An instance
//! then needs no initialization, and shares its pages until they are written.

use std::error::Error;
use std::fs;

use wasmtime::{Caller, Engine, Extern, Linker, Module, Store};
use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Size of the stack in bytes, at the start of memory; it is empty after `prepare`.
const STACK: usize = 1 << 20;
const PAGE: usize = 64 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().collect();
    let [_, core, wit, world, out] = &*arguments else {
        return Err("prepare CORE WIT WORLD OUT".into());
    };
    let core = fs::read(core)?;
    let mut memory = memory_after(&core)?;
    memory[..STACK].fill(0);
    let mut module = with_memory(&core, &memory)?;
    let mut resolve = Resolve::default();
    let package = resolve.push_str(wit, &fs::read_to_string(wit)?)?;
    let world = resolve.select_world(&[package], Some(world))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    fs::write(out, module)?;
    Ok(())
}

/// Returns the memory of a module after its `prepare`, which may call only the import `fault.fail`.
fn memory_after(core: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let engine = Engine::default();
    let module = Module::new(&engine, core)?;
    let mut store = Store::new(&engine, ());
    let mut linker = Linker::new(&engine);
    linker.func_wrap("strowger:component/fault@0.1.0", "fail", fail)?;
    linker.define_unknown_imports_as_traps(&module)?;
    let instance = linker.instantiate(&mut store, &module)?;
    let prepare = instance.get_typed_func::<(), ()>(&mut store, "prepare")?;
    prepare.call(&mut store, ())?;
    let memory = instance.get_memory(&mut store, "memory");
    let memory = memory.ok_or("the module exports no memory")?;
    Ok(memory.data(&store).to_vec())
}

/// Implements `fault.fail`: the text is a pointer and a length, as in the canonical ABI.
fn fail(mut caller: Caller<'_, ()>, text: u32, length: u32) -> wasmtime::Result<()> {
    let memory = caller.get_export("memory").and_then(Extern::into_memory);
    let bytes = memory.and_then(|memory| {
        let all = memory.data(&caller);
        let from = usize::try_from(text).ok()?;
        all.get(from..from.checked_add(usize::try_from(length).ok()?)?)
    });
    let text = String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    Err(wasmtime::Error::msg(text))
}

/// Returns the module with these bytes as its initial memory.
fn with_memory(core: &[u8], memory: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    const MEMORY: u8 = 5;
    const DATA: u8 = 11;
    const DATA_COUNT: u8 = 12;
    let mut out = core.get(..8).ok_or("no module")?.to_vec();
    let mut rest = &core[8..];
    while let Some((&id, after)) = rest.split_first() {
        let (size, after) = number(after)?;
        let (section, after) = after.split_at_checked(size).ok_or("a section is cut off")?;
        rest = after;
        match id {
            MEMORY => {
                // One memory, without a maximum.
                let mut limits = vec![1, 0];
                push(&mut limits, memory.len() / PAGE);
                put(&mut out, MEMORY, &limits);
            }
            // Names, and the initial data that is replaced.
            0 | DATA | DATA_COUNT => {}
            id => put(&mut out, id, section),
        }
    }
    let segments = segments(memory);
    let mut data = Vec::new();
    push(&mut data, segments.len());
    for (at, bytes) in segments {
        data.extend([0, 0x41]);
        push_signed(&mut data, i64::try_from(at)?);
        data.push(0x0b);
        push(&mut data, bytes.len());
        data.extend(bytes);
    }
    put(&mut out, DATA, &data);
    Ok(out)
}

/// Returns the parts of a memory that are not zero, with their addresses.
fn segments(memory: &[u8]) -> Vec<(usize, &[u8])> {
    /// Number of zeros that take less space than another segment.
    const GAP: usize = 32;
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for (at, _) in memory.iter().enumerate().filter(|(_, byte)| **byte != 0) {
        match parts.last_mut() {
            Some((_, end)) if at - *end < GAP => *end = at + 1,
            _ => parts.push((at, at + 1)),
        }
    }
    let parts = parts.into_iter();
    parts.map(|(from, to)| (from, &memory[from..to])).collect()
}

fn put(out: &mut Vec<u8>, id: u8, section: &[u8]) {
    out.push(id);
    push(out, section.len());
    out.extend(section);
}

fn number(bytes: &[u8]) -> Result<(usize, &[u8]), Box<dyn Error>> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((value, &bytes[at + 1..]));
        }
    }
    Err("a number is cut off".into())
}

fn push(out: &mut Vec<u8>, mut value: usize) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        out.push(low | u8::from(value != 0) << 7);
        if value == 0 {
            return;
        }
    }
}

fn push_signed(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        let over = (value == 0 && low & 0x40 == 0) || (value == -1 && low & 0x40 != 0);
        out.push(low | u8::from(!over) << 7);
        if over {
            return;
        }
    }
}
