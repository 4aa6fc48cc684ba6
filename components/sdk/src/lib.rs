//! Actors as WebAssembly components.
//!
//! A component is a type that implements [`Actor`], passed once to [`export!`]. It may import
//! [`messaging`], [`rpc`], [`streams`], [`kv`], [`files`], [`log`], [`clock`], [`random`] and
//! [`config`]: it imports the modules whose functions it calls, and its manifest has to grant
//! them. [`fault`] needs no grant.
//!
//! ```no_run
//! use strowger_component::{Actor, Message, Start, export};
//!
//! struct Echo;
//!
//! impl Actor for Echo {
//!     fn init(_: Start) -> Result<Self, String> {
//!         Ok(Self)
//!     }
//!
//!     fn handle(&mut self, message: Message) -> Result<Vec<u8>, String> {
//!         Ok(message.payload)
//!     }
//! }
//!
//! export!(Echo);
//! # fn main() {}
//! ```

#[doc(hidden)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit/component.wit",
        world: "complete",
        pub_export_macro: true,
        default_bindings_module: "strowger_component::bindings",
    });
}

pub use bindings::exports::strowger::component::actor::{Kind, Reason};
pub use bindings::strowger::component::{
    clock, config, fault, files, kv, log, messaging, random, refusal, rpc, streams,
};

/// The circumstances in which an incarnation starts.
#[derive(Debug)]
pub struct Start {
    /// The reason for the start.
    pub reason: Reason,
    /// Number of earlier incarnations.
    pub attempt: u32,
    /// The [`Actor::VERSION`] and [`Actor::snapshot`] of an earlier incarnation, if there is one.
    pub state: Option<(u32, Vec<u8>)>,
}

/// A message for an actor.
#[derive(Debug)]
pub struct Message {
    /// The kind of message.
    pub kind: Kind,
    /// The token of the answer, event or timer; 0 for other messages.
    pub token: u64,
    /// The payload in bytes.
    pub payload: Vec<u8>,
}

/// An actor implemented as a component. A panic is a fault with the panic's message: the next
/// incarnation starts with [`Actor::init`].
pub trait Actor: Sized + 'static {
    /// The version of the format of [`Actor::snapshot`].
    const VERSION: u32 = 1;

    /// Starts an incarnation. An error is a fault.
    fn init(start: Start) -> Result<Self, String>;

    /// Handles one message; returns the bytes of the answer, or the reason for a refusal.
    fn handle(&mut self, message: Message) -> Result<Vec<u8>, String>;

    /// Handles messages that need no answer, several at a time; called if the manifest has
    /// `run.batch`.
    fn batch(&mut self, messages: Vec<Message>) -> Result<(), String> {
        messages.into_iter().try_for_each(|message| self.handle(message).map(drop))
    }

    /// Called when the actor is stopped in order.
    fn stop(self) {}

    /// Returns an error with the reason if the actor cannot do its work.
    fn health(&self) -> Result<(), String> {
        Ok(())
    }

    /// Returns the state to hand to the next incarnation or version.
    fn snapshot(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// Makes a panic end the incarnation as a fault with the message and location of the panic.
#[doc(hidden)]
pub fn say_why() {
    std::panic::set_hook(Box::new(|panic| {
        let said = panic.payload_as_str().unwrap_or("panicked");
        match panic.location() {
            Some(at) => fault::fail(&format!("{said} at {}:{}", at.file(), at.line())),
            None => fault::fail(said),
        }
    }));
}

/// Exports a type that implements [`Actor`] as the actor of this component.
#[macro_export]
macro_rules! export {
    ($actor:ty) => {
        struct Exports;

        ::std::thread_local! {
            static ACTOR: ::std::cell::RefCell<::std::option::Option<$actor>> =
                const { ::std::cell::RefCell::new(None) };
        }

        impl $crate::bindings::exports::strowger::component::actor::Guest for Exports {
            fn init(
                reason: $crate::Reason,
                attempt: u32,
                version: u32,
                state: ::std::option::Option<::std::vec::Vec<u8>>,
            ) -> ::std::result::Result<(), ::std::string::String> {
                $crate::say_why();
                let state = state.map(|state| (version, state));
                let start = $crate::Start { reason, attempt, state };
                let actor = <$actor as $crate::Actor>::init(start)?;
                ACTOR.with(|place| *place.borrow_mut() = Some(actor));
                Ok(())
            }

            fn handle(
                kind: $crate::Kind,
                token: u64,
                payload: ::std::vec::Vec<u8>,
            ) -> ::std::result::Result<::std::vec::Vec<u8>, ::std::string::String> {
                let message = $crate::Message { kind, token, payload };
                ACTOR.with(|place| {
                    let mut place = place.borrow_mut();
                    let actor = place.as_mut().expect("the host calls init first");
                    $crate::Actor::handle(actor, message)
                })
            }

            fn stop() {
                if let Some(actor) = ACTOR.with(|place| place.borrow_mut().take()) {
                    $crate::Actor::stop(actor);
                }
            }

            fn health() -> ::std::result::Result<(), ::std::string::String> {
                ACTOR.with(|place| match &*place.borrow() {
                    Some(actor) => $crate::Actor::health(actor),
                    None => Err("not started".into()),
                })
            }
        }

        impl $crate::bindings::exports::strowger::component::stateful::Guest for Exports {
            fn snapshot() -> ::std::vec::Vec<u8> {
                ACTOR.with(|place| match &*place.borrow() {
                    Some(actor) => $crate::Actor::snapshot(actor),
                    None => ::std::vec::Vec::new(),
                })
            }

            fn version() -> u32 {
                <$actor as $crate::Actor>::VERSION
            }
        }

        impl $crate::bindings::exports::strowger::component::batch::Guest for Exports {
            fn handle(
                messages: ::std::vec::Vec<
                    $crate::bindings::exports::strowger::component::batch::Envelope,
                >,
            ) -> ::std::result::Result<(), ::std::string::String> {
                let messages = messages.into_iter().map(|one| $crate::Message {
                    kind: one.kind,
                    token: one.token,
                    payload: one.payload,
                });
                ACTOR.with(|place| {
                    let mut place = place.borrow_mut();
                    let actor = place.as_mut().expect("the host calls init first");
                    $crate::Actor::batch(actor, messages.collect())
                })
            }
        }

        $crate::bindings::export!(Exports with_types_in $crate::bindings);
    };
}
