//! Streams: pieces that pass through an actor to their readers.

use std::time::{Duration, Instant};

use bytes::Bytes;
use strowger::{ActorRef, ActorSystem, Reader};
use strowger_bench::{Case, Sample};
use strowger_tools::stream::{
    FollowStreamRequest, OpenStreamRequest, PutRequest, StreamPiece, Streams, StreamsMessage,
    StreamsSpec,
};

/// Bytes of a piece.
const PIECE: usize = 64 * 1024;
/// Number of readers in the rows with many.
const READERS: usize = 100;
/// Number of pieces whose latency is measured.
const PIECES: usize = 2000;
/// The interval between pieces: far longer than the stream needs for one.
const PAUSE: Duration = Duration::from_millis(2);

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![throughput()];
    for (id, percent) in [
        ("stream_chunk_p50_100_readers", 50),
        ("stream_chunk_p95_100_readers", 95),
        ("stream_chunk_p99_100_readers", 99),
    ] {
        cases.push(Case::counted(id, "strowger", "ns", move || {
            let mut taken = latencies();
            taken.sort_unstable();
            let at = (taken.len() * percent / 100).min(taken.len() - 1);
            Ok((taken[at].as_nanos() as f64, taken.len() as u64))
        }));
    }
    cases
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Returns a piece whose first bytes are its number.
fn piece(number: u64, base: &[u8]) -> Bytes {
    let mut bytes = base.to_vec();
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes.into()
}

fn number(piece: &StreamPiece) -> u64 {
    let StreamPiece::Bytes(bytes) = piece else {
        panic!("it was bytes")
    };
    assert_eq!(bytes.len(), PIECE);
    u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"))
}

async fn stream(
    readers: usize,
) -> (
    ActorSystem,
    ActorRef<StreamsMessage>,
    Vec<Reader<StreamPiece>>,
) {
    let system = ActorSystem::new("bench").expect("it starts");
    let spec = StreamsSpec::default();
    let streams = system.spawn::<Streams>("streams", spec).expect("it starts");
    let open = streams
        .ask(OpenStreamRequest::new("bench").with_replay(0))
        .await;
    open.expect("it answers").expect("there is room");
    let mut all = Vec::new();
    for _ in 0..readers {
        let reader = streams.ask(FollowStreamRequest::new("bench")).await;
        all.push(reader.expect("it answers").expect("there is room"));
    }
    (system, streams, all)
}

/// Pieces as fast as one reader takes them, checked for order; the figure is the time of one piece.
fn throughput() -> Case {
    let runtime = runtime();
    let base = vec![7; PIECE];
    let mut next = 0_u64;
    Case::new("stream_chunk", "strowger", move |count| {
        let first = next;
        next += count;
        let base = base.clone();
        runtime.block_on(async move {
            let (_system, streams, mut readers) = stream(1).await;
            let mut reader = readers.remove(0);
            let began = Instant::now();
            let read = tokio::spawn(async move {
                for wanted in first..first + count {
                    let piece = reader
                        .recv()
                        .await
                        .expect("it goes on")
                        .expect("none is missed");
                    assert_eq!(number(&piece), wanted);
                }
            });
            for number in first..first + count {
                let put = PutRequest::bytes("bench", piece(number, &base));
                streams
                    .ask(put)
                    .await
                    .expect("it answers")
                    .expect("there is room");
            }
            read.await.expect("all came");
            Sample {
                time: began.elapsed(),
                done: count,
                checked: count,
            }
        })
    })
}

/// Returns the latencies of single pieces to each of a hundred readers, at a steady rate.
fn latencies() -> Vec<Duration> {
    runtime().block_on(async {
        let (_system, streams, readers) = stream(READERS).await;
        let start = Instant::now();
        let tasks: Vec<_> = readers
            .into_iter()
            .map(|mut reader| {
                tokio::spawn(async move {
                    let mut taken = Vec::with_capacity(PIECES);
                    for _ in 0..PIECES {
                        let piece = reader.recv().await.expect("it goes on");
                        let sent = number(&piece.expect("none is missed"));
                        let now = start.elapsed().as_nanos() as u64;
                        taken.push(Duration::from_nanos(now.saturating_sub(sent)));
                    }
                    taken
                })
            })
            .collect();
        let base = vec![7; PIECE];
        let mut pace = tokio::time::interval(PAUSE);
        for _ in 0..PIECES {
            pace.tick().await;
            // The piece contains the time at which it was sent.
            let mut bytes = base.clone();
            let sent = start.elapsed().as_nanos() as u64;
            bytes[..8].copy_from_slice(&sent.to_be_bytes());
            let put = streams.ask(PutRequest::bytes("bench", bytes)).await;
            assert_eq!(put.expect("it answers"), Ok(READERS));
        }
        let mut all = Vec::new();
        for task in tasks {
            all.extend(task.await.expect("all came"));
        }
        all
    })
}
