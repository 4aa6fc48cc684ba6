//! A policy for PFCP sessions: admits, lowers or refuses what a session asks for.
//!
//! It is asked with lines of `key value`: `uplink` and `downlink` in kilobits a second, and the
//! name of the network as `dnn`. It answers with the lines that hold. Its configuration has the
//! most that each network may have: `[config.internet]` with `uplink` and `downlink`. Others get
//! what `[config.default]` says, and so does a session without a network, which it is asked about
//! as `dnn default`; where there is no such section, they are refused.

use strowger_component::{Actor, Message, Start, config, export};

struct QosCap;

/// The network whose caps hold for those that have none of their own.
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
