//! Answers that are kept, so that a repeated request is not handled again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::store::{Batch, Row, Table};

/// A name that the sender of a request gives it, and gives again when it repeats the request.
///
/// The actor handles the first of the requests with one key and answers the others with the same
/// answer. Keys of different entities are independent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(Arc<str>);

impl IdempotencyKey {
    /// The maximum length of a key, in bytes.
    pub const MAX_LEN: usize = 255;

    /// Creates a key.
    ///
    /// # Errors
    /// Fails if the key is longer than [`Self::MAX_LEN`].
    pub fn new(key: impl Into<Arc<str>>) -> Result<Self, IdempotencyKeyTooLong> {
        let key = key.into();
        match key.len() {
            length if length > Self::MAX_LEN => Err(IdempotencyKeyTooLong { length }),
            _ => Ok(Self(key)),
        }
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error returned for an idempotency key that is too long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "idempotency key is {length} bytes, limit is {}",
    IdempotencyKey::MAX_LEN
)]
pub struct IdempotencyKeyTooLong {
    /// The length of the key, in bytes.
    pub length: usize,
}

/// The answers that an entity keeps. A request that is repeated after its answer has left the
/// window is handled again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerWindow {
    /// Maximum number of answers; beyond it, the oldest is removed.
    pub count: usize,
    /// Maximum age of an answer, by the wall clock of the store. Older answers are removed when the
    /// next one is kept.
    pub age: Duration,
}

impl AnswerWindow {
    /// 1000 answers of at most a day.
    pub const DEFAULT: Self = Self {
        count: 1000,
        age: Duration::from_secs(24 * 3600),
    };
}

/// The kept answers of an entity, in memory.
#[derive(Debug)]
pub(crate) struct KeptAnswers {
    window: AnswerWindow,
    by_key: BTreeMap<IdempotencyKey, KeptAnswer>,
    /// The keys in the order in which their answers were kept.
    order: BTreeMap<u64, IdempotencyKey>,
}

#[derive(Debug)]
struct KeptAnswer {
    number: u64,
    /// The time since the Unix epoch at which the answer was kept.
    at: Duration,
    answer: Vec<u8>,
}

impl KeptAnswers {
    pub(crate) fn new(window: AnswerWindow) -> Self {
        Self {
            window,
            by_key: BTreeMap::new(),
            order: BTreeMap::new(),
        }
    }

    /// Adds an answer that was stored. Returns `None` if the row is malformed.
    pub(crate) fn load(&mut self, row: &Row) -> Option<()> {
        let key = IdempotencyKey::new(std::str::from_utf8(&row.key).ok()?).ok()?;
        let (number, rest) = row.value.split_first_chunk()?;
        let (at, answer) = rest.split_first_chunk()?;
        let number = u64::from_be_bytes(*number);
        let kept = KeptAnswer {
            number,
            at: Duration::from_millis(u64::from_be_bytes(*at)),
            answer: answer.to_vec(),
        };
        self.order.insert(number, key.clone());
        self.by_key.insert(key, kept);
        Some(())
    }

    /// Returns the answer to the earlier request with this key, if it is in the window.
    pub(crate) fn get(&self, key: &IdempotencyKey, now: Duration) -> Option<&[u8]> {
        let kept = self.by_key.get(key)?;
        self.is_in_window(kept, now).then_some(&*kept.answer)
    }

    /// Keeps an answer, and removes those that leave the window.
    pub(crate) fn keep(
        &mut self,
        key: IdempotencyKey,
        answer: Vec<u8>,
        now: Duration,
        batch: &mut Batch,
    ) {
        if let Some(expired) = self.by_key.remove(&key) {
            self.order.remove(&expired.number);
        }
        let number = self.order.last_key_value().map_or(0, |(last, _)| last + 1);
        let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let mut value = number.to_be_bytes().to_vec();
        value.extend(millis.to_be_bytes());
        value.extend(&answer);
        batch.put(Table::Answers, key.0.as_bytes(), value);
        self.order.insert(number, key.clone());
        let at = Duration::from_millis(millis);
        self.by_key.insert(key, KeptAnswer { number, at, answer });
        while let Some((&oldest, key)) = self.order.first_key_value() {
            let kept = self.by_key.get(key);
            let stays = kept.is_some_and(|kept| self.is_in_window(kept, now));
            if stays && self.by_key.len() <= self.window.count.max(1) {
                break;
            }
            batch.remove(Table::Answers, key.0.as_bytes());
            self.by_key.remove(key);
            self.order.remove(&oldest);
        }
    }

    fn is_in_window(&self, kept: &KeptAnswer, now: Duration) -> bool {
        now.saturating_sub(kept.at) <= self.window.age
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> IdempotencyKey {
        IdempotencyKey::new(number.to_string()).expect("a short key")
    }

    fn known(answers: &KeptAnswers, now: Duration) -> Vec<u64> {
        let is_known = |number: &u64| answers.get(&key(*number), now).is_some();
        (0..10).filter(is_known).collect()
    }

    #[test]
    fn answers_leave_the_window_by_count_and_age() {
        let second = Duration::from_secs(1);
        let window = AnswerWindow {
            count: 3,
            age: 10 * second,
        };
        let mut answers = KeptAnswers::new(window);
        for number in 0..5 {
            let now = second * u32::try_from(number).expect("small");
            answers.keep(key(number), vec![1], now, &mut Batch::new());
        }
        assert_eq!(known(&answers, 5 * second), [2, 3, 4]);
        assert_eq!(known(&answers, 13 * second), [3, 4]);
        answers.keep(key(9), vec![1], 14 * second, &mut Batch::new());
        assert_eq!(answers.by_key.len(), 2, "old ones are removed");
        assert_eq!(known(&answers, 14 * second), [4, 9]);
    }
}
