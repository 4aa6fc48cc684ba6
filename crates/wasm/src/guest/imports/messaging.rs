//! The `messaging` and `rpc` interfaces.

use std::sync::Arc;
use std::time::Duration;

use strowger::{Ask, AskError, SendError};
use wasmtime::component::LinkerInstance;
use wasmtime::{AsContextMut, StoreContextMut};

use crate::contract::{Payload, Refusal};
use crate::guest::StoreData;
use crate::guest::handles::HandleTarget;
use crate::manifest::Grant;
use crate::message::{Call, Event, Message, TimerDue};

type Outcome<T> = wasmtime::Result<(Result<T, Refusal>,)>;
type Context<'a> = StoreContextMut<'a, StoreData>;

/// Stands for the target in log lines if only a handle is known.
pub(super) const WRONG_HANDLE_KIND: &str = "the handle is of another kind";

pub(super) fn link(instance: &mut LinkerInstance<'_, StoreData>) -> wasmtime::Result<()> {
    instance.func_wrap("resolve", |mut cx: Context<'_>, (name,): (String,)| {
        Ok((cx.data_mut().resolve(&name),)) as Outcome<u64>
    })?;
    instance.func_wrap("release", |mut cx: Context<'_>, (handle,): (u64,)| {
        Ok((cx.data_mut().handles.release(handle),)) as Outcome<()>
    })?;
    instance.func_wrap(
        "send",
        |mut cx: Context<'_>, (target, payload): (u64, Payload)| {
            Ok((cx.data_mut().send(target, payload),)) as Outcome<()>
        },
    )?;
    instance.func_wrap(
        "ask",
        |mut cx: Context<'_>, (target, payload): (u64, Payload)| {
            Ok((cx.data_mut().ask(target, payload),)) as Outcome<u64>
        },
    )?;
    instance.func_wrap("topic", |mut cx: Context<'_>, (name,): (String,)| {
        Ok((cx.data_mut().topic(&name),)) as Outcome<u64>
    })?;
    instance.func_wrap(
        "publish",
        |mut cx: Context<'_>, (topic, payload): (u64, Payload)| {
            Ok((cx.data_mut().publish(topic, payload),)) as Outcome<u32>
        },
    )?;
    instance.func_wrap("subscribe", |mut cx: Context<'_>, (pattern,): (String,)| {
        Ok((cx.data_mut().subscribe(&pattern),)) as Outcome<u64>
    })?;
    instance.func_wrap(
        "after",
        |mut cx: Context<'_>, (milliseconds, payload): (u64, Payload)| {
            Ok((cx.data_mut().after(milliseconds, payload),)) as Outcome<u64>
        },
    )
}

pub(super) fn link_rpc(instance: &mut LinkerInstance<'_, StoreData>) -> wasmtime::Result<()> {
    instance.func_wrap_async(
        "request",
        |mut cx: Context<'_>, (target, payload): (u64, Payload)| {
            Box::new(async move {
                let outcome = request(&mut cx, target, payload).await;
                Ok((outcome,)) as Outcome<Payload>
            })
        },
    )
}

/// Sends a request and waits for the answer. The wait does not count as processor time.
async fn request(cx: &mut Context<'_>, target: u64, payload: Payload) -> Result<Payload, Refusal> {
    let guest = cx.data_mut();
    guest.take_send_token()?;
    let HandleTarget::Actor {
        entry,
        request: true,
        ..
    } = guest.handles.get(target)?
    else {
        guest.log_denied("request", WRONG_HANDLE_KIND);
        return Err(Refusal::Denied);
    };
    let within = guest.image.manifest().limits.answer;
    let waiting = (entry.request)(Call(payload), within);
    guest.pause();
    let outcome = waiting.await;
    cx.data_mut().resume();
    cx.as_context_mut().set_epoch_deadline(1);
    match outcome {
        Ok(Ok(payload)) => Ok(payload),
        Ok(Err(_)) => Err(Refusal::Failed),
        Err(error) => Err(refusal(&error)),
    }
}

fn refusal(error: &AskError) -> Refusal {
    match error {
        AskError::Closed => Refusal::Closed,
        AskError::Full | AskError::Draining => Refusal::Full,
        AskError::TimedOut => Refusal::Late,
        AskError::Ring { .. } => Refusal::Ring,
        _ => Refusal::Failed,
    }
}

