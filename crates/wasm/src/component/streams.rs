//! Streams of a component: those that it reads, and those that other actors read from it.
//!
//! At most one item of a stream is on its way to the component that reads it; the others wait at
//! the source, up to the window. A slow component therefore slows down its source.

use std::future::Future;
use std::pin::Pin;

use strowger::{Ask, Completion, Context, ReadError, Reader, SourceSpec};

use super::ComponentActor;
use crate::contract::{MessageKind, Payload};
use crate::fault::{Fault, printable};
use crate::message::{CallError, OpenStream};

/// A future of the reader of a requested stream, or of the reason why there is none.
pub(crate) type OpeningStream =
    Pin<Box<dyn Future<Output = Result<Reader<Payload>, String>> + Send>>;

/// The next item of a stream that the component reads.
pub(crate) struct StreamItem {
    token: u64,
    /// An item and the rest of the stream, `None` at the end, or the reason why reading failed.
    next: Result<Option<(Payload, Reader<Payload>)>, String>,
}

async fn next_item(
    mut reader: Reader<Payload>,
) -> Result<Option<(Payload, Reader<Payload>)>, String> {
    loop {
        match reader.recv().await {
            None => return Ok(None),
            Some(Ok(item)) => return Ok(Some((item, reader))),
            // The sender chose to continue without this reader's credit.
            Some(Err(ReadError::Missed { .. })) => {}
            Some(Err(error)) => return Err(error.to_string()),
        }
    }
}

impl ComponentActor {
    /// Starts to read the streams that the last call opened, cancels those that it closed, and
    /// subscribes to free space where a stream was full.
    pub(super) fn update_streams(&mut self, cx: &mut Context<Self>) {
        let streams = &mut self.incarnation.guest_mut().streams;
        for pipe in streams.take_closed() {
            cx.cancel_pipe(pipe);
        }
        for (token, opening) in streams.take_opening() {
            let reading = async move { next_item(opening.await?).await };
            if let Ok(pipe) = cx.pipe(reading, move |next| StreamItem { token, next }) {
                streams.set_pipe(token, pipe);
            }
        }
        streams.request_ready(|token| cx.lane::<()>().reply(token));
    }

    /// Handles an item, and then requests the next one.
    pub(super) async fn handle_item(
        &mut self,
        item: StreamItem,
        cx: &mut Context<Self>,
    ) -> Result<(), Fault> {
        let token = item.token;
        if !self.incarnation.guest().streams.is_reading(token) {
            return Ok(());
        }
        let failure = match item.next {
            Ok(Some((payload, reader))) => {
                self.deliver(MessageKind::Event, token, payload, cx).await?;
                let streams = &mut self.incarnation.guest_mut().streams;
                if streams.is_reading(token)
                    && let Ok(pipe) =
                        cx.pipe(next_item(reader), move |next| StreamItem { token, next })
                {
                    streams.set_pipe(token, pipe);
                }
                return Ok(());
            }
            Ok(None) => None,
            Err(why) => Some(why),
        };
        self.incarnation.guest_mut().streams.end(token);
        match failure {
            None => {
                self.deliver(MessageKind::Answer, token, Payload::from([]), cx)
                    .await
            }
            Some(why) => {
                let why = Payload::from(why.into_bytes());
                self.deliver(MessageKind::Failure, token, why, cx).await
            }
        }
    }

    /// Handles a request of another actor to read a stream from the component.
    pub(super) async fn handle_open(
        &mut self,
        ask: Ask<OpenStream>,
        cx: &mut Context<Self>,
    ) -> Result<(), Fault> {
        self.at_risk.lost = 1;
        let Ask { request, reply } = ask;
        let refuse = |why: &str| Err(CallError::Refused(why.to_owned()));
        let image = self.incarnation.image();
        let limits = &image.manifest().limits;
        if !image.manifest().grant.serve || !image.streams() {
            reply.send(refuse("the component serves no streams"));
            self.at_risk.clear();
            return Ok(());
        }
        let spec = SourceSpec::DEFAULT.window(limits.window).readers(1);
        let mut source = cx.source(spec.max_window(limits.window));
        let most = limits.streams;
        let guest = self.incarnation.guest_mut();
        let token = guest.new_token();
        let reader = match source.reader() {
            Ok(reader) if guest.streams.len() < most => reader,
            _ => {
                reply.send(refuse("the component has reached its limit of streams"));
                self.at_risk.clear();
                return Ok(());
            }
        };
        guest.streams.serve(token, source);
        match self
            .incarnation
            .handle(MessageKind::Request, token, request.0)
            .await
        {
            Ok(Ok(_)) => {
                reply.send(Ok(reader));
                let gone = cx.lane::<()>().reply(token);
                self.incarnation
                    .guest_mut()
                    .streams
                    .notify_when_unread(token, gone);
                self.record_and_save(1, None).await
            }
            Ok(Err(text)) => {
                self.incarnation.guest_mut().streams.end(token);
                reply.send(Err(CallError::Refused(printable(&text))));
                self.record_and_save(1, Some(text)).await
            }
            Err(fault) => {
                reply.send(Err(CallError::Fault(fault.clone())));
                Err(fault)
            }
        }
    }

    /// Handles the notification that a served stream has space again, or has no reader any more.
    pub(super) async fn handle_flow(
        &mut self,
        notified: Completion<()>,
        cx: &Context<Self>,
    ) -> Result<(), Fault> {
        let token = notified.token;
        // A replaced notification fails, and means nothing.
        let (Ok(()), Some(read)) = (
            notified.result,
            self.incarnation.guest().streams.has_reader(token),
        ) else {
            return Ok(());
        };
        if read {
            return self
                .deliver(MessageKind::Event, token, Payload::from([]), cx)
                .await;
        }
        self.incarnation.guest_mut().streams.end(token);
        let gone = Payload::from(&b"no readers are left"[..]);
        self.deliver(MessageKind::Failure, token, gone, cx).await
    }
}
