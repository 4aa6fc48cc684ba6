use proptest::prelude::*;

use super::*;

const LIMIT: usize = 4096;

fn encoded(frame: &Frame) -> BytesMut {
    let mut octets = BytesMut::new();
    frame.encode_into(LIMIT, &mut octets).unwrap();
    octets
}

fn frames() -> impl Strategy<Value = Frame> {
    let payload = prop::collection::vec(any::<u8>(), 0..200);
    let numbers = any::<(u32, u32, u32, u32)>();
    (0..Kind::ALL.len(), 1..=3_u8, numbers, payload).prop_map(
        |(kind, content, (id, target, deadline, credit), payload)| {
            let mut frame = Frame::new(Kind::ALL[kind], id);
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
    fn frames_come_out_as_they_went_in_however_the_stream_is_cut(
        list in prop::collection::vec(frames(), 1..8),
        cuts in prop::collection::vec(1_usize..60, 1..80),
    ) {
        let mut stream = BytesMut::new();
        for frame in &list {
            frame.encode_into(LIMIT, &mut stream).unwrap();
        }
        let mut decoder = Decoder::new(LIMIT);
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
    fn garbage_is_an_error_or_a_frame_but_never_a_panic(
        garbage in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut decoder = Decoder::new(LIMIT);
        decoder.feed(&garbage);
        let mut octets = 0;
        while let Ok(Some(frame)) = decoder.next_frame() {
            octets += HEADER + frame.payload.len();
        }
        prop_assert!(octets <= garbage.len());
        let _ = decoder.finish();
    }

    #[test]
    fn one_changed_octet_never_yields_more_than_came(
        frame in frames(), at in 0_usize..HEADER, to in any::<u8>(),
    ) {
        let mut octets = encoded(&frame);
        octets[at] = to;
        let mut decoder = Decoder::new(LIMIT);
        decoder.feed(&octets);
        while let Ok(Some(frame)) = decoder.next_frame() {
            prop_assert!(frame.payload.len() + HEADER <= octets.len());
        }
        prop_assert!(decoder.buffer.capacity() <= 2 * octets.len() + 64);
    }
}

#[test]
fn the_header_is_as_written_down() {
    let mut frame = Frame::new(Kind::Call, 0x0102_0304).with_payload(ContentType::Json, "{}");
    (frame.target, frame.deadline, frame.credit) = (5, 6000, 7);
    let octets = encoded(&frame);
    let header = [
        0, 0, 0, 2, 3, 1, 0, 0, 1, 2, 3, 4, 0, 0, 0, 5, 0, 0, 0x17, 0x70, 0, 0, 0, 7,
    ];
    assert_eq!(octets[..HEADER], header);
    assert_eq!(&octets[HEADER..], b"{}");
}

#[test]
fn an_announced_length_reserves_nothing() {
    let mut octets = encoded(&Frame::new(Kind::Call, 1).with_payload(ContentType::Bytes, "x"));
    let limit = u32::MAX as usize;
    octets[..4].copy_from_slice(&u32::MAX.to_be_bytes());
    let mut decoder = Decoder::new(limit);
    decoder.feed(&octets);
    assert_eq!(decoder.next_frame(), Ok(None));
    assert!(decoder.buffer.capacity() < 1024);
}

#[test]
fn a_frame_over_the_limit_is_refused_by_its_header_alone() {
    let mut octets = encoded(&Frame::new(Kind::Call, 1).with_payload(ContentType::Bytes, "x"));
    octets[..4].copy_from_slice(&5000_u32.to_be_bytes());
    let mut decoder = Decoder::new(LIMIT);
    decoder.feed(&octets[..HEADER]);
    let error = decoder.next_frame().unwrap_err();
    assert_eq!(
        error.to_string(),
        "frame at byte 0: payload of 5000 bytes, limit is 4096"
    );
}

#[test]
fn a_frame_over_the_limit_is_not_sent() {
    let frame = Frame::new(Kind::Done, 1).with_payload(ContentType::Bytes, vec![0; 11]);
    let mut out = BytesMut::new();
    assert!(frame.encode_into(10, &mut out).is_err());
    assert!(out.is_empty());
}

#[test]
fn errors_name_the_octet_at_which_the_frame_starts() {
    let good = encoded(&Frame::new(Kind::Cancel, 1));
    for (at, value, kind) in [
        (4, 0, FrameErrorKind::UnknownKind(0)),
        (4, 99, FrameErrorKind::UnknownKind(99)),
        (5, 9, FrameErrorKind::UnknownContent(9)),
        (6, 1, FrameErrorKind::UnknownFlags(0x100)),
        (3, 1, FrameErrorKind::Untyped(1)),
    ] {
        let mut bad = good.clone();
        bad[at] = value;
        let mut decoder = Decoder::new(LIMIT);
        decoder.feed(&good);
        decoder.feed(&bad);
        assert!(decoder.next_frame().unwrap().is_some());
        let error = FrameError { at: 24, kind };
        assert_eq!(decoder.next_frame(), Err(error.clone()));
        decoder.feed(&good);
        assert_eq!(decoder.next_frame(), Err(error), "broken stays broken");
    }
}

#[test]
fn a_stream_that_ends_inside_a_frame_says_so() {
    let octets = encoded(&Frame::new(Kind::Call, 1).with_payload(ContentType::Json, "null"));
    for (have, need) in [(1, HEADER), (23, HEADER), (24, 28), (27, 28)] {
        let mut decoder = Decoder::new(LIMIT);
        decoder.feed(&octets[..have]);
        assert_eq!(decoder.next_frame(), Ok(None));
        let kind = FrameErrorKind::Truncated { have, need };
        assert_eq!(decoder.finish(), Err(FrameError { at: 0, kind }));
    }
}
