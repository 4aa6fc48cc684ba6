//! All benchmarks that measure time.

mod actor_benchmarks;
mod actor_lifecycle_benchmarks;
mod ie_operations;
mod message_benchmarks;
mod message_operations;
mod messaging_benchmarks;
mod scalability_benchmarks;
mod supervisor_benchmarks;

criterion::criterion_main!(
    actor_benchmarks::group,
    actor_lifecycle_benchmarks::group,
    ie_operations::group,
    message_benchmarks::group,
    message_operations::group,
    messaging_benchmarks::group,
    scalability_benchmarks::group,
    supervisor_benchmarks::group,
);
