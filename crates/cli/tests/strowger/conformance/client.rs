//! A frame client with any number of concurrent calls on one thread.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use bytes::BytesMut;
use serde_json::Value;
use strowger::ContentType;
use strowger_gateway::frame::{Frame, FrameDecoder, FrameKind};

/// Not part of any claim: it only makes a hanging case end.
const HANG_GUARD: Duration = Duration::from_secs(60);
/// The longest payload that the client reads or writes.
const MAX_FRAME: usize = 16 << 20;
/// The default deadline of a call, in milliseconds.
const DEADLINE_MS: u32 = 50_000;

pub(super) const ECHO: &str = "conformance/echo";
pub(super) const SMALL: &str = "conformance/small";

/// The error that ended a call.
#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) retryable: bool,
    pub(super) details: Box<Value>,
}

/// The next event of a stream call.
#[derive(Debug, PartialEq)]
pub(super) enum StreamEvent {
    Item(Value),
    End,
    Failed(Refusal),
}

/// A connection to a node.
pub(super) struct FrameClient {
    stream: UnixStream,
    decoder: FrameDecoder,
    names: BTreeMap<String, u32>,
    last: u32,
    /// Frames of calls that have arrived and are not read yet.
    arrived: BTreeMap<u32, VecDeque<Frame>>,
}

impl FrameClient {
    pub(super) fn open(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("the node listens");
        let limited = stream.set_read_timeout(Some(HANG_GUARD));
        limited.expect("a minute is a time");
        let mut line = Self {
            stream,
            decoder: FrameDecoder::new(MAX_FRAME),
            names: BTreeMap::new(),
            last: 0,
            arrived: BTreeMap::new(),
        };
        assert_eq!(line.read().kind, FrameKind::Hello);
        line
    }

    /// Asks `conformance/echo`; [`Line::answer`] waits for the answer.
    pub(super) fn ask(&mut self, message: &str, payload: &Value) -> u32 {
        let frame = Frame::new(FrameKind::Call, 0).with_json(payload);
        self.call(ECHO, message, frame)
    }

    /// Asks, and waits for the answer.
    pub(super) fn asked(&mut self, message: &str, payload: &Value) -> Result<Value, Refusal> {
        let id = self.ask(message, payload);
        self.answer(id)
    }

    /// Asks for a number, and waits for it.
    pub(super) fn number(&mut self, message: &str, payload: &Value) -> f64 {
        let answer = self.asked(message, payload).expect("an answer");
        answer.as_f64().expect("a number")
    }

    pub(super) fn tell(&mut self, message: &str, payload: &Value) -> u32 {
        let frame = Frame::new(FrameKind::Tell, 0).with_json(payload);
        self.call(ECHO, message, frame)
    }

    /// Reads numbers from `conformance/echo`, with this credit at first.
    pub(super) fn numbers(&mut self, from: u64, to: Option<u64>, credit: u32) -> u32 {
        let payload = serde_json::json!({"from": from, "to": to});
        let mut frame = Frame::new(FrameKind::Call, 0).with_json(&payload);
        frame.credit = credit;
        self.call(ECHO, "numbers", frame)
    }

    /// Sends a call to an actor; returns its identifier.
    pub(super) fn call(&mut self, path: &str, message: &str, mut frame: Frame) -> u32 {
        let name = format!("@({path}) {message}");
        let known = u32::try_from(self.names.len()).expect("few names");
        let target = *self.names.entry(name.clone()).or_insert(known + 1);
        if target > known {
            let mut bound = Frame::new(FrameKind::Name, 0).with_payload(ContentType::Text, name);
            bound.target = target;
            self.write(&bound);
        }
        self.last += 1;
        frame.id = self.last;
        frame.target = target;
        if frame.deadline == 0 && frame.credit == 0 {
            frame.deadline = DEADLINE_MS;
        }
        self.write(&frame);
        self.last
    }

    pub(super) fn cancel(&mut self, id: u32) {
        self.write(&Frame::new(FrameKind::Cancel, id));
    }

    pub(super) fn grant(&mut self, id: u32, credit: u32) {
        let mut frame = Frame::new(FrameKind::Credit, id);
        frame.credit = credit;
        self.write(&frame);
    }

    /// Waits for the next frame of a call.
    pub(super) fn frame(&mut self, id: u32) -> Frame {
        loop {
            let kept = self.arrived.get_mut(&id).and_then(VecDeque::pop_front);
            if let Some(frame) = kept {
                return frame;
            }
            let frame = self.read();
            self.arrived.entry(frame.id).or_default().push_back(frame);
        }
    }

    /// Returns `true` if an unread frame of this call has arrived; reads nothing.
    pub(super) fn has_arrived(&self, id: u32) -> bool {
        self.arrived
            .get(&id)
            .is_some_and(|frames| !frames.is_empty())
    }

    /// Waits for the next event of a stream call.
    pub(super) fn next(&mut self, id: u32) -> StreamEvent {
        let frame = self.frame(id);
        match frame.kind {
            FrameKind::Item => StreamEvent::Item(frame.into_payload().decode().expect("JSON")),
            FrameKind::Done => {
                assert_eq!(frame.content, ContentType::None, "an answer behind items");
                StreamEvent::End
            }
            FrameKind::Error => StreamEvent::Failed(refusal(frame)),
            kind => panic!("a node sends no {kind}"),
        }
    }

    /// Waits for an item, and grants one more.
    pub(super) fn item(&mut self, id: u32) -> Value {
        let StreamEvent::Item(item) = self.next(id) else {
            panic!("call {id} has ended")
        };
        self.grant(id, 1);
        item
    }

    /// Reads to the end, item by item; returns the items, and the error if there is one.
    pub(super) fn rest(&mut self, id: u32) -> (Vec<Value>, Option<Refusal>) {
        let mut items = Vec::new();
        loop {
            match self.next(id) {
                StreamEvent::Item(item) => {
                    items.push(item);
                    self.grant(id, 1);
                }
                StreamEvent::End => return (items, None),
                StreamEvent::Failed(refusal) => return (items, Some(refusal)),
            }
        }
    }

    /// Waits for the only answer of a call.
    pub(super) fn answer(&mut self, id: u32) -> Result<Value, Refusal> {
        let frame = self.frame(id);
        match frame.kind {
            FrameKind::Done => Ok(frame.into_payload().decode().expect("JSON")),
            FrameKind::Error => Err(refusal(frame)),
            kind => panic!("{kind} is no answer"),
        }
    }

    /// The error that a call ends with.
    pub(super) fn refused(&mut self, id: u32) -> Refusal {
        self.answer(id).expect_err("an error")
    }

    fn write(&mut self, frame: &Frame) {
        let mut bytes = BytesMut::new();
        let written = frame.encode_into(MAX_FRAME, &mut bytes);
        written.expect("within the limit");
        self.stream.write_all(&bytes).expect("the node reads");
    }

    fn read(&mut self) -> Frame {
        loop {
            if let Some(frame) = self.decoder.next_frame().expect("frames") {
                return frame;
            }
            let mut bytes = [0; 4096];
            let read = self.stream.read(&mut bytes).expect("the node writes");
            assert_ne!(read, 0, "the node closed the connection");
            self.decoder.feed(&bytes[..read]);
        }
    }
}

fn refusal(frame: Frame) -> Refusal {
    let error: Value = frame.into_payload().decode().expect("JSON");
    let text = |key: &str| error[key].as_str().expect("text").to_owned();
    Refusal {
        code: text("code"),
        message: text("message"),
        retryable: error["retryable"].as_bool().expect("a truth"),
        details: Box::new(error["details"].clone()),
    }
}
