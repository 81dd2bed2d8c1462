//! The TxCache device: commands, order, errors, larger transactions.
mod decay;
mod failures;
mod given_up;
mod larger;
mod order;
mod profile;
mod rules;
mod support;
