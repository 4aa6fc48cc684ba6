//! Spans of actors. Alone in its program: who listens to spans is a fact of the whole process.

use std::convert::Infallible;
use std::sync::Arc;

use parking_lot::Mutex;
use strowger::{Actor, ActorSystem, Context};
use tracing::Subscriber;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context as Layered, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// Starts a chain of itself, one below the other.
struct Chain;

impl Actor for Chain {
    type Msg = Infallible;
    type Args = u32;
    type Error = strowger::BoxError;

    async fn pre_start(left: u32, cx: &mut Context<Self>) -> Result<Self, Self::Error> {
        if left > 0 {
            cx.spawn::<Self>("next", left - 1)?;
        }
        Ok(Self)
    }

    async fn handle(
        &mut self,
        never: Infallible,
        _: &mut Context<Self>,
    ) -> Result<(), Self::Error> {
        match never {}
    }
}

fn block_on(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime on this thread").block_on(future);
}

/// Notes the spans of actors, and the parent of each.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<(String, bool)>>>);

#[derive(Default)]
struct PathOf(String);

impl tracing::field::Visit for PathOf {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        if field.name() == "path" {
            self.0 = format!("{value:?}");
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, spans: Layered<'_, S>) {
        let span = spans.span(id).expect("a new span is in the registry");
        if span.name() == "actor" {
            let mut path = PathOf::default();
            attributes.record(&mut path);
            self.0.lock().push((path.0, span.parent().is_some()));
        }
    }
}

#[test]
fn spans_have_paths_and_do_not_nest() {
    let spans = Spans::default();
    let subscriber = tracing_subscriber::registry().with(spans.clone());
    tracing::subscriber::with_default(subscriber, || {
        block_on(async {
            let system = ActorSystem::new("test").unwrap();
            let first = system.spawn::<Chain>("chain", 2).unwrap();
            let deepest = "/chain/next/next";
            while system.find(deepest).is_none() {
                tokio::task::yield_now().await;
            }
            first.stop();
            first.stopped().await;
        });
    });
    let expected = ["/chain", "/chain/next", "/chain/next/next"];
    let expected: Vec<_> = expected.map(|path| (path.to_owned(), false)).into();
    assert_eq!(*spans.0.lock(), expected);
}
