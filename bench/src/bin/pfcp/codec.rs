//! The operations that are measured for each codec.

/// A codec under comparison.
pub trait Codec: 'static {
    /// The name in the table.
    const NAME: &'static str;
    /// Buffers that are reused from message to message, if any.
    type Scratch: Default + 'static;
    /// A decoded Session Establishment Request that owns all its values, rules included.
    type Owned: 'static;
    /// The input of an encoded establishment: typed values, built before the clock runs.
    type Values: 'static;
    /// The input of an encoded heartbeat.
    type HeartbeatValues: 'static;

    /// Decodes and checks an establishment and folds every leaf of every rule, in whatever way is
    /// cheapest for this codec. Returns `None` for an invalid message.
    fn read(scratch: &mut Self::Scratch, bytes: &[u8]) -> Option<u64>;
    /// Decodes and checks an establishment into owned values.
    fn decode(bytes: &[u8]) -> Option<Self::Owned>;
    /// Folds every leaf of every rule of owned values.
    fn fold(owned: &Self::Owned) -> u64;
    /// Builds the values of an establishment with this number of pairs of rules.
    fn values(pairs: usize) -> Self::Values;
    /// Appends the bytes of an establishment.
    fn encode(values: &Self::Values, buffer: &mut Vec<u8>);
    /// Decodes a Heartbeat Request and returns its Recovery Time Stamp.
    fn read_heartbeat(scratch: &mut Self::Scratch, bytes: &[u8]) -> Option<u32>;
    /// Builds the values of a heartbeat.
    fn heartbeat_values() -> Self::HeartbeatValues;
    /// Appends the bytes of a heartbeat.
    fn encode_heartbeat(values: &Self::HeartbeatValues, buffer: &mut Vec<u8>);
}
