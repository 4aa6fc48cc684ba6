//! The modifications of a load: their number and their kinds.

use serde::Deserialize;

/// A mix of modifications, as written in a file.
///
/// ```
/// use strowger_pfcp_node::LoadMix;
///
/// let mix: LoadMix = toml::from_str("[shares]\nhandover = 1")?;
/// assert_eq!((mix.modifications, mix.shares.idle), (1.0, 0.0));
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LoadMix {
    /// Number of modifications per establishment: 0.5 is one for every two.
    pub modifications: f64,
    /// The proportions of the kinds of modifications.
    pub shares: ChangeShares,
}

/// The proportions of the kinds of modifications, relative to the sum of all.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChangeShares {
    /// Handovers: Update FAR with another tunnel in Outer Header Creation, and end markers.
    #[serde(default)]
    pub handover: f64,
    /// UEs that become idle (Update FAR: buffer and notify), and are connected again by the next
    /// modification or as soon as the peer reports downlink data.
    #[serde(default)]
    pub idle: f64,
    /// Rate changes: Update QER.
    #[serde(default)]
    pub qos: f64,
    /// Usage queries: Query URR.
    #[serde(default)]
    pub report: f64,
    /// Precedence changes: Update PDR.
    #[serde(default)]
    pub precedence: f64,
}

/// The error returned when a mix is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MixError {
    /// A number is out of range.
    #[error("`{key}` is {value}; it must be a number from 0 to {most}")]
    Range {
        /// Key of the share whose value is out of range.
        key: &'static str,
        /// The configured value.
        value: f64,
        /// The largest allowed value.
        most: f64,
    },
    /// All kinds of modifications have a share of 0.
    #[error("every one of `shares` is 0, so there is no modification to send")]
    Nothing,
}

impl Default for LoadMix {
    /// Returns a mix with one modification per establishment.
    fn default() -> Self {
        Self {
            modifications: 1.0,
            shares: ChangeShares::default(),
        }
    }
}

impl Default for ChangeShares {
    /// Returns shares of one half for idle UEs and their reconnection, three tenths for handovers,
    /// one tenth for rate changes, and one tenth for usage queries.
    fn default() -> Self {
        Self {
            handover: 3.0,
            idle: 5.0,
            qos: 1.0,
            report: 1.0,
            precedence: 0.0,
        }
    }
}

impl LoadMix {
    /// The default mix as a TOML file with a comment for each key.
    pub const COMMENTED: &'static str = include_str!("mix.toml");

    /// Checks the constraints that the types do not express.
    ///
    /// # Errors
    /// Returns an error if a number is out of range, or if all shares are 0.
    pub fn check(&self) -> Result<(), MixError> {
        in_range("modifications", self.modifications, 100.0)?;
        self.shares.check()
    }
}

fn in_range(key: &'static str, value: f64, most: f64) -> Result<(), MixError> {
    match (0.0..=most).contains(&value) {
        true => Ok(()),
        false => Err(MixError::Range { key, value, most }),
    }
}

/// The kinds of modifications, in the order of their shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeKind {
    Handover,
    Idle,
    Qos,
    Report,
    Precedence,
}

const KINDS: [(ChangeKind, &str); 5] = [
    (ChangeKind::Handover, "shares.handover"),
    (ChangeKind::Idle, "shares.idle"),
    (ChangeKind::Qos, "shares.qos"),
    (ChangeKind::Report, "shares.report"),
    (ChangeKind::Precedence, "shares.precedence"),
];

impl ChangeShares {
    fn all(&self) -> [f64; KINDS.len()] {
        [
            self.handover,
            self.idle,
            self.qos,
            self.report,
            self.precedence,
        ]
    }

    pub(super) fn check(&self) -> Result<(), MixError> {
        for ((_, key), share) in KINDS.iter().zip(self.all()) {
            in_range(key, share, 1e6)?;
        }
        match self.all().iter().sum::<f64>() > 0.0 {
            true => Ok(()),
            false => Err(MixError::Nothing),
        }
    }
}

/// A deterministic sequence of kinds, evenly spread according to their shares.
#[derive(Clone, Debug)]
pub(super) struct KindSequence {
    shares: [f64; KINDS.len()],
    due: [f64; KINDS.len()],
}

impl KindSequence {
    pub(super) fn new(shares: &ChangeShares) -> Self {
        Self {
            shares: shares.all(),
            due: [0.0; KINDS.len()],
        }
    }

    /// Returns the next kind: the one that is furthest behind its share (smooth weighted
    /// round-robin).
    pub(super) fn next(&mut self) -> ChangeKind {
        let mut first = 0;
        for at in 0..KINDS.len() {
            self.due[at] += self.shares[at];
            if self.due[at] > self.due[first] {
                first = at;
            }
        }
        self.due[first] -= self.shares.iter().sum::<f64>();
        KINDS[first].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commented_mix_equals_default() {
        let mix: LoadMix = toml::from_str(LoadMix::COMMENTED).unwrap();
        assert_eq!(mix, LoadMix::default());
        assert_eq!(mix.check(), Ok(()));
        let page = include_str!("../../../../docs/n4-node.md");
        assert!(page.contains(LoadMix::COMMENTED), "the page shows the file");
    }

    #[test]
    fn change_kinds_follow_their_shares() {
        let mut kinds = KindSequence::new(&ChangeShares::default());
        let dealt: Vec<ChangeKind> = (0..100).map(|_| kinds.next()).collect();
        let count = |kind| dealt.iter().filter(|one| **one == kind).count();
        let counts = KINDS.map(|(kind, _)| count(kind));
        assert_eq!(counts, [30, 50, 10, 10, 0]);
        // Kinds are spread evenly, not grouped.
        assert!(dealt[..10].contains(&ChangeKind::Report), "{dealt:?}");
    }

    #[test]
    fn invalid_mix_error_states_reason() {
        let read = |text: &str| toml::from_str::<LoadMix>(text);
        let error = |text| read(text).unwrap().check().unwrap_err().to_string();
        assert!(error("modifications = -1.0").contains("`modifications` is -1"));
        assert!(error("modifications = nan").contains("`modifications` is NaN"));
        assert!(error("[shares]\nqos = inf").contains("`shares.qos`"));
        assert!(error("[shares]\nidle = 0").contains("no modification to send"));
        let unknown = read("[shares]\nhandovers = 1").unwrap_err().to_string();
        assert!(unknown.contains("unknown field `handovers`"), "{unknown}");
    }
}
