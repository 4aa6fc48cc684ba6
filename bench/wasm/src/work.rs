//! Work that actors do in the same way, however they are implemented.

use std::time::{Duration, Instant};

use strowger::{Accepts, ActorRef, Ask};
use strowger_bench::Sample;
use strowger_wasm::{Call, Message};

use crate::payload;

/// The part of an actor's lifecycle that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecyclePart {
    /// Until the actor has started.
    Start,
    /// Until the first message has been answered.
    Answer,
    /// Until the actor has stopped.
    Whole,
}

/// The time after which an answer is given up.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the number of messages that an actor has handled, by its own count.
pub type Handled<'a> = &'a (dyn Fn() -> u64 + Sync);

/// Asks with the payload, and checks that the answer is the same.
pub async fn ask<M: Accepts<Ask<Call>>>(actor: &ActorRef<M>) {
    let answer = actor.ask_within(Call(payload()), ANSWER_TIMEOUT).await;
    let answer = answer.expect("it answers").expect("it is valid");
    assert_eq!(answer, payload(), "an echo");
}

/// Tells an actor this number of messages, and waits until the last one is handled.
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
    // Answered after everything that was told before it.
    ask(actor).await;
    let time = start.elapsed();
    // An ask is counted once its answer has been sent: this ask, and the one of the previous round.
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

/// Makes one actor ask another this number of times; both report the count.
pub async fn requests<M: Accepts<Ask<Call>>>(relay: &ActorRef<M>, count: u64) -> Sample {
    let text = format!("times {count}");
    let call = Call(text.into_bytes().into());
    let start = Instant::now();
    let answer = relay.ask_within(call, ANSWER_TIMEOUT).await;
    let time = start.elapsed();
    let answer = answer.expect("it answers").expect("it is valid");
    let answered = std::str::from_utf8(&answer).map(str::parse);
    assert_eq!(answered, Ok(Ok(count)), "all were answered");
    Sample {
        time,
        done: count,
        checked: count,
    }
}

/// Makes an actor fail on a message again and again, each time until its next incarnation answers.
pub async fn restarts<M>(actor: &ActorRef<M>, count: u64) -> Sample
where
    M: Accepts<Message> + Accepts<Ask<Call>>,
{
    let mut time = Duration::ZERO;
    for _ in 0..count {
        let start = Instant::now();
        let told = actor.try_tell(Message((*b"panic").into()));
        assert!(told.is_ok(), "it runs");
        let answer = actor.ask_within(Call(payload()), ANSWER_TIMEOUT).await;
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

/// Number of publications between two checks that all were handled.
pub const ROUND: u64 = 50;

/// Publishes this number of times, and waits until all actors have handled the last event.
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

/// Tells an actor messages for a while; returns the number handled per second, and in total.
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

/// Returns the resident memory of the process, in bytes.
pub fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/statm").expect("this is Linux");
    let pages = status
        .split(' ')
        .nth(1)
        .and_then(|text| text.parse::<f64>().ok());
    pages.expect("a number of pages") * 4096.0
}
