//! Answers with the payload of the call.

use strowger_component::{Actor, Message, Start, export};

struct Echo;

impl Actor for Echo {
    fn init(_: Start) -> Result<Self, String> {
        Ok(Self)
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, String> {
        Ok(message.payload)
    }
}

export!(Echo);
