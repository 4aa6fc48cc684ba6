//! Forwards each message to another actor, and waits for the answer.
//!
//! `times N` asks the other actor N times, to measure a request between two components.

use strowger_component::{Actor, Message, Start, config, export, messaging, rpc};

struct Relay(u64);

impl Actor for Relay {
    fn init(_: Start) -> Result<Self, String> {
        let to = config::get("to").ok_or("[config] does not say `to`")?;
        let to = messaging::resolve(&to).map_err(|why| format!("{to}: {why:?}"))?;
        Ok(Self(to))
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, String> {
        let refused = |why| format!("{why:?}");
        let text = std::str::from_utf8(&message.payload).unwrap_or_default();
        let Some(times) = text.strip_prefix("times ") else {
            return rpc::request(self.0, &message.payload).map_err(refused);
        };
        let times: u64 = times.parse().map_err(|_| "not a number")?;
        let mut answered = 0;
        for _ in 0..times {
            let answer = rpc::request(self.0, &[7; 64]).map_err(refused)?;
            answered += u64::from(answer == [7; 64]);
        }
        Ok(answered.to_string().into_bytes())
    }
}

export!(Relay);
