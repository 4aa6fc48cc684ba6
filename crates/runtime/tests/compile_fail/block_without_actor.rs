//! The attribute goes on the block of the `Actor` trait.

use std::convert::Infallible;

use strowger::{Actor, Context, Request, handlers};

struct Add(u64);
struct Get;

impl Request for Get {
    type Reply = u64;
}

struct Counter(u64);

#[handlers]
impl Counter {
    async fn add(&mut self, Add(more): Add) {
        self.0 += more;
    }
}

fn main() {}
