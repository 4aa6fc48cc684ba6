//! Streams from one producer to many readers, on virtual time.

use std::time::Duration;

use strowger::testing::TestSystem;
use strowger::{ActorRef, AskError, ReadError, Reader};
use strowger_tools::stream::{
    EndStreamRequest, FailStreamRequest, FollowStreamRequest, ListStreamsRequest,
    OpenStreamRequest, PutRequest, StreamError, StreamInfo, StreamLimits, StreamPiece, Streams,
    StreamsMessage, StreamsSpec,
};

mod attack;

/// A streams actor with a clock of its own.
struct Fixture {
    kit: TestSystem,
    streams: ActorRef<StreamsMessage>,
    spec: StreamsSpec,
}

impl Fixture {
    fn open(change: impl FnOnce(&mut StreamLimits)) -> Self {
        let mut limits = StreamLimits::default();
        change(&mut limits);
        let kit = TestSystem::new(1);
        let spec = StreamsSpec::new(limits);
        let streams = kit.spawn::<Streams>("streams", spec.clone());
        Self { kit, streams, spec }
    }

    async fn begin(&self, stream: &str) {
        let opened = self.streams.ask(OpenStreamRequest::new(stream)).await;
        opened.expect("it answers").expect("there is room");
    }

    async fn put(&self, stream: &str, text: &str) -> Result<usize, StreamError> {
        let put = self
            .streams
            .ask_within(PutRequest::text(stream, text), LONG)
            .await;
        put.expect("it answers")
    }

    async fn follow(&self, stream: &str) -> Reader<StreamPiece> {
        let reader = self.streams.ask(FollowStreamRequest::new(stream)).await;
        reader.expect("it answers").expect("there is room")
    }

    async fn list(&self) -> Vec<StreamInfo> {
        self.streams
            .ask(ListStreamsRequest)
            .await
            .expect("it answers")
    }
}

const LONG: Duration = Duration::from_secs(3600);

fn text(text: &str) -> StreamPiece {
    StreamPiece::Text(text.to_owned())
}

/// The next piece.
async fn next(reader: &mut Reader<StreamPiece>) -> StreamPiece {
    let piece = reader.recv().await.expect("it goes on");
    piece.expect("nothing is missed")
}

/// The error that ended the stream.
async fn error(reader: &mut Reader<StreamPiece>) -> ReadError {
    loop {
        match reader.recv().await {
            Some(Ok(_)) => {}
            Some(Err(error)) => return error,
            None => panic!("it ended in order"),
        }
    }
}

#[test]
fn readers_get_all_pieces_in_order_then_the_end() {
    let fixture = Fixture::open(|_| {});
    fixture.kit.run(async {
        fixture.begin("log").await;
        let (mut one, mut other) = (fixture.follow("log").await, fixture.follow("log").await);
        for line in ["a", "b", "c"] {
            assert_eq!(fixture.put("log", line).await, Ok(2));
        }
        let bytes = PutRequest::bytes("log", vec![0, 255]);
        assert_eq!(fixture.streams.ask(bytes).await.expect("it answers"), Ok(2));
        let info = &fixture.list().await[0];
        assert_eq!((info.readers, info.pieces, info.bytes), (2, 4, 5));
        let stream = "log".to_owned();
        let ended = fixture.streams.ask(EndStreamRequest { stream }).await;
        assert_eq!(ended.expect("it answers"), Ok(()));
        for reader in [&mut one, &mut other] {
            for line in ["a", "b", "c"] {
                assert_eq!(next(reader).await, text(line));
            }
            assert_eq!(next(reader).await, StreamPiece::Bytes(vec![0, 255].into()));
            assert!(reader.recv().await.is_none());
        }
        let late = fixture.put("log", "d").await;
        assert_eq!(
            late,
            Err(StreamError::NotFound {
                stream: "log".into()
            })
        );
        assert_eq!(
            (fixture.spec.watch.streams(), fixture.list().await.len()),
            (0, 0)
        );
        assert_eq!(fixture.spec.watch.verbs()["put"].calls, 5);
    });
}

