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
use strowger_tools::{
    Append, EndStream, Files, FilesSpec, Follow, OpenStream, Piece, Put, Read, Streams, StreamsSpec,
};

#[tokio::main]
pub(crate) async fn main() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let system = ActorSystem::new("press")?;
    let files = system.spawn::<Files>("files", FilesSpec::new(folder.path()))?;
    let streams = system.spawn::<Streams>("streams", StreamsSpec::default())?;

    streams
        .ask(OpenStream::new("news").with_replay(2))
        .await??;
    let mut printed = streams.ask(Follow::new("news")).await??;
    let printer = tokio::spawn(async move {
        while let Some(piece) = printed.recv().await {
            let Piece::Text(text) = piece? else { continue };
            let line = Append {
                path: "news.txt".to_owned(),
                octets: text.into(),
            };
            files.ask(line).await??;
        }
        let bytes = files.ask(Read::new("news.txt")).await??;
        Ok::<_, BoxError>(String::from_utf8(bytes.into())?)
    });

    for line in ["one\n", "two\n", "three\n"] {
        streams.ask(Put::text("news", line)).await??;
    }
    let late = streams.ask(Follow::new("news")).await??;
    let stream = "news".to_owned();
    streams.ask(EndStream { stream }).await??;
    println!("who came late got {} pieces", count(late).await?);
    print!("{}", printer.await??);
    system.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

async fn count(mut reader: Reader<Piece>) -> Result<usize, BoxError> {
    let mut count = 0;
    while let Some(piece) = reader.recv().await {
        piece?;
        count += 1;
    }
    Ok(count)
}
