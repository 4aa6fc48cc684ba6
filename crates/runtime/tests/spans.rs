//! Spans of actors. These tests have a program of their own, because the subscriber of spans is
//! global to the process.

use std::convert::Infallible;
use std::sync::Arc;

use parking_lot::Mutex;
use strowger::{Actor, ActorSystem, ChildSpec, Context, Strategy, Supervisor};
use tracing::Subscriber;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context as Layered, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// Starts a chain of children of its own type, each below the other.
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

/// Fails on every message.
struct Failing;

impl Actor for Failing {
    type Msg = ();
    type Args = ();
    type Error = strowger::BoxError;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Self::Error> {
        Ok(Self)
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), Self::Error> {
        Err("told".into())
    }
}

/// Records the spans of actors: path, restarts, and `true` if the actor has a parent.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<(String, u64, bool)>>>);

#[derive(Default)]
struct Fields {
    path: String,
    restarts: Option<u64>,
}

impl tracing::field::Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        if field.name() == "path" {
            self.path = format!("{value:?}");
        }
    }

    fn record_u64(&mut self, field: &tracing::field::Field, value: u64) {
        if field.name() == "restarts" {
            self.restarts = Some(value);
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, spans: Layered<'_, S>) {
        let span = spans.span(id).expect("a new span is in the registry");
        if span.name() == "actor" {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            let restarts = fields.restarts.expect("each span says how often");
            let span = (fields.path, restarts, span.parent().is_some());
            self.0.lock().push(span);
        }
    }
}

#[test]
fn spans_have_paths_and_restarts_and_do_not_nest() {
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
            let child = ChildSpec::new::<Failing>("failing", ());
            let top = Supervisor::new(Strategy::OneForOne).child(child);
            let top = system.supervise("top", top).await.unwrap();
            let failing = top.child::<()>("failing").unwrap();
            for restarts in 1..=2 {
                failing.tell(()).await.unwrap();
                while failing.erase().info().restarts < restarts {
                    tokio::task::yield_now().await;
                }
            }
            top.stop();
            top.stopped().await;
        });
    });
    let expected = [
        ("/chain", 0),
        ("/chain/next", 0),
        ("/chain/next/next", 0),
        ("/top", 0),
        ("/top/failing", 0),
        ("/top/failing", 1),
        ("/top/failing", 2),
    ];
    let expected = expected.map(|(path, restarts)| (path.to_owned(), restarts, false));
    assert_eq!(*spans.0.lock(), expected);
}
