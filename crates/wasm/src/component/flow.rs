//! Streams of a component: items that it reads, and items that others read from it.
//!
//! Of a stream that it reads, one item at a time is on its way to it; the others wait at their
//! source, as far as the window goes. So one that is slow slows its source.

use std::future::Future;
use std::pin::Pin;

use strowger::{Ask, Completion, Context, ReadError, Reader, SourceSpec};

use super::ComponentActor;
use crate::contract::{Kind, Payload};
use crate::fault::{Fault, cut};
use crate::message::{CallError, Open};

/// A stream that was asked for; why there is none.
pub(crate) type Opening = Pin<Box<dyn Future<Output = Result<Reader<Payload>, String>> + Send>>;

/// What comes next of a stream that is read.
pub(crate) struct Item {
    token: u64,
    /// An item with the rest, nothing at the end, or why there is no more.
    next: Result<Option<(Payload, Reader<Payload>)>, String>,
}

async fn next(mut reader: Reader<Payload>) -> Result<Option<(Payload, Reader<Payload>)>, String> {
    loop {
        match reader.recv().await {
            None => return Ok(None),
            Some(Ok(item)) => return Ok(Some((item, reader))),
            // Whoever sends chose to go on without this reader's credit.
            Some(Err(ReadError::Missed { .. })) => {}
            Some(Err(error)) => return Err(error.to_string()),
        }
    }
}

impl ComponentActor {
    /// Begins to read what the last call opened, lets go of what it closed, and asks to be told of
    /// room that it wants.
    pub(super) fn attend_streams(&mut self, cx: &mut Context<Self>) {
        let streams = &mut self.life.guest_mut().streams;
        for pipe in streams.take_closed() {
            cx.cancel_pipe(pipe);
        }
        for (token, opening) in streams.take_opening() {
            let reading = async move { next(opening.await?).await };
            if let Ok(pipe) = cx.pipe(reading, move |next| Item { token, next }) {
                streams.reads_by(token, pipe);
            }
        }
        streams.ask_for_room(|token| cx.lane::<()>().reply(token));
    }

    /// Handles an item, and then lets the next one come.
    pub(super) async fn item(&mut self, item: Item, cx: &mut Context<Self>) -> Result<(), Fault> {
        let token = item.token;
        if !self.life.guest().streams.reads(token) {
            return Ok(());
        }
        let failure = match item.next {
            Ok(Some((payload, reader))) => {
                self.told(Kind::Event, token, payload, cx).await?;
                let streams = &mut self.life.guest_mut().streams;
                if streams.reads(token)
                    && let Ok(pipe) = cx.pipe(next(reader), move |next| Item { token, next })
                {
                    streams.reads_by(token, pipe);
                }
                return Ok(());
            }
            Ok(None) => None,
            Err(why) => Some(why),
        };
        self.life.guest_mut().streams.end(token);
        match failure {
            None => self.told(Kind::Answer, token, Payload::from([]), cx).await,
            Some(why) => {
                let why = Payload::from(why.into_bytes());
                self.told(Kind::Failure, token, why, cx).await
            }
        }
    }

    /// Somebody wants to read from the component.
    pub(super) async fn opened(
        &mut self,
        ask: Ask<Open>,
        cx: &mut Context<Self>,
    ) -> Result<(), Fault> {
        self.stake.lost = 1;
        let Ask { request, reply } = ask;
        let refuse = |why: &str| Err(CallError::Refused(why.to_owned()));
        let image = self.life.image();
        let limits = &image.manifest().limits;
        if !image.manifest().grant.serve || !image.streams() {
            reply.send(refuse("it has no streams"));
            self.stake.clear();
            return Ok(());
        }
        let spec = SourceSpec::DEFAULT.window(limits.window).readers(1);
        let mut source = cx.source(spec.max_window(limits.window));
        let most = limits.streams;
        let guest = self.life.guest_mut();
        let token = guest.token();
        let reader = match source.reader() {
            Ok(reader) if guest.streams.len() < most => reader,
            _ => {
                reply.send(refuse("it has as many streams as it may"));
                self.stake.clear();
                return Ok(());
            }
        };
        guest.streams.serve(token, source);
        match self.life.handle(Kind::Request, token, request.0).await {
            Ok(Ok(_)) => {
                reply.send(Ok(reader));
                let gone = cx.lane::<()>().reply(token);
                self.life.guest_mut().streams.when_unread(token, gone);
                self.handled(1, None).await
            }
            Ok(Err(text)) => {
                self.life.guest_mut().streams.end(token);
                reply.send(Err(CallError::Refused(cut(&text))));
                self.handled(1, Some(text)).await
            }
            Err(fault) => {
                reply.send(Err(CallError::Fault(fault.clone())));
                Err(fault)
            }
        }
    }

    /// A stream that others read has room again, or no reader any more.
    pub(super) async fn flowed(
        &mut self,
        news: Completion<()>,
        cx: &Context<Self>,
    ) -> Result<(), Fault> {
        let token = news.token;
        // A reply that another one took the place of says nothing.
        let (Ok(()), Some(read)) = (news.result, self.life.guest().streams.is_read(token)) else {
            return Ok(());
        };
        if read {
            return self.told(Kind::Event, token, Payload::from([]), cx).await;
        }
        self.life.guest_mut().streams.end(token);
        let gone = Payload::from(&b"nobody reads it any more"[..]);
        self.told(Kind::Failure, token, gone, cx).await
    }
}
