//! The `streams` interface, with credit.

use wasmtime::StoreContextMut;
use wasmtime::component::LinkerInstance;

use super::messaging::WRONG_HANDLE_KIND;
use crate::contract::{Payload, Refusal};
use crate::guest::StoreData;
use crate::guest::handles::HandleTarget;
use crate::message::OpenStream;

type Outcome<T> = wasmtime::Result<(Result<T, Refusal>,)>;
type Context<'a> = StoreContextMut<'a, StoreData>;

pub(super) fn link(instance: &mut LinkerInstance<'_, StoreData>) -> wasmtime::Result<()> {
    instance.func_wrap(
        "open",
        |mut cx: Context<'_>, (target, payload): (u64, Payload)| {
            Ok((cx.data_mut().open(target, payload),)) as Outcome<u64>
        },
    )?;
    instance.func_wrap("close", |mut cx: Context<'_>, (token,): (u64,)| {
        Ok((cx.data_mut().streams.close(token),)) as Outcome<()>
    })?;
    instance.func_wrap(
        "send",
        |mut cx: Context<'_>, (token, payload): (u64, Payload)| {
            let guest = cx.data_mut();
            let sent = guest.take_send_token();
            let sent = sent.and_then(|()| guest.streams.send(token, payload));
            Ok((sent,)) as Outcome<()>
        },
    )?;
    instance.func_wrap("finish", |mut cx: Context<'_>, (token,): (u64,)| {
        Ok((cx.data_mut().streams.finish(token),)) as Outcome<()>
    })
}

impl StoreData {
    /// Requests a stream from an actor.
    fn open(&mut self, target: u64, payload: Payload) -> Result<u64, Refusal> {
        self.take_send_token()?;
        let open = match self.handles.get(target)? {
            HandleTarget::Actor {
                entry,
                stream: true,
                ..
            } => entry.open_stream.clone(),
            _ => {
                self.log_denied("stream", WRONG_HANDLE_KIND);
                return Err(Refusal::Denied);
            }
        };
        // The actor serves no streams.
        let open = open.ok_or(Refusal::Unknown)?;
        let limits = &self.image.manifest().limits;
        let (within, window) = (limits.answer, limits.window);
        if self.streams.len() >= limits.streams {
            return Err(Refusal::Limit);
        }
        let token = self.new_token();
        let asked = open(OpenStream(payload), within);
        let opening = Box::pin(async move {
            match asked.await {
                Ok(Ok(reader)) => Ok(reader.with_window(window)),
                Ok(Err(error)) => Err(error.to_string()),
                Err(error) => Err(error.to_string()),
            }
        });
        self.streams.open(token, opening);
        Ok(token)
    }
}
