//! The policy of `strowger demo`, asked by a peer in another process.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use strowger_pfcp::Seid;
use strowger_pfcp::ie::{Cause, CreateQer, GateStatus, Mbr};
use strowger_pfcp_node::SessionRules;

use crate::demo_process::Demo;
use crate::peer::Peer;

/// Threads that compute without waiting until this value is dropped.
struct BusyThreads {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyThreads {
    /// Four threads for each processor, so that everything else waits for its turn.
    fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let processors = thread::available_parallelism().map_or(2, usize::from);
        let spin = |_| {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..4 * processors).map(spin).collect();
        Self { over, threads }
    }
}

impl Drop for BusyThreads {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

/// Establishes a session on a network, or on none, with 90 and 900 Mbit/s.
fn establish(peer: &mut Peer, number: u8, network: Option<&str>) -> Result<Seid, Cause> {
    let ue = Ipv4Addr::new(10, 91, 0, number);
    let plain = SessionRules::pdu_session(ue.into());
    let pdrs = plain.pdrs().iter().cloned().map(|mut pdr| {
        if let Some(network) = network {
            pdr.pdi = pdr.pdi.network_instance(network);
        }
        pdr.qer_ids([1])
    });
    let rates = Mbr {
        ul_mbr: 90_000,
        dl_mbr: 900_000,
    };
    let qer = CreateQer::new(1, GateStatus::default()).maximum_bitrate(rates);
    let pdrs: Vec<_> = pdrs.collect();
    peer.establish_with(|request| {
        request
            .create_pdrs(pdrs)
            .create_fars(plain.fars().to_vec())
            .create_qers([qer])
    })
}

/// The outcome for a session, and its rates if it was accepted.
type Decision = (Result<(), Cause>, Option<(u64, u64)>);

/// Establishes and deletes a session on each network.
fn decisions(demo: &Demo, peer: &mut Peer) -> Vec<Decision> {
    let networks = [None, Some("internet"), Some("ims")];
    let decide = |(number, network)| {
        let established = establish(peer, number, network);
        let rates = established.ok().map(|seid| {
            let rates = demo.rates(seid);
            assert_eq!(peer.delete(seid), Cause::REQUEST_ACCEPTED);
            rates
        });
        (established.map(drop), rates)
    };
    (1..).zip(networks).map(decide).collect()
}

#[test]
fn demo_policy_decides_the_same_on_a_busy_machine() {
    let demo = Demo::start(&["--rate", "20", "--sessions", "20"]);
    let mut peer = Peer::associated(91, &demo.n4);
    let capped = (Ok(()), Some((50_000, 200_000)));
    let expected = vec![capped; 3];
    assert_eq!(decisions(&demo, &mut peer), expected);
    let busy = BusyThreads::start();
    for _ in 0..10 {
        assert_eq!(decisions(&demo, &mut peer), expected);
    }
    drop(busy);
    assert_eq!(decisions(&demo, &mut peer), expected);
}

#[test]
fn demo_policy_decides_the_same_while_it_traps() {
    let demo = Demo::start(&["--rate", "50", "--sessions", "20", "--chaos"]);
    let mut peer = Peer::associated(92, &demo.n4);
    for _ in 0..10 {
        for (outcome, _) in decisions(&demo, &mut peer) {
            assert_eq!(outcome, Ok(()));
        }
    }
}