#[test]
fn late_reader_gets_the_replay() {
    let fixture = Fixture::open(|limits| limits.replay = 2);
    fixture.kit.run(async {
        fixture.begin("log").await;
        for line in ["a", "b", "c"] {
            assert_eq!(fixture.put("log", line).await, Ok(0));
        }
        let mut reader = fixture.follow("log").await;
        assert_eq!(fixture.put("log", "d").await, Ok(1));
        for line in ["b", "c", "d"] {
            assert_eq!(next(&mut reader).await, text(line));
        }
        let none = OpenStreamRequest::new("other").with_replay(0);
        fixture
            .streams
            .ask(none)
            .await
            .expect("it answers")
            .expect("there is room");
        fixture.put("other", "a").await.expect("there is room");
        let mut reader = fixture.follow("other").await;
        fixture.put("other", "b").await.expect("there is room");
        assert_eq!(next(&mut reader).await, text("b"));
    });
}

#[test]
fn failure_arrives_after_the_pieces() {
    let fixture = Fixture::open(|_| {});
    fixture.kit.run(async {
        fixture.begin("log").await;
        let mut reader = fixture.follow("log").await;
        fixture.put("log", "a").await.expect("there is room");
        let fail = FailStreamRequest {
            stream: "log".to_owned(),
            message: "out of paper".to_owned(),
        };
        fixture
            .streams
            .ask(fail)
            .await
            .expect("it answers")
            .expect("it is there");
        assert_eq!(next(&mut reader).await, text("a"));
        let why = error(&mut reader).await;
        assert!(why.to_string().contains("out of paper"), "{why}");
    });
}

#[test]
fn slowest_reader_sets_the_pace() {
    let fixture = Fixture::open(|limits| {
        limits.window = 2;
        limits.waiting = 1;
    });
    fixture.kit.run(async {
        fixture.begin("log").await;
        let mut slow = fixture.follow("log").await;
        for line in ["a", "b"] {
            assert_eq!(fixture.put("log", line).await, Ok(1));
        }
        let third = fixture.put("log", "c");
        let read = async {
            let full = fixture.put("log", "d").await;
            assert_eq!(full, Err(StreamError::TooManyWaiting { limit: 1 }));
            for line in ["a", "b", "c"] {
                assert_eq!(next(&mut slow).await, text(line));
            }
        };
        let (third, ()) = tokio::join!(biased; third, read);
        assert_eq!(third, Ok(1));
    });
}

#[test]
fn abandoned_put_is_not_sent() {
    let fixture = Fixture::open(|limits| limits.window = 1);
    fixture.kit.run(async {
        fixture.begin("log").await;
        let mut reader = fixture.follow("log").await;
        fixture.put("log", "a").await.expect("there is room");
        let soon = Duration::from_secs(1);
        let late = fixture
            .streams
            .ask_within(PutRequest::text("log", "b"), soon)
            .await;
        assert!(matches!(late, Err(AskError::TimedOut)), "{late:?}");
        assert_eq!(next(&mut reader).await, text("a"));
        fixture.put("log", "c").await.expect("there is room");
        assert_eq!(
            next(&mut reader).await,
            text("c"),
            "as its producer was told"
        );
    });
}

#[test]
fn limit_errors_name_their_limit() {
    let fixture = Fixture::open(|limits| {
        limits.streams = 1;
        limits.readers = 1;
        limits.piece = 4;
        limits.name = 5;
    });
    fixture.kit.run(async {
        let open = |name: &str| fixture.streams.ask(OpenStreamRequest::new(name));
        for name in ["", "a b", "../x\n", "longer"] {
            assert_eq!(
                open(name).await.expect("it answers"),
                Err(StreamError::InvalidName),
                "{name:?}"
            );
        }
        fixture.begin("log").await;
        let exists = StreamError::Exists {
            stream: "log".into(),
        };
        assert_eq!(open("log").await.expect("it answers"), Err(exists));
        let full = StreamError::TooManyStreams { limit: 1 };
        assert_eq!(open("other").await.expect("it answers"), Err(full));
        let long = StreamError::PieceTooLong { bytes: 5, limit: 4 };
        assert_eq!(fixture.put("log", "12345").await, Err(long));
        let reader = fixture.follow("log").await;
        let second = fixture
            .streams
            .ask(FollowStreamRequest::new("log"))
            .await
            .expect("it answers");
        assert_eq!(
            second.expect_err("there is one"),
            StreamError::TooManyReaders { limit: 1 }
        );
        drop(reader);
        fixture.follow("log").await;
    });
}
