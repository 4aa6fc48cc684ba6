//! Models of an answer and of the task that waits for it, in every order.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use ::loom::model;
use ::loom::sync::atomic::{AtomicUsize, Ordering};
use ::loom::thread;

use super::slot;

/// Counts how often it is woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn an_answer_that_comes_as_its_question_becomes_watched_is_seen_or_wakes() {
    model(|| {
        let (reply, mut answer) = slot::<u32>();
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        let cx = Context::from_waker(&waker);
        let answering = thread::spawn(move || reply.send(7));
        let mut came = answer.poll(&cx);
        let mut open = None;
        if came.is_pending() {
            let noted = answer.wait_noted(&cx, |answer| {
                open = Some(answer.watch());
                Ok::<(), Infallible>(())
            });
            came = noted.expect("it is noted");
        }
        answering.join().expect("no panic");
        if came.is_pending() {
            let woken = bell.0.load(Ordering::Relaxed);
            assert!(woken > 0, "it waits until its deadline");
            came = answer.poll(&cx);
        }
        assert_eq!(came, Poll::Ready(Ok(7)));
        assert!(open.is_none_or(|open| !open.is_open()), "it is told");
    });
}
