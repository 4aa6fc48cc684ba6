//! Work that actors do the same way, whatever they are made of.

use std::time::{Duration, Instant};

use strowger::{Accepts, ActorRef, Ask};
use strowger_bench::Sample;
use strowger_wasm::{Call, Message};

use crate::payload;

/// How much of a life is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Until it has started.
    Start,
    /// Until its first message was answered.
    Answer,
    /// Until it has ended.
    Whole,
}

/// An answer that does not come in this time never comes.
pub const LONG: Duration = Duration::from_secs(60);

/// What an actor has handled so far, by its own count.
pub type Handled<'a> = &'a (dyn Fn() -> u64 + Sync);

/// Asks with the payload, and compares the answer with it.
pub async fn ask<M: Accepts<Ask<Call>>>(actor: &ActorRef<M>) {
    let answer = actor.ask_within(Call(payload()), LONG).await;
    let answer = answer.expect("it answers").expect("it is well");
    assert_eq!(answer, payload(), "an echo");
}

/// Tells an actor so many messages, until the last one was handled.
pub async fn tell<M>(actor: &ActorRef<M>, handled: Handled<'_>, count: u64) -> Sample
where
    M: Accepts<Message> + Accepts<Ask<Call>>,
{
    let (payload, before) = (payload(), handled());
    let start = Instant::now();
    for _ in 0..count {
        let told = actor.tell(Message(payload.clone())).await;
        assert!(told.is_ok(), "it runs");
    }
    // Answered after all that was told before it.
    ask(actor).await;
    let time = start.elapsed();
    // A question is counted when its answer has left: this one, and the one of the round before.
    let checked = handled() - before;
    assert!(
        (count..=count + 2).contains(&checked),
        "{checked} of {count}"
    );
    Sample {
        time,
        done: count,
        checked: count,
    }
}

/// Asks one to ask another so often; both say how often it was.
pub async fn requests<M: Accepts<Ask<Call>>>(relay: &ActorRef<M>, count: u64) -> Sample {
    let text = format!("times {count}");
    let call = Call(text.into_bytes().into());
    let start = Instant::now();
    let answer = relay.ask_within(call, LONG).await;
    let time = start.elapsed();
    let answer = answer.expect("it answers").expect("it is well");
    let answered = std::str::from_utf8(&answer).map(str::parse);
    assert_eq!(answered, Ok(Ok(count)), "all were answered");
    Sample {
        time,
        done: count,
        checked: count,
    }
}

/// Lets an actor fail over a message again and again, until its successor answers.
pub async fn restarts<M>(actor: &ActorRef<M>, count: u64) -> Sample
where
    M: Accepts<Message> + Accepts<Ask<Call>>,
{
    let mut time = Duration::ZERO;
    for _ in 0..count {
        let start = Instant::now();
        let told = actor.try_tell(Message((*b"panic").into()));
        assert!(told.is_ok(), "it runs");
        let answer = actor.ask_within(Call(payload()), LONG).await;
        time += start.elapsed();
        assert!(
            matches!(answer, Ok(Ok(_))),
            "the next life answers: {answer:?}"
        );
    }
    Sample {
        time,
        done: count,
        checked: count,
    }
}

/// The publications between two looks at whether all were handled.
pub const ROUND: u64 = 50;

/// Publishes so often, until all have handled the last one.
pub async fn fan_out<M: Accepts<Ask<Call>>>(
    publish: impl Fn() -> usize,
    actors: &[ActorRef<M>],
    count: u64,
) -> Sample {
    let (mut done, mut checked) = (0, 0);
    let start = Instant::now();
    while done < count {
        for _ in 0..ROUND {
            checked += publish() as u64;
        }
        for actor in actors {
            ask(actor).await;
        }
        done += ROUND;
    }
    let time = start.elapsed();
    assert_eq!(checked, done * actors.len() as u64, "delivered to all");
    Sample {
        time,
        done,
        checked,
    }
}

/// Tells an actor messages for a while; how many it handled a second.
pub async fn sustain<M>(actor: &ActorRef<M>, handled: Handled<'_>, span: Duration) -> (f64, u64)
where
    M: Accepts<Message> + Accepts<Ask<Call>>,
{
    let (payload, before) = (payload(), handled());
    let start = Instant::now();
    while start.elapsed() < span {
        for _ in 0..256 {
            let told = actor.tell(Message(payload.clone())).await;
            assert!(told.is_ok(), "it runs");
        }
    }
    ask(actor).await;
    let count = handled() - before;
    (count as f64 / start.elapsed().as_secs_f64(), count)
}

/// The memory that the process has in use, in octets.
pub fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/statm").expect("this is Linux");
    let pages = status
        .split(' ')
        .nth(1)
        .and_then(|text| text.parse::<f64>().ok());
    pages.expect("a number of pages") * 4096.0
}