fn refused<T>(error: &SendError<T>) -> Refusal {
    match error {
        SendError::Closed(_) => Refusal::Closed,
        _ => Refusal::Full,
    }
}

impl StoreData {
    fn resolve(&mut self, name: &str) -> Result<u64, Refusal> {
        let grant = &self.image.manifest().grant;
        let send = Grant::covers(&grant.send, name);
        let request = Grant::covers(&grant.request, name);
        let stream = Grant::covers(&grant.stream, name);
        if !send && !request && !stream {
            self.log_denied("send", name);
            return Err(Refusal::Denied);
        }
        let entry = self.env.directory.find(name).ok_or(Refusal::Unknown)?;
        self.handles.insert(HandleTarget::Actor {
            entry,
            send,
            request,
            stream,
        })
    }

    fn send(&mut self, target: u64, payload: Payload) -> Result<(), Refusal> {
        self.take_send_token()?;
        match self.handles.get(target)? {
            HandleTarget::Actor {
                entry, send: true, ..
            } => entry
                .tell
                .try_tell(Message(payload))
                .map_err(|error| refused(&error)),
            _ => {
                self.log_denied("send", WRONG_HANDLE_KIND);
                Err(Refusal::Denied)
            }
        }
    }

    fn ask(&mut self, target: u64, payload: Payload) -> Result<u64, Refusal> {
        self.take_send_token()?;
        let ask = match self.handles.get(target)? {
            HandleTarget::Actor {
                entry, send: true, ..
            } => entry.ask.clone(),
            _ => {
                self.log_denied("send", WRONG_HANDLE_KIND);
                return Err(Refusal::Denied);
            }
        };
        let token = self.begin_in_flight()?;
        let reply = self.env.lane.reply(token);
        let within = self.image.manifest().limits.answer;
        let call = Ask {
            request: Call(payload),
            reply,
        };
        match ask.try_tell_within(call, within) {
            Ok(()) => {
                let late = TimerDue {
                    token,
                    payload: None,
                };
                self.timers.push((within, late));
                Ok(token)
            }
            Err(error) => {
                // The lane reports once more that there is no answer; nothing waits for that
                // report.
                self.finish_in_flight(token);
                Err(refused(&error))
            }
        }
    }

    fn topic(&mut self, name: &str) -> Result<u64, Refusal> {
        if !Grant::covers(&self.image.manifest().grant.publish, name) {
            self.log_denied("publish", name);
            return Err(Refusal::Denied);
        }
        let topic = self.env.system.topic(name).map_err(|_| Refusal::Unknown)?;
        self.handles.insert(HandleTarget::Topic(topic))
    }

    fn publish(&mut self, topic: u64, payload: Payload) -> Result<u32, Refusal> {
        self.take_send_token()?;
        let HandleTarget::Topic(topic) = self.handles.get(topic)? else {
            self.log_denied("publish", WRONG_HANDLE_KIND);
            return Err(Refusal::Denied);
        };
        let published = topic.publish(Event {
            topic: Arc::from(topic.name()),
            payload,
        });
        Ok(u32::try_from(published.delivered).unwrap_or(u32::MAX))
    }

    fn subscribe(&mut self, pattern: &str) -> Result<u64, Refusal> {
        if !Grant::covers(&self.image.manifest().grant.subscribe, pattern) {
            self.log_denied("subscribe", pattern);
            return Err(Refusal::Denied);
        }
        if self.subscriptions.len() >= self.image.manifest().limits.handles {
            return Err(Refusal::Limit);
        }
        let mut inherited = self.inherited.iter();
        if let Some(at) = inherited.position(|(_, one)| one.pattern() == pattern) {
            let (token, subscription) = self.inherited.swap_remove(at);
            self.subscriptions.push((token, subscription));
            return Ok(token);
        }
        let token = self.new_token();
        let subscribed = self.env.subscribe(pattern, token);
        let subscription = subscribed.map_err(|_| Refusal::Unknown)?;
        self.subscriptions.push((token, subscription));
        Ok(token)
    }

    fn after(&mut self, milliseconds: u64, payload: Payload) -> Result<u64, Refusal> {
        if !self.image.manifest().grant.timer {
            self.log_denied("timer", "after");
            return Err(Refusal::Denied);
        }
        let token = self.begin_in_flight()?;
        let due = TimerDue {
            token,
            payload: Some(payload),
        };
        self.timers.push((Duration::from_millis(milliseconds), due));
        Ok(token)
    }
}
