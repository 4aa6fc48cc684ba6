//! What the numbers of a client stand for.

use std::collections::HashMap;
use std::sync::Arc;

use strowger::{Address, Code, Content, Entry, Fault};

use crate::frame::Frame;

/// What a number stands for.
pub(super) enum Name {
    Method(Arc<str>),
    Message {
        address: Address,
        kind: Box<str>,
        /// Where it led the last time.
        entry: Option<Entry>,
    },
}

/// The numbers that a client has bound.
pub(super) struct Names {
    by_target: HashMap<u32, Name>,
    most: usize,
}

/// The most octets of an address, a space and a type.
const LONGEST: usize = 1024 + 3 + 1 + KIND;
/// The most octets of a type.
const KIND: usize = 128;

impl Names {
    pub(super) fn new(most: usize) -> Self {
        Self {
            by_target: HashMap::new(),
            most,
        }
    }

    pub(super) fn get(&mut self, target: u32) -> Option<&mut Name> {
        self.by_target.get_mut(&target)
    }

    /// Binds a target. All calls that follow depend on it, so what is wrong here ends it all.
    pub(super) fn bind(&mut self, frame: &Frame) -> Result<(), Fault> {
        let wrong = |text: String| Err(Fault::new(Code::Protocol, text));
        let most = self.most;
        let is_address = frame.payload.starts_with(b"@(");
        let longest = if is_address { LONGEST } else { most };
        if frame.content != Content::Text || frame.payload.len() > longest {
            return wrong(format!("a name is text of at most {longest} octets"));
        }
        let Ok(name) = std::str::from_utf8(&frame.payload) else {
            return wrong(format!("name {} is not UTF-8", frame.target));
        };
        if frame.target == 0 {
            return wrong(format!("{name:?} is bound to target 0, which is nobody"));
        }
        if self.by_target.len() >= most && !self.by_target.contains_key(&frame.target) {
            return wrong(format!("more than {most} names"));
        }
        let name = if is_address {
            message(name).map_err(|why| Fault::new(Code::Protocol, why))?
        } else {
            Name::Method(Arc::from(name))
        };
        self.by_target.insert(frame.target, name);
        Ok(())
    }
}

/// Reads an address, a space and a type.
fn message(name: &str) -> Result<Name, String> {
    let Some((address, kind)) = name.split_once(' ') else {
        let text = format!("{name:?} has no type behind its address and a space");
        return Err(text);
    };
    let address: Address = address.parse().map_err(|fault: Fault| fault.message)?;
    let fit = |one: char| !one.is_control() && !one.is_whitespace();
    if kind.is_empty() || kind.len() > KIND || !kind.chars().all(fit) {
        let text = format!("{kind:?} is no type: 1 to {KIND} octets without spaces");
        return Err(text);
    }
    Ok(Name::Message {
        address,
        kind: kind.into(),
        entry: None,
    })
}
