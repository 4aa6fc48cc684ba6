//! The harness of the comparisons: it measures cases in turns and checks their results.
//!
//! Every figure comes from the same loop. A case is warmed up and sized until one sample is long
//! enough to be read off a clock. Then all subjects of a row run one after the other, round after
//! round, so that a slow minute of the machine affects all of them. Rows are printed to standard
//! output as JSON, one per line, each as soon as it is known.

mod allocation;
mod machine;
mod pin;
mod plan;
mod row;
mod trim;
mod usage;

pub use allocation::{CountingAllocator, LiveBytes, allocations};
pub use machine::Machine;
pub use pin::{pin, workers};
pub use plan::{Case, Counted, Estimate, Plan, Sample};
pub use row::Row;
pub use trim::trim;
