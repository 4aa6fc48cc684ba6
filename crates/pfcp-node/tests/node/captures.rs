//! Real captures: this reader finds the same messages as tshark.

#[path = "../../../pfcp/tests/codec/proof.rs"]
mod proof;

use std::path::PathBuf;
use std::process::Command;

use strowger_pfcp::message::Body;
use strowger_pfcp::{IeType, Index, Message, MessageView, frames};
use strowger_pfcp_node::{CaptureReader, CaptureWriter};

use crate::captures::proof::Proof;

/// The number of PFCP frames that tshark sees in each capture, including those quoted in ICMP
/// errors, and the number of such quotations.
const CAPTURES: [(&str, usize, usize); 6] = [
    ("testregistration.pcapng", 150, 1),
    ("testattach.pcapng", 140, 3),
    ("srsenb.pcapng", 40, 2),
    ("5g-roaming-lbo.pcapng", 22, 0),
    ("tc1.pcap", 18, 0),
    ("pfcpsim_vs_omec-upf.pcapng", 4547, 0),
];

/// The directory of captures beside the repository; `None` if it may be absent and is.
fn captures() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pfcp/captures");
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "no captures in {}",
        folder.display()
    );
    eprintln!("left out: no captures in {}", folder.display());
    None
}

#[test]
fn datagram_counts_match_tshark() {
    let Some(folder) = captures() else {
        return;
    };
    for (name, expected, expected_quoted) in CAPTURES {
        let mut capture = CaptureReader::open(folder.join(name)).unwrap();
        let mut found = Vec::new();
        for datagram in &mut capture {
            found.push(datagram.unwrap());
        }
        found.retain(|datagram| datagram.is_pfcp());
        let quoted = found.iter().filter(|datagram| datagram.quoted).count();
        assert_eq!((found.len(), quoted), (expected, expected_quoted), "{name}");
        assert!(found.iter().all(|datagram| !datagram.truncated), "{name}");
        assert_eq!(capture.skipped().unknown_link, 0, "{name}");
    }
}

#[test]
fn tshark_reads_written_capture() {
    let Some(folder) = captures() else {
        return;
    };
    let file = std::env::temp_dir().join(format!("strowger-{}.pcapng", std::process::id()));
    let mut writer = CaptureWriter::create(&file).unwrap();
    let mut expected = String::new();
    for datagram in CaptureReader::open(folder.join("tc1.pcap"))
        .unwrap()
        .map(Result::unwrap)
    {
        writer
            .write(
                datagram.timestamp,
                datagram.src,
                datagram.dst,
                &datagram.payload,
            )
            .unwrap();
        let bytes: Vec<_> = datagram
            .payload
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        expected.push_str(&format!(
            "{}\t1\t1\t{}\n",
            datagram.src.ip(),
            bytes.concat()
        ));
    }
    writer.flush().unwrap();
    let fields = [
        "ip.src",
        "ip.checksum.status",
        "udp.checksum.status",
        "udp.payload",
    ];
    let output = Command::new("tshark")
        .args([
            "-o",
            "ip.check_checksum:TRUE",
            "-o",
            "udp.check_checksum:TRUE",
            "-Tfields",
        ])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .arg("-r")
        .arg(&file)
        .output();
    std::fs::remove_file(&file).unwrap();
    let Ok(output) = output else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "tshark is not installed"
        );
        eprintln!("left out: tshark is not installed");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn captured_messages_round_trip() {
    let Some(folder) = captures() else {
        return;
    };
    let mut proof = Proof::by("capture");
    for (name, ..) in CAPTURES {
        for datagram in CaptureReader::open(folder.join(name))
            .unwrap()
            .map(Result::unwrap)
        {
            if !datagram.is_pfcp() {
                continue;
            }
            let number = datagram.number;
            for frame in frames(&datagram.payload) {
                let frame = frame.unwrap();
                let message = match Message::decode(frame.bytes) {
                    Ok(message) => message,
                    Err(error) => panic!("{name} frame {number}: {error}"),
                };
                assert!(
                    !matches!(message.body, Body::Other(..)),
                    "{name} frame {number}"
                );
                assert_eq!(
                    message.encode().unwrap(),
                    frame.bytes,
                    "{name} frame {number}"
                );
                proof.message_and_elements(frame.bytes);
            }
        }
    }
    proof.record();
}

