//! A stream that becomes a file: a producer, a reader that writes to the file, and a reader that
//! joins late.
//!
//! A put is answered once every reader has room for the piece, so the producer is as fast as the
//! disk.
//!
//! `cargo run -p strowger-examples stream_to_file`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use strowger::{ActorSystem, BoxError, Reader};
use strowger_tools::files::{AppendRequest, Files, FilesSpec, ReadRequest};
use strowger_tools::stream::{
    EndStreamRequest, FollowStreamRequest, OpenStreamRequest, PutRequest, StreamPiece, Streams,
    StreamsSpec,
};

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let system = ActorSystem::new("press")?;
    let files = system.spawn::<Files>("files", FilesSpec::new(folder.path()))?;
    let streams = system.spawn::<Streams>("streams", StreamsSpec::default())?;

    streams
        .ask(OpenStreamRequest::new("news").with_replay(2))
        .await??;
    let mut printed = streams.ask(FollowStreamRequest::new("news")).await??;
    let printer = tokio::spawn(async move {
        while let Some(piece) = printed.recv().await {
            let StreamPiece::Text(text) = piece? else {
                continue;
            };
            let line = AppendRequest {
                path: "news.txt".to_owned(),
                bytes: text.into(),
            };
            files.ask(line).await??;
        }
        let bytes = files.ask(ReadRequest::new("news.txt")).await??;
        Ok::<_, BoxError>(String::from_utf8(bytes.into())?)
    });

    for line in ["one\n", "two\n", "three\n"] {
        streams.ask(PutRequest::text("news", line)).await??;
    }
    let late = streams.ask(FollowStreamRequest::new("news")).await??;
    let stream = "news".to_owned();
    streams.ask(EndStreamRequest { stream }).await??;
    println!("who came late got {} pieces", count(late).await?);
    print!("{}", printer.await??);
    system.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

async fn count(mut reader: Reader<StreamPiece>) -> Result<usize, BoxError> {
    let mut count = 0;
    while let Some(piece) = reader.recv().await {
        piece?;
        count += 1;
    }
    Ok(count)
}
