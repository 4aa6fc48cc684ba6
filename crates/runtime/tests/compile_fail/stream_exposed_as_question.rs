//! A stream is exposed to readers, not as an ask.

use strowger::{Actor, Context, Export, Reader, Request, Source, SourceError, SourceSpec, handlers};

#[derive(serde::Deserialize)]
struct Watch;

impl Request for Watch {
    type Reply = Reader<u32>;
}

struct Counter(Source<u32>);

#[handlers]
impl Actor for Counter {
    type Args = ();
    type Error = SourceError;

    async fn pre_start(_: (), cx: &mut Context<Self>) -> Result<Self, SourceError> {
        Ok(Self(cx.source(SourceSpec::DEFAULT)))
    }

    async fn watch(&mut self, _: Watch) -> Result<Reader<u32>, SourceError> {
        self.0.reader()
    }
}

fn main() {
    let _: Export<CounterMessage> = Export::new().stream::<Watch, u32>("watch");
    let _: Export<CounterMessage> = Export::new().ask::<Watch>("watch");
}