/// Changes one field of an owned message; returns the path to its element: each step is a type and
/// an index among the elements of that type.
fn change(body: &mut Body) -> Vec<(IeType, usize)> {
    let cause = |cause: &mut strowger_pfcp::ie::Cause| {
        cause.0 ^= 0xff;
        vec![(IeType::CAUSE, 0)]
    };
    match body {
        Body::HeartbeatRequest(body) => {
            body.recovery_time_stamp.0 ^= 0xff;
            vec![(IeType::RECOVERY_TIME_STAMP, 0)]
        }
        Body::HeartbeatResponse(body) => {
            body.recovery_time_stamp.0 ^= 0xff;
            vec![(IeType::RECOVERY_TIME_STAMP, 0)]
        }
        Body::AssociationSetupRequest(body) => {
            body.recovery_time_stamp.0 ^= 0xff;
            vec![(IeType::RECOVERY_TIME_STAMP, 0)]
        }
        Body::AssociationSetupResponse(body) => cause(&mut body.cause),
        Body::SessionEstablishmentRequest(body) => {
            let last = body.create_fars.len() - 1;
            body.create_fars[last].far_id.0 ^= 0xff;
            vec![(IeType::CREATE_FAR, last), (IeType::FAR_ID, 0)]
        }
        Body::SessionEstablishmentResponse(body) => cause(&mut body.cause),
        Body::SessionModificationRequest(body) => match &mut body.update_fars[..] {
            [first, ..] => {
                first.far_id.0 ^= 0xff;
                vec![(IeType::UPDATE_FAR, 0), (IeType::FAR_ID, 0)]
            }
            [] => Vec::new(),
        },
        Body::SessionModificationResponse(body) => cause(&mut body.cause),
        Body::SessionDeletionResponse(body) => cause(&mut body.cause),
        Body::SessionReportResponse(body) => cause(&mut body.cause),
        Body::SessionReportRequest(body) => match &mut body.usage_reports[..] {
            [.., last] => {
                last.urr_id.0 ^= 0xff;
                let place = body.usage_reports.len() - 1;
                vec![(IeType::USAGE_REPORT_REQUEST, place), (IeType::URR_ID, 0)]
            }
            [] => Vec::new(),
        },
        _ => Vec::new(),
    }
}

#[test]
fn changing_field_of_captured_message_changes_only_its_bytes() {
    let Some(folder) = captures() else {
        return;
    };
    let mut changed = 0;
    for (name, ..) in CAPTURES {
        let datagrams = CaptureReader::open(folder.join(name)).unwrap();
        for datagram in datagrams.map(Result::unwrap).filter(|one| one.is_pfcp()) {
            let at = format!("{name} frame {}", datagram.number);
            for frame in frames(&datagram.payload).map(Result::unwrap) {
                let mut message = Message::decode(frame.bytes).unwrap();
                let way = change(&mut message.body);
                if way.is_empty() {
                    continue;
                }
                let bytes = message.encode().unwrap();
                assert_eq!(bytes.len(), frame.bytes.len(), "{at}");
                let mut index = Index::new();
                let view = MessageView::decode(frame.bytes, &mut index).unwrap();
                let mut part = view.root();
                for (ie, place) in way {
                    part = part
                        .parts()
                        .filter(|one| one.ie() == ie)
                        .nth(place)
                        .unwrap();
                }
                let (start, end) = (part.offset(), part.offset() + part.value().len());
                assert_ne!(bytes[start..end], frame.bytes[start..end], "{at}");
                assert_eq!(bytes[..start], frame.bytes[..start], "{at}");
                assert_eq!(bytes[end..], frame.bytes[end..], "{at}");
                changed += 1;
            }
        }
    }
    assert!(changed > 3000, "{changed} messages have such a field");
}
