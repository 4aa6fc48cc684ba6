//! What is asked of a codec.

/// A codec under comparison.
pub trait Codec: 'static {
    /// The name in the table.
    const NAME: &'static str;
    /// What is used again from message to message, if anything.
    type Scratch: Default + 'static;
    /// A decoded Session Establishment Request that owns all its values, rules included.
    type Owned: 'static;
    /// What an establishment is encoded from: typed values, built before the clock runs.
    type Values: 'static;
    /// What a heartbeat is encoded from.
    type HeartbeatValues: 'static;

    /// Decodes and checks an establishment and folds every leaf of every rule, in whatever way is
    /// cheapest for this codec. Nothing for a message that is not right.
    fn read(scratch: &mut Self::Scratch, octets: &[u8]) -> Option<u64>;
    /// Decodes and checks an establishment into owned values.
    fn decode(octets: &[u8]) -> Option<Self::Owned>;
    /// Folds every leaf of every rule of owned values.
    fn fold(owned: &Self::Owned) -> u64;
    /// Builds the values of an establishment with so many pairs of rules.
    fn values(pairs: usize) -> Self::Values;
    /// Appends the octets of an establishment.
    fn encode(values: &Self::Values, buffer: &mut Vec<u8>);
    /// Decodes a Heartbeat Request and returns its Recovery Time Stamp.
    fn read_heartbeat(scratch: &mut Self::Scratch, octets: &[u8]) -> Option<u32>;
    /// Builds the values of a heartbeat.
    fn heartbeat_values() -> Self::HeartbeatValues;
    /// Appends the octets of a heartbeat.
    fn encode_heartbeat(values: &Self::HeartbeatValues, buffer: &mut Vec<u8>);
}
