//! Protections of the executors that a test can switch off.

tantalum_base::fault_points! {
    /// A caller that waits for its durable write keeps the executor to itself: others' requests wait too.
    ExecutorKeptWhileWaiting,
}
