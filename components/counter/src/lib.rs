//! Counts the messages it handles, across all its incarnations and versions.

use strowger_component::{Actor, Message, Start, export};

struct Counter(u64);

impl Actor for Counter {
    fn init(start: Start) -> Result<Self, String> {
        let Some((version, state)) = start.state else {
            return Ok(Self(0));
        };
        let count = state.try_into().map_err(|_| "the state is not eight octets")?;
        match version {
            Self::VERSION => Ok(Self(u64::from_le_bytes(count))),
            other => Err(format!("state of version {other}")),
        }
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, String> {
        assert_ne!(message.payload, b"panic", "as it was told");
        self.0 += 1;
        Ok(self.0.to_string().into_bytes())
    }

    fn snapshot(&self) -> Vec<u8> {
        self.0.to_le_bytes().to_vec()
    }
}

export!(Counter);
