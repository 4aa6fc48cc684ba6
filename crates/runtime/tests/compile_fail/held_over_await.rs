//! Values that a handler holds across an await must be `Send`.

use std::convert::Infallible;

use strowger::{Actor, Context, Request, handlers};

struct Add(u64);
struct Get;

impl Request for Get {
    type Reply = u64;
}

struct Counter(u64);

#[handlers]
impl Actor for Counter {
    type Args = u64;
    type Error = Infallible;

    async fn pre_start(first: u64, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(first))
    }

    async fn add(&mut self, Add(more): Add) {
        let shared = Rc::new(more);
        tokio::task::yield_now().await;
        self.0 += *shared;
    }

    async fn get(&mut self, _: Get) -> u64 {
        self.0
    }
}

use std::rc::Rc;

fn main() {}
