//! Attacks that must not stall a producer, its readers or use up the memory: each with a twin
//! without the guard, on the clock of a `TestSystem`.

use std::collections::VecDeque;
use std::time::Duration;

use strowger::{ReadError, Reader};
use strowger_tools::stream::{
    FollowStreamRequest, OpenStreamRequest, PutRequest, StreamPiece, Streams, StreamsSpec,
};

use super::{Fixture, LONG, error, next, text};

/// A stream that keeps for each reader everything it has not read yet, and waits for its producer
/// without a limit: the behaviour that the guards prevent.
#[derive(Default)]
struct Naive {
    readers: Vec<VecDeque<Vec<u8>>>,
}

impl Naive {
    fn put(&mut self, bytes: &[u8]) {
        for reader in &mut self.readers {
            reader.push_back(bytes.to_vec());
        }
    }

    fn held(&self) -> usize {
        self.readers.iter().flatten().map(Vec::len).sum()
    }
}

const PIECES: usize = 10_000;

#[test]
fn stalled_reader_is_disconnected() {
    let fixture = Fixture::open(|limits| {
        limits.window = 4;
        limits.stall = Duration::from_secs(5);
    });
    fixture.kit.run(async {
        fixture.begin("log").await;
        let mut never = fixture.follow("log").await;
        let mut good = fixture.follow("log").await;
        let piece = "x".repeat(1000);
        let produce = async {
            for _ in 0..PIECES {
                fixture.put("log", &piece).await.expect("the others go on");
            }
        };
        let read = async {
            for _ in 0..PIECES {
                assert_eq!(next(&mut good).await, text(&piece));
            }
        };
        tokio::join!(produce, read);
        assert_eq!(never.len(), 4, "no more than its window is held for it");
        let why = error(&mut never).await;
        assert!(matches!(why, ReadError::Disconnected), "{why}");
        assert_eq!(fixture.list().await[0].disconnected, 1);
    });

    let mut naive = Naive::default();
    naive.readers.push(VecDeque::new());
    (0..PIECES).for_each(|_| naive.put(&[0; 1000]));
    assert_eq!(
        naive.held(),
        PIECES * 1000,
        "without the guard everything is held"
    );
}

#[test]
fn leaving_reader_does_not_affect_others() {
    let fixture = Fixture::open(|limits| limits.window = 1);
    fixture.kit.run(async {
        fixture.begin("log").await;
        let leaves = fixture.follow("log").await;
        let mut stays = fixture.follow("log").await;
        fixture.put("log", "a").await.expect("there is room");
        assert_eq!(next(&mut stays).await, text("a"));
        // This call waits for the reader that has read nothing.
        let put = fixture.put("log", "b");
        let leave = async {
            drop(leaves);
            assert_eq!(next(&mut stays).await, text("b"), "whole");
        };
        let (put, ()) = tokio::join!(biased; put, leave);
        assert_eq!(put, Ok(1));
        assert_eq!(fixture.list().await[0].readers, 1);
    });

    // Twin: a producer that waits for every reader it ever had never sends again.
    let mut naive = Naive::default();
    naive.readers.push(VecDeque::new());
    naive.put(b"b");
    assert_eq!(naive.held(), 1, "it is held for one that has gone");
}

#[test]
fn killed_producer_fails_its_stream() {
    let fixture = Fixture::open(|_| {});
    let spec = StreamsSpec::default();
    // Any actor can be a producer.
    let producer = fixture.kit.spawn::<Streams>("producer", spec);
    fixture.kit.run(async {
        let open = OpenStreamRequest::new("log").with_producer(producer.erase());
        fixture
            .streams
            .ask(open)
            .await
            .expect("it answers")
            .expect("there is room");
        fixture.begin("other").await;
        let mut reader = fixture.follow("log").await;
        let mut other = fixture.follow("other").await;
        fixture.put("log", "half").await.expect("there is room");
        producer.kill();
        producer.stopped().await;
        assert_eq!(next(&mut reader).await, text("half"));
        let why = error(&mut reader).await;
        assert!(
            why.to_string().contains("the producer exited: killed"),
            "{why}"
        );
        fixture
            .put("other", "goes on")
            .await
            .expect("there is room");
        assert_eq!(next(&mut other).await, text("goes on"));
    });
}

#[test]
fn silent_producer_loses_its_stream() {
    let fixture = Fixture::open(|limits| limits.idle = Duration::from_secs(60));
    fixture.kit.run(async {
        fixture.begin("log").await;
        let mut reader: Reader<StreamPiece> = fixture.follow("log").await;
        fixture.put("log", "a").await.expect("there is room");
        assert_eq!(next(&mut reader).await, text("a"));
        // Twin: without the limit a reader waits as long as it likes.
        fixture
            .streams
            .ask(OpenStreamRequest::new("kept"))
            .await
            .expect("it answers")
            .expect("room");
        let mut waits = fixture.follow("kept").await;
        let keep = async {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_secs(30)).await;
                fixture.put("kept", "").await.expect("it is there");
            }
        };
        let (why, ()) = tokio::join!(error(&mut reader), keep);
        assert!(why.to_string().contains("was silent for 60s"), "{why}");
        assert_eq!(waits.len(), 10);
        assert_eq!(next(&mut waits).await, text(""));
    });
}

#[test]
fn excess_puts_are_refused() {
    let fixture = Fixture::open(|limits| {
        limits.window = 1;
        limits.waiting = 2;
        limits.stall = LONG;
    });
    fixture.kit.run(async {
        fixture.begin("log").await;
        let _never = fixture
            .streams
            .ask(FollowStreamRequest::new("log"))
            .await
            .expect("it answers");
        fixture.put("log", "a").await.expect("there is room");
        let soon = Duration::from_secs(1);
        let flood = (0..100).map(|_| {
            fixture
                .streams
                .ask_within(PutRequest::text("log", "b"), soon)
        });
        let mut refused = 0;
        for put in futures(flood).await {
            refused += usize::from(matches!(put, Ok(Err(_))));
        }
        assert_eq!(refused, 98, "two wait, until their producers give up");
        assert_eq!(fixture.list().await[0].pieces, 1);
    });
}

/// Runs all of these futures concurrently; returns their outputs.
async fn futures<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut done = Vec::new();
    let mut running: Vec<_> = all.map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        running.retain_mut(|one| match one.as_mut().poll(cx) {
            std::task::Poll::Ready(output) => {
                done.push(output);
                false
            }
            std::task::Poll::Pending => true,
        });
        match running.is_empty() {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    done
}
