//! Real captures: what this reader finds is what tshark finds.

#[path = "../../pfcp/tests/codec/proof.rs"]
mod proof;

use std::path::PathBuf;
use std::process::Command;

use strowger_pfcp::message::Body;
use strowger_pfcp::{Message, frames};
use strowger_pfcp_node::{Capture, CaptureWriter};

use crate::proof::Proof;

/// The number of PFCP frames that tshark sees in each capture, quotations in ICMP errors included,
/// and how many of them are such quotations.
const CAPTURES: [(&str, usize, usize); 6] = [
    ("testregistration.pcapng", 150, 1),
    ("testattach.pcapng", 140, 3),
    ("srsenb.pcapng", 40, 2),
    ("5g-roaming-lbo.pcapng", 22, 0),
    ("tc1.pcap", 18, 0),
    ("pfcpsim_vs_omec-upf.pcapng", 4547, 0),
];

/// The folder of captures beside the repository, or nothing when it may be absent.
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
fn as_many_datagrams_are_found_as_tshark_finds() {
    let Some(folder) = captures() else {
        return;
    };
    for (name, expected, expected_quoted) in CAPTURES {
        let mut capture = Capture::open(folder.join(name)).unwrap();
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
fn tshark_reads_what_the_writer_wrote() {
    let Some(folder) = captures() else {
        return;
    };
    let file = std::env::temp_dir().join(format!("strowger-{}.pcapng", std::process::id()));
    let mut writer = CaptureWriter::create(&file).unwrap();
    let mut expected = String::new();
    for datagram in Capture::open(folder.join("tc1.pcap"))
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
        let octets: Vec<_> = datagram
            .payload
            .iter()
            .map(|octet| format!("{octet:02x}"))
            .collect();
        expected.push_str(&format!(
            "{}\t1\t1\t{}\n",
            datagram.src.ip(),
            octets.concat()
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
fn every_message_is_encoded_again_as_it_was() {
    let Some(folder) = captures() else {
        return;
    };
    let mut proof = Proof::by("capture");
    for (name, ..) in CAPTURES {
        for datagram in Capture::open(folder.join(name))
            .unwrap()
            .map(Result::unwrap)
        {
            if !datagram.is_pfcp() {
                continue;
            }
            let number = datagram.number;
            for frame in frames(&datagram.payload) {
                let frame = frame.unwrap();
                let message = match Message::decode(frame.octets) {
                    Ok(message) => message,
                    Err(error) => panic!("{name} frame {number}: {error}"),
                };
                assert!(
                    !matches!(message.body, Body::Other(..)),
                    "{name} frame {number}"
                );
                assert_eq!(
                    message.encode().unwrap(),
                    frame.octets,
                    "{name} frame {number}"
                );
                proof.message_and_elements(frame.octets);
            }
        }
    }
    proof.record();
}
