use proptest::prelude::*;

use super::*;

const LIMIT: usize = 4096;

fn encoded(frame: &Frame) -> BytesMut {
    let mut bytes = BytesMut::new();
    frame.encode_into(LIMIT, &mut bytes).unwrap();
    bytes
}

fn frames() -> impl Strategy<Value = Frame> {
    let payload = prop::collection::vec(any::<u8>(), 0..200);
    let numbers = any::<(u32, u32, u32, u32)>();
    (0..FrameKind::ALL.len(), 1..=3_u8, numbers, payload).prop_map(
        |(kind, content, (id, target, deadline, credit), payload)| {
            let mut frame = Frame::new(FrameKind::ALL[kind], id);
            if !payload.is_empty() {
                frame = frame.with_payload(ContentType::from_byte(content).unwrap(), payload);
            }
            (frame.target, frame.deadline, frame.credit) = (target, deadline, credit);
            frame
        },
    )
}

proptest! {
    #[test]
    fn frames_survive_any_segmentation(
        list in prop::collection::vec(frames(), 1..8),
        cuts in prop::collection::vec(1_usize..60, 1..80),
    ) {
        let mut stream = BytesMut::new();
        for frame in &list {
            frame.encode_into(LIMIT, &mut stream).unwrap();
        }
        let mut decoder = FrameDecoder::new(LIMIT);
        let mut out = Vec::new();
        let mut left = &stream[..];
        for cut in cuts.into_iter().cycle() {
            if left.is_empty() {
                break;
            }
            let (now, later) = left.split_at(cut.min(left.len()));
            decoder.feed(now);
            left = later;
            while let Some(frame) = decoder.next_frame().unwrap() {
                out.push(frame);
            }
        }
        prop_assert_eq!(out, list);
        prop_assert_eq!(decoder.finish(), Ok(()));
    }

    #[test]
    fn garbage_never_panics(
        garbage in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut decoder = FrameDecoder::new(LIMIT);
        decoder.feed(&garbage);
        let mut bytes = 0;
        while let Ok(Some(frame)) = decoder.next_frame() {
            bytes += HEADER_LEN + frame.payload.len();
        }
        prop_assert!(bytes <= garbage.len());
        let _ = decoder.finish();
    }

    #[test]
    fn changed_byte_never_yields_more_than_was_sent(
        frame in frames(), at in 0_usize..HEADER_LEN, to in any::<u8>(),
    ) {
        let mut bytes = encoded(&frame);
        bytes[at] = to;
        let mut decoder = FrameDecoder::new(LIMIT);
        decoder.feed(&bytes);
        while let Ok(Some(frame)) = decoder.next_frame() {
            prop_assert!(frame.payload.len() + HEADER_LEN <= bytes.len());
        }
        prop_assert!(decoder.buffer.capacity() <= 2 * bytes.len() + 64);
    }
}

#[test]
fn header_has_the_documented_layout() {
    let mut frame = Frame::new(FrameKind::Call, 0x0102_0304).with_payload(ContentType::Json, "{}");
    (frame.target, frame.deadline, frame.credit) = (5, 6000, 7);
    let bytes = encoded(&frame);
    let header = [
        0, 0, 0, 2, 3, 1, 0, 0, 1, 2, 3, 4, 0, 0, 0, 5, 0, 0, 0x17, 0x70, 0, 0, 0, 7,
    ];
    assert_eq!(bytes[..HEADER_LEN], header);
    assert_eq!(&bytes[HEADER_LEN..], b"{}");
}

#[test]
fn announced_length_reserves_no_memory() {
    let mut bytes = encoded(&Frame::new(FrameKind::Call, 1).with_payload(ContentType::Bytes, "x"));
    let limit = u32::MAX as usize;
    bytes[..4].copy_from_slice(&u32::MAX.to_be_bytes());
    let mut decoder = FrameDecoder::new(limit);
    decoder.feed(&bytes);
    assert_eq!(decoder.next_frame(), Ok(None));
    assert!(decoder.buffer.capacity() < 1024);
}

#[test]
fn oversized_frame_is_refused_by_its_header() {
    let mut bytes = encoded(&Frame::new(FrameKind::Call, 1).with_payload(ContentType::Bytes, "x"));
    bytes[..4].copy_from_slice(&5000_u32.to_be_bytes());
    let mut decoder = FrameDecoder::new(LIMIT);
    decoder.feed(&bytes[..HEADER_LEN]);
    let error = decoder.next_frame().unwrap_err();
    assert_eq!(
        error.to_string(),
        "frame at byte 0: payload of 5000 bytes, limit is 4096"
    );
}

#[test]
fn oversized_frame_is_not_encoded() {
    let frame = Frame::new(FrameKind::Done, 1).with_payload(ContentType::Bytes, vec![0; 11]);
    let mut out = BytesMut::new();
    assert!(frame.encode_into(10, &mut out).is_err());
    assert!(out.is_empty());
}

#[test]
fn errors_tell_the_offset_of_the_frame() {
    let good = encoded(&Frame::new(FrameKind::Cancel, 1));
    for (at, value, kind) in [
        (4, 0, FrameErrorKind::UnknownKind(0)),
        (4, 99, FrameErrorKind::UnknownKind(99)),
        (5, 9, FrameErrorKind::UnknownContentType(9)),
        (6, 1, FrameErrorKind::UnknownFlags(0x100)),
        (3, 1, FrameErrorKind::Untyped(1)),
    ] {
        let mut bad = good.clone();
        bad[at] = value;
        let mut decoder = FrameDecoder::new(LIMIT);
        decoder.feed(&good);
        decoder.feed(&bad);
        assert!(decoder.next_frame().unwrap().is_some());
        let error = FrameError { offset: 24, kind };
        assert_eq!(decoder.next_frame(), Err(error.clone()));
        decoder.feed(&good);
        assert_eq!(decoder.next_frame(), Err(error), "broken stays broken");
    }
}

#[test]
fn truncated_stream_is_an_error() {
    let bytes = encoded(&Frame::new(FrameKind::Call, 1).with_payload(ContentType::Json, "null"));
    for (have, need) in [(1, HEADER_LEN), (23, HEADER_LEN), (24, 28), (27, 28)] {
        let mut decoder = FrameDecoder::new(LIMIT);
        decoder.feed(&bytes[..have]);
        assert_eq!(decoder.next_frame(), Ok(None));
        let kind = FrameErrorKind::Truncated { have, need };
        assert_eq!(decoder.finish(), Err(FrameError { offset: 0, kind }));
    }
}
