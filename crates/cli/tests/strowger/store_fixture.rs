//! Stores written by an earlier build and opened by this one, and the program that writes them.
//!
//! `fixtures/stores/format-N` contains two stores of format N: `process`, whose node was killed
//! with SIGKILL, and `disk`, whose node was shut down in order. A text file beside each store
//! contains the state that was read back right after writing, one fact a line. A fixture is never
//! rewritten: a change of the format adds new files in a new directory:
//!
//! ```text
//! STROWGER_STORE_FIXTURES=fixtures/stores/format-2 cargo test -p strowger-cli --test strowger \
//!     sessions_of_every_kind
//! ```

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;

use strowger_pfcp::ie::{
    ApplicationIdsPfds, ApplyAction, Cause, CreateFar, CreatePdr, CreateQer, CreateUrr,
    DestinationInterface, FTeid, ForwardingParameters, GateStatus, Mbr, MeasurementMethod, Pdi,
    PdrId, PfdContents, PfdContext, Precedence, QerId, RemovePdr, ReportingTriggers,
    SourceInterface, UpdateFar, UpdatePdr, UpdateQer, UrrId, VolumeQuota, VolumeThreshold,
};
use strowger_pfcp::message::{PfdManagementRequest, SessionModificationRequest};
use strowger_pfcp::{Message, Seid};
use strowger_pfcp_node::{SessionRules, StoreImage};

use crate::binary::strowger;
use crate::peer::{Peer, cause};
use crate::running::Running;

/// The format that this build writes.
const FORMAT: u32 = 1;

/// The ways in which a store is written: its durability, and `true` if its node is killed.
const STORES: [(&str, bool); 2] = [("process", true), ("disk", false)];

fn fixtures(format: u32) -> PathBuf {
    let stores = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stores");
    stores.join(format!("format-{format}"))
}

fn config(folder: &Path, durability: &str) -> String {
    let store = folder.join("store");
    format!(
        "[n4.store]\npath = {store:?}\ndurability = \"{durability}\"\nreserve = \"1MiB\"\n\
         [n4.peer]\nreport_port = \"source\"\n\
         [n4.data_path]\nkind = \"simulated\"\ntick = \"50ms\"\n"
    )
}

fn tar(args: &[&str], folder: &Path) {
    let mut command = Command::new("tar");
    let status = command.args(args).arg("-C").arg(folder).arg("store");
    assert!(status.status().expect("there is a tar").success());
}

#[test]
fn store_of_an_earlier_build_is_complete_and_usable() {
    for format in 1..=FORMAT {
        for (name, _) in STORES {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let archive = fixtures(format).join(format!("{name}.tar.gz"));
            tar(&["-xzf", archive.to_str().expect("text")], folder.path());
            let path = folder.path().join("store");
            let verified = strowger(["store", "verify", path.to_str().expect("text")]);
            assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
            let facts = fs::read_to_string(archive.with_extension("").with_extension("tsv"));
            assert_eq!(facts.expect("it exists"), facts_of(&path), "{name}");

            let live = Running::start(&config(folder.path(), name));
            let listed = live.ask(["pfcp", "sessions", "--json"]).objects();
            let seids = listed.iter().map(|row| row["seid"].as_u64());
            assert_eq!(seids.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 7].map(Some));
            let mut peer = Peer::bind(2, &live.n4);
            for seid in [1, 2, 3, 4, 5] {
                assert_eq!(modify_first(&mut peer, Seid(seid)), Cause::REQUEST_ACCEPTED);
            }
            let deleted = modify_first(&mut peer, Seid(6));
            assert_eq!(deleted, Cause::SESSION_CONTEXT_NOT_FOUND);
            let new = peer.establish(Ipv4Addr::new(10, 60, 0, 99));
            assert!(new.expect("accepted").0 > 7, "an identifier is given once");
            assert!(!live.log().contains("moves"), "{}", live.log());
            live.end();
        }
    }
}

/// Modifies a PDR that every session of the fixture has.
fn modify_first(peer: &mut Peer, seid: Seid) -> Cause {
    let update = UpdatePdr::new(PdrId(1)).precedence(Precedence(7));
    let request = SessionModificationRequest::new().update_pdrs([update]);
    send(peer, seid, request)
}

fn send(peer: &mut Peer, seid: Seid, request: SessionModificationRequest) -> Cause {
    let message = Message::session(seid, peer.next_sequence(), request);
    cause(&peer.ask(&message))
}

/// The content of a store, one fact a line.
fn facts_of(path: &Path) -> String {
    let image = StoreImage::read(path).expect("no node uses it");
    assert_eq!((image.loss, image.damaged), (None, 0));
    let mut facts = format!("recovery\t{}\n", image.recovery);
    for one in image.associations {
        let address = one.peer.ip();
        let _ = writeln!(
            facts,
            "association\t{}\t{address}\t{}",
            one.node, one.recovery
        );
    }
    for one in image.applications {
        let flows = one.contents.len();
        let _ = writeln!(facts, "application\t{}\t{flows}", one.application);
    }
    for one in image.sessions {
        let hex = one.rules.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let (seid, peer_seid) = (one.seid.0, one.peer_seid.0);
        let _ = writeln!(facts, "session\t{seid}\t{peer_seid}\t{}\t{hex}", one.node);
    }
    facts
}

