//! Many asks in flight on one connection, written as frames.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use bytes::BytesMut;
use serde_json::json;
use strowger::ContentType;
use strowger_gateway::frame::{Frame, FrameDecoder, FrameKind};

/// The longest payload.
const LIMIT: usize = 1 << 20;
/// The number that stands for the name of the actor.
const ECHO: u32 = 1;

pub(crate) struct Pipeline {
    stream: UnixStream,
    decoder: FrameDecoder,
    written: BytesMut,
    read: Vec<u8>,
    last: u32,
}

impl Pipeline {
    pub(crate) fn open(socket: PathBuf) -> Self {
        let stream = UnixStream::connect(socket).expect("the node listens");
        let mut pipeline = Self {
            stream,
            decoder: FrameDecoder::new(LIMIT),
            written: BytesMut::new(),
            read: vec![0; 16 * 1024],
            last: 0,
        };
        assert_eq!(pipeline.next().kind, FrameKind::Hello);
        let name = "@(conformance/echo) echo";
        let mut name = Frame::new(FrameKind::Name, 0).with_payload(ContentType::Text, name);
        name.target = ECHO;
        pipeline.write(&name);
        pipeline
    }

    /// Sends this number of asks at once, and reads their answers.
    pub(crate) fn ask(&mut self, questions: u64) {
        let first = self.last + 1;
        for number in 0..questions {
            self.last += 1;
            let mut call = Frame::new(FrameKind::Call, self.last).with_json(&json!(number));
            call.target = ECHO;
            call.deadline = 60_000;
            self.write(&call);
        }
        self.stream.write_all(&self.written).expect("it reads");
        self.written.clear();
        for _ in 0..questions {
            let answer = self.next();
            assert_eq!(answer.kind, FrameKind::Done);
            let asked = u64::from(answer.id - first);
            let answer: u64 = answer.into_payload().decode().expect("a number");
            assert_eq!(answer, asked);
        }
    }

    fn write(&mut self, frame: &Frame) {
        let written = frame.encode_into(LIMIT, &mut self.written);
        written.expect("within the limit");
    }

    fn next(&mut self) -> Frame {
        loop {
            if let Some(frame) = self.decoder.next_frame().expect("frames") {
                return frame;
            }
            let read = self.stream.read(&mut self.read).expect("it writes");
            assert_ne!(read, 0, "the node closed the connection");
            self.decoder.feed(&self.read[..read]);
        }
    }
}
