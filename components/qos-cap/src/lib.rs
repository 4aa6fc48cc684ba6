//! A policy for PFCP sessions: admits, lowers or refuses the bit rates that a session asks for.
//!
//! A request has lines of `key value`: `uplink` and `downlink` in kilobits per second, and the
//! name of the network as `dnn`. The answer has the lines that apply. The configuration sets the
//! maximum for each network: `[config.internet]` with `uplink` and `downlink`. The section
//! `[config.default]` applies to other networks, and to a session without a network, which is
//! asked about as `dnn default`; without that section, they are refused.

use strowger_component::{Actor, Message, Start, config, export};

struct QosCap;

/// The network whose caps apply to networks without caps of their own.
const OTHERS: &str = "default";

impl Actor for QosCap {
    fn init(_: Start) -> Result<Self, String> {
        Ok(Self)
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, String> {
        let asked = std::str::from_utf8(&message.payload).map_err(|_| "the question is no text")?;
        let value = |key: &str| {
            let mut lines = asked.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(name, _)| *name == key).map(|(_, value)| value)
        };
        let dnn = value("dnn").ok_or("the question names no dnn")?;
        let mut answer = format!("dnn {dnn}\n");
        for way in ["uplink", "downlink"] {
            let cap = config::get(&format!("{dnn}.{way}"));
            let cap = cap.or_else(|| config::get(&format!("{OTHERS}.{way}")));
            let cap = cap.ok_or_else(|| format!("{dnn} is not served"))?;
            let cap: u64 = cap.parse().map_err(|_| format!("{way} of {dnn} is no number"))?;
            let wanted = match value(way) {
                Some(text) => text.parse().map_err(|_| format!("{way} is no number"))?,
                None => cap,
            };
            answer.push_str(&format!("{way} {}\n", cap.min(wanted)));
        }
        Ok(answer.into_bytes())
    }
}

export!(QosCap);