#[test]
fn sessions_of_every_kind_are_stored() {
    // Relative to the root of the repository, where the command is run.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let to = std::env::var_os("STROWGER_STORE_FIXTURES").map(|folder| root.join(folder));
    if let Some(to) = &to {
        fs::create_dir(to).expect("fixtures are never written again");
    }
    for (name, killed) in STORES {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let live = Running::start(&config(folder.path(), name));
        fill(&live);
        if killed {
            live.kill();
        } else {
            live.end();
        }
        let facts = facts_of(&folder.path().join("store"));
        let sessions = facts.lines().filter(|fact| fact.starts_with("session\t"));
        assert_eq!(sessions.count(), 6, "{facts}");
        if let Some(to) = &to {
            let archive = to.join(format!("{name}.tar.gz"));
            // The files of a store are long and mostly zeros.
            let create = ["--sparse", "--owner=0", "--group=0", "-czf"];
            let archive = [&create[..], &[archive.to_str().expect("text")]].concat();
            tar(&archive, folder.path());
            fs::write(to.join(format!("{name}.tsv")), facts).expect("the folder is writable");
        }
    }
}

/// Two associations with seven sessions, of which the sixth is deleted, and an application.
fn fill(live: &Running) {
    let mut peer = Peer::associated(2, &live.n4);
    let flow = PfdContents::flow("permit out ip from 198.51.100.0/24 to assigned");
    let context = PfdContext::new().pfd_contents([flow]);
    let pfds = ApplicationIdsPfds::new("video").pfd_contexts([context]);
    let pfds = PfdManagementRequest::new().application_id_s_pfds([pfds]);
    let pfds = Message::node(peer.next_sequence(), pfds);
    assert_eq!(cause(&peer.ask(&pfds)), Cause::REQUEST_ACCEPTED);

    let ue = |number| Ipv4Addr::new(10, 60, 0, number);
    let plain = peer.establish(ue(1)).expect("accepted");
    let metered = establish_metered(&mut peer, ue(2).into());
    let sixth = IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, 1]);
    let v6 = establish(&mut peer, &SessionRules::pdu_session(sixth));
    let updated = peer.establish(ue(4)).expect("accepted");
    let reshaped = peer.establish(ue(5)).expect("accepted");
    let deleted = peer.establish(ue(6)).expect("accepted");
    let mut other = Peer::associated(3, &live.n4);
    let others = other.establish(ue(7)).expect("accepted");
    let all = [plain, metered, v6, updated, reshaped, deleted, others];
    assert_eq!(all.map(|seid| seid.0 - plain.0), [0, 1, 2, 3, 4, 5, 6]);

    assert_eq!(peer.modify(updated), Cause::REQUEST_ACCEPTED);
    assert_eq!(modify_first(&mut peer, updated), Cause::REQUEST_ACCEPTED);
    let pdi = Pdi::new(SourceInterface::ACCESS).local_f_teid(FTeid::choose_ipv4());
    let forwarding = ForwardingParameters::new(DestinationInterface::CORE);
    let reshape = SessionModificationRequest::new()
        .remove_pdrs([RemovePdr::new(PdrId(2))])
        .create_pdrs([CreatePdr::new(3, pdi).precedence(10).far_id(3)])
        .create_fars([CreateFar::new(3, ApplyAction::FORW).forwarding_parameters(forwarding)])
        .update_fars([UpdateFar::new(2).apply_action(ApplyAction::DROP)]);
    assert_eq!(send(&mut peer, reshaped, reshape), Cause::REQUEST_ACCEPTED);
    let faster = UpdateQer::new(1).maximum_bitrate(rate(60_000, 300_000));
    let faster = SessionModificationRequest::new().update_qers([faster]);
    assert_eq!(send(&mut peer, metered, faster), Cause::REQUEST_ACCEPTED);
    assert_eq!(peer.delete(deleted), Cause::REQUEST_ACCEPTED);
}

/// A session with a URR that counts traffic and a QER.
fn establish_metered(peer: &mut Peer, ue: IpAddr) -> Seid {
    let plain = SessionRules::pdu_session(ue);
    let urr = CreateUrr::new(1, MeasurementMethod::VOLUM, ReportingTriggers::VOLTH)
        .volume_threshold(VolumeThreshold::total(1 << 40))
        .volume_quota(VolumeQuota::total(1 << 41));
    let qer = CreateQer::new(1, GateStatus::default()).maximum_bitrate(rate(50_000, 250_000));
    let pdrs = plain.pdrs().iter().cloned();
    let pdrs = pdrs.map(|pdr| pdr.urr_ids([UrrId(1)]).qer_ids([QerId(1)]));
    let established = peer.establish_with(|request| {
        request
            .create_pdrs(pdrs.collect::<Vec<_>>())
            .create_fars(plain.fars().to_vec())
            .create_urrs([urr])
            .create_qers([qer])
    });
    established.expect("accepted")
}

fn establish(peer: &mut Peer, rules: &SessionRules) -> Seid {
    let established = peer.establish_with(|request| {
        request
            .create_pdrs(rules.pdrs().to_vec())
            .create_fars(rules.fars().to_vec())
    });
    established.expect("accepted")
}

fn rate(uplink: u64, downlink: u64) -> Mbr {
    Mbr {
        ul_mbr: uplink,
        dl_mbr: downlink,
    }
}
