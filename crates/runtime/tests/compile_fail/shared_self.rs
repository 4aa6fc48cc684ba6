//! A handler takes `&mut self`.

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
        self.0 += more;
    }

    async fn get(&self, _: Get) -> u64 {
        self.0
    }
}

fn main() {}
