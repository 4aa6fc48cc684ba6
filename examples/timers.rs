//! Timers: one that repeats, one that every word postpones, and one that is cancelled.
//!
//! A timer belongs to the incarnation that set it and ends with it: no task sleeps anywhere, and no
//! late message reaches the next incarnation.
//!
//! `cargo run -p strowger-examples timers`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::convert::Infallible;
use std::time::Duration;

use strowger::{Actor, ActorSystem, BoxError, Context, Exit, TimerKey, handlers};

/// Somebody says a word.
struct Word(&'static str);

/// The coin box counts another unit.
struct Unit;

/// Nobody has spoken for a while.
struct Silence;

/// The call has reached the maximum length.
struct TooLong;

/// A call from a coin box.
struct Call {
    units: u32,
    silence: TimerKey,
    too_long: TimerKey,
}

const UNIT: Duration = Duration::from_millis(10);

#[handlers]
impl Actor for Call {
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), cx: &mut Context<Self>) -> Result<Self, Infallible> {
        cx.send_every(UNIT, || Unit);
        Ok(Self {
            units: 0,
            silence: cx.send_after(1000 * UNIT, Silence),
            too_long: cx.send_after(2000 * UNIT, TooLong),
        })
    }

    /// Every word postpones the alarm.
    async fn word(&mut self, Word(word): Word, cx: &mut Context<Self>) {
        println!("somebody says {word}");
        cx.cancel(self.silence);
        self.silence = cx.send_after(10 * UNIT, Silence);
    }

    async fn unit(&mut self, _: Unit) {
        self.units += 1;
    }

    async fn silence(&mut self, _: Silence, cx: &mut Context<Self>) {
        println!("silence: the exchange hangs up");
        println!(
            "the longest call was called off: {}",
            cx.cancel(self.too_long)
        );
        cx.stop();
    }

    async fn too_long(&mut self, _: TooLong, cx: &mut Context<Self>) {
        println!("too long");
        cx.stop();
    }

    async fn post_stop(self, exit: &Exit, _: &mut Context<Self>) {
        println!("the coin box counted: {}", self.units > 0);
        println!("it ends: {exit}");
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), BoxError> {
    let system = ActorSystem::new("example")?;
    let call = system.spawn::<Call>("call", ())?;
    for word in ["hello", "and", "goodbye"] {
        call.try_tell(Word(word))?;
    }
    call.stopped().await;
    Ok(())
}
