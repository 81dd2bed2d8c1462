//! Protections of the executors that a test can switch off.

tantalum_base::fault_points! {
    /// A caller that waits for its durable write keeps the executor, so requests of other callers wait too.
    ExecutorKeptWhileWaiting,
}
