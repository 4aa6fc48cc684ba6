//! A stream of arbitrary bytes, cut anywhere: the frames do not depend on the cut, and encode into
//! the bytes they came from.

use bytes::BytesMut;
use strowger_gateway::frame::{Frame, FrameDecoder, FrameError};

/// Maximum length of a payload; short, so that the limit is hit often.
const LIMIT: usize = 64;

/// Decodes the stream of an input, whose first byte is the offset of the cut.
pub(crate) fn check(input: &[u8]) {
    let Some((cut, stream)) = input.split_first() else {
        return;
    };
    let (whole, end) = decode([stream]);
    let (first, second) = stream.split_at(usize::from(*cut).min(stream.len()));
    assert_eq!(
        decode([first, second]),
        (whole.clone(), end),
        "a cut changes nothing"
    );
    let mut again = BytesMut::new();
    for frame in &whole {
        frame
            .encode_into(LIMIT, &mut again)
            .expect("a decoded payload is within the limit");
    }
    assert_eq!(again[..], stream[..again.len()], "frames keep every byte");
}

fn decode<const N: usize>(pieces: [&[u8]; N]) -> (Vec<Frame>, Result<(), FrameError>) {
    let mut decoder = FrameDecoder::new(LIMIT);
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    (frames, decoder.finish())
}
