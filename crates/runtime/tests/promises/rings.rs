//! Of the asks that wait for each other in a ring, exactly one fails, and soon.

use std::time::{Duration, Instant};

use strowger::{Accepts, Actor, ActorRef, ActorSystem, Ask, AskError, BoxError, Context, Request};

use crate::support::{MAX_WAIT, current_thread, exclusive_machine, on_worker, runtime};

/// Asks the next link before it replies.
struct Link(Option<ActorRef<Message>>);

enum Message {
    Next(ActorRef<Self>),
    Errors(Ask<Errors>),
}

/// Asks for the number of asks that failed on the way, including this one.
struct Errors;

impl Request for Errors {
    type Reply = u32;
}

impl Accepts<ActorRef<Self>> for Message {
    fn wrap(next: ActorRef<Self>) -> Self {
        Self::Next(next)
    }
}

impl Accepts<Ask<Errors>> for Message {
    fn wrap(ask: Ask<Errors>) -> Self {
        Self::Errors(ask)
    }
}

impl Actor for Link {
    type Msg = Message;
    type Args = ();
    type Error = BoxError;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self(None))
    }

    async fn handle(&mut self, message: Message, _: &mut Context<Self>) -> Result<(), BoxError> {
        match message {
            Message::Next(next) => self.0 = Some(next),
            Message::Errors(ask) => {
                let next = self.0.as_ref().ok_or("told before")?;
                let errors = match next.ask(Errors).await {
                    Ok(errors) => errors,
                    Err(AskError::Ring { path }) => {
                        assert_eq!(path.first(), path.last(), "from the asker to the asker");
                        1
                    }
                    Err(error) => return Err(error.into()),
                };
                ask.reply.send(errors);
            }
        }
        Ok(())
    }
}

/// A ring of `length` actors, each told which one is next.
async fn ring(system: &ActorSystem, length: usize) -> Vec<ActorRef<Message>> {
    ring_through(&[system], length).await
}

/// The same with actors of several systems in turn.
async fn ring_through(systems: &[&ActorSystem], length: usize) -> Vec<ActorRef<Message>> {
    let spawn = |number: usize| {
        let system = systems[number % systems.len()];
        system.spawn::<Link>(format!("{length}-{number}"), ())
    };
    let links: Result<Vec<_>, _> = (0..length).map(spawn).collect();
    let links = links.expect("the names are free");
    for (number, link) in links.iter().enumerate() {
        let next = links[(number + 1) % length].clone();
        link.tell(next).await.expect("it is there");
    }
    links
}

#[test]
fn one_ask_of_a_ring_fails_and_the_rest_succeed() {
    let _alone = exclusive_machine();
    for runtime in [runtime(1), runtime(2), current_thread()] {
        on_worker(&runtime, async {
            let system = ActorSystem::new("rings").expect("within tokio");
            for length in [1, 2, 3, 20] {
                let links = ring(&system, length).await;
                let begun = Instant::now();
                assert_eq!(links[0].ask(Errors).await, Ok(1));
                let took = begun.elapsed();
                assert!(took < Duration::from_secs(1), "found after {took:?}");
                for link in links {
                    link.stop();
                    link.stopped().await;
                }
            }
            system.shutdown(MAX_WAIT).await;
        });
    }
}

#[test]
fn concurrently_formed_rings_are_broken() {
    let _alone = exclusive_machine();
    on_worker(&runtime(2), async {
        let system = ActorSystem::new("rings").expect("within tokio");
        let links = ring(&system, 6).await;
        let begun = Instant::now();
        let asks: Vec<_> = links
            .iter()
            .map(|link| {
                let link = link.clone();
                tokio::spawn(async move { link.ask(Errors).await })
            })
            .collect();
        for ask in asks {
            let errors = ask.await.expect("no panic").expect("an answer");
            assert_eq!(errors, 1, "each is answered through one that failed");
        }
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(2), "found after {took:?}");
        system.shutdown(MAX_WAIT).await;
    });
}

#[test]
fn ring_across_two_systems_ends_at_its_deadline() {
    let _alone = exclusive_machine();
    for runtime in [runtime(1), runtime(2), current_thread()] {
        on_worker(&runtime, async {
            let one = ActorSystem::new("one").expect("within tokio");
            let other = ActorSystem::new("other").expect("within tokio");
            let links = ring_through(&[&one, &other], 4).await;
            let limit = Duration::from_millis(200);
            let begun = Instant::now();
            // Neither system sees the whole ring.
            let asked = links[0].ask_within(Errors, limit).await;
            assert_eq!(asked, Err(AskError::TimedOut));
            let took = begun.elapsed();
            assert!(took < limit + Duration::from_millis(300), "after {took:?}");
            for link in &links {
                link.kill();
                link.stopped().await;
            }
            one.shutdown(MAX_WAIT).await;
            other.shutdown(MAX_WAIT).await;
        });
    }
}
