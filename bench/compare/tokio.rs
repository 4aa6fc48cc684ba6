//! The code that `docs/compare.md` shows for tokio: a hand-written task and a channel.

use tokio::sync::{mpsc, oneshot};

pub enum Message {
    Add(u64),
    Get(oneshot::Sender<u64>),
}

pub async fn counter(mut sum: u64, mut mailbox: mpsc::Receiver<Message>) {
    while let Some(message) = mailbox.recv().await {
        match message {
            Message::Add(more) => sum += more,
            Message::Get(reply) => {
                let _ = reply.send(sum);
            }
        }
    }
}

pub async fn program() -> Option<u64> {
    let (counter, mailbox) = mpsc::channel(1024);
    let task = tokio::spawn(self::counter(40, mailbox));
    counter.send(Message::Add(2)).await.ok()?;
    let (reply, answer) = oneshot::channel();
    counter.send(Message::Get(reply)).await.ok()?;
    let sum = answer.await.ok();
    drop(counter);
    task.await.ok()?;
    sum
}
