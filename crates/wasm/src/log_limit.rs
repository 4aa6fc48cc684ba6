//! Rate limits of the log lines that components cause.
//!
//! Denied operations, log lines of the component and faults appear in the host's log. Each kind has
//! a rate per component, shared by all its incarnations and versions, so that no component can
//! flood the log. Lines beyond the rate are counted. The next line says how many were omitted, or
//! the last one of the incarnation.

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::metric::AUDIT;
use crate::token_bucket::TokenBucket;

/// Maximum number of lines per second about denied operations of one component, and also about its
/// faults; and about what is denied before a component is loaded, for all components together.
pub(crate) const LINES_PER_SECOND: u32 = 10;

/// A rate limiter for lines of one kind.
#[derive(Debug)]
pub(crate) struct LineLimiter(Mutex<LimiterState>);

#[derive(Debug)]
struct LimiterState {
    rate: u32,
    bucket: TokenBucket,
    omitted: u64,
}

impl LineLimiter {
    pub(crate) fn new(rate: u32) -> Self {
        Self(Mutex::new(LimiterState {
            rate,
            bucket: TokenBucket::new(rate),
            omitted: 0,
        }))
    }

    /// Asks for a line. Returns the number of lines omitted before it, or `None` if this line is to
    /// be omitted.
    pub(crate) fn take(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        if state.bucket.take(now) {
            return Some(std::mem::take(&mut state.omitted));
        }
        state.omitted += 1;
        None
    }

    /// Counts lines as omitted.
    pub(crate) fn omit(&self, count: u64) {
        self.0.lock().omitted += count;
    }

    /// Takes the number of omitted lines that were not reported yet, if a line is allowed now.
    fn take_omitted(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        let allowed = state.omitted > 0 && state.bucket.take(now);
        allowed.then(|| std::mem::take(&mut state.omitted))
    }

    /// Takes the number of omitted lines that were not reported yet, regardless of the rate.
    fn take_remaining(&self) -> Option<u64> {
        let omitted = std::mem::take(&mut self.0.lock().omitted);
        (omitted > 0).then_some(omitted)
    }

    fn set_rate(&self, rate: u32) {
        let mut state = self.0.lock();
        if state.rate != rate {
            (state.rate, state.bucket) = (rate, TokenBucket::new(rate));
        }
    }
}

/// The rate limiters of one component.
#[derive(Debug)]
pub(crate) struct LogLimits {
    component: Box<str>,
    /// Lines about denied operations. They have a rate of their own, so that a component that logs
    /// or fails often does not hide its attempts.
    pub(crate) audits: LineLimiter,
    /// Lines that the component logs.
    pub(crate) own: LineLimiter,
    /// Lines about its faults.
    pub(crate) faults: LineLimiter,
}

impl LogLimits {
    pub(crate) fn new(component: &str, rate: u32) -> Self {
        Self {
            component: component.into(),
            audits: LineLimiter::new(LINES_PER_SECOND),
            own: LineLimiter::new(rate),
            faults: LineLimiter::new(LINES_PER_SECOND),
        }
    }

    /// Takes over the rate of another version for the component's own lines.
    pub(crate) fn set_own_rate(&self, rate: u32) {
        self.own.set_rate(rate);
    }

    /// Reports the omitted lines at the end of an incarnation, if a line is allowed.
    pub(crate) fn report_omitted(&self, now: Instant) {
        self.log_omitted(|limiter| limiter.take_omitted(now));
    }

    fn log_omitted(&self, omitted: impl Fn(&LineLimiter) -> Option<u64>) {
        let component = &*self.component;
        if let Some(omitted) = omitted(&self.audits) {
            tracing::warn!(target: AUDIT, component, omitted, "further refusals not logged");
        }
        if let Some(omitted) = omitted(&self.own) {
            tracing::warn!(
                component,
                omitted,
                "log lines dropped: limits.log_rate exceeded"
            );
        }
        if let Some(omitted) = omitted(&self.faults) {
            tracing::warn!(component, omitted, "further faults not logged");
        }
    }
}

impl Drop for LogLimits {
    fn drop(&mut self) {
        self.log_omitted(LineLimiter::take_remaining);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    #[test]
    fn omitted_lines_are_reported_by_the_next_or_last_line() {
        let limiter = LineLimiter::new(2);
        let start = Instant::now();
        let taken: Vec<_> = (0..5).map(|_| limiter.take(start)).collect();
        assert_eq!(taken, [Some(0), Some(0), None, None, None]);
        assert_eq!(limiter.take_omitted(start), None, "there is no room");
        assert_eq!(limiter.take(start + Duration::from_secs(2)), Some(3));
        limiter.omit(7);
        assert_eq!(
            limiter.take_omitted(start + Duration::from_secs(4)),
            Some(7)
        );
        assert_eq!(limiter.take_omitted(start + Duration::from_secs(4)), None);
        limiter.omit(1);
        assert_eq!(
            (limiter.take_remaining(), limiter.take_remaining()),
            (Some(1), None)
        );
    }

    /// Calls without a rate limit, by file: no component can repeat them.
    const FREE: [(&str, usize, &str); 8] = [
        ("cache/disk.rs", 3, "once for each component that is loaded"),
        ("engine.rs", 1, "once for each class of engines"),
        ("guest/imports/basics.rs", 4, "its own lines, behind `own`"),
        (
            "guest_threads.rs",
            2,
            "about the host's threads, once for each",
        ),
        ("kv/disk.rs", 1, "once for each store"),
        (
            "registry.rs",
            1,
            "once for each upgrade that an owner grants",
        ),
        (
            "usage.rs",
            3,
            "ten seconds, or a stay on guest threads, apart",
        ),
        ("log_limit.rs", 3, "what was omitted"),
    ];

    #[test]
    fn every_log_line_a_component_can_cause_is_rate_limited() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut free = BTreeMap::new();
        let mut calls = 0;
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("it is a folder") {
                let path = entry.expect("it can be read").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = fs::read_to_string(&path).expect("it is text");
                let name = path.strip_prefix(&root).expect("below it").to_owned();
                let name = name.to_str().expect("text").to_owned();
                for call in calls_of(&text) {
                    calls += 1;
                    // `LineLimiter::take` is the only source of this number, so the line is within
                    // the rate.
                    if !call.contains("omitted") || name == "log_limit.rs" {
                        *free.entry(name.clone()).or_insert(0) += 1;
                    }
                }
            }
        }
        let known = FREE.map(|(name, count, _)| (name.to_owned(), count));
        assert_eq!(free, BTreeMap::from(known), "calls without a rate, by file");
        assert!(calls > 20, "they are found: {calls}");
    }

    /// Returns the arguments of each logging macro call.
    fn calls_of(text: &str) -> impl Iterator<Item = &str> {
        const MACROS: [&str; 5] = ["error!(", "warn!(", "info!(", "debug!(", "trace!("];
        let begins = text
            .match_indices("tracing::")
            .map(|(at, name)| &text[at + name.len()..]);
        let called = begins.filter_map(|rest| {
            let rest = MACROS.iter().find_map(|name| rest.strip_prefix(name))?;
            let mut open = 1;
            let end = rest.find(|letter| {
                open += match letter {
                    '(' => 1,
                    ')' => -1,
                    _ => 0,
                };
                open == 0
            })?;
            Some(&rest[..end])
        });
        called.collect::<Vec<_>>().into_iter()
    }
}
