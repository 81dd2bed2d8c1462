//! Targets for fuzzing: code that reads untrusted bytes. A [`Target`] must neither panic nor hang, whatever the bytes are.
//!
//! ```text
//! traces    traces of every format
//! network   servers over a network in memory: NBD's options and requests, the local protocol
//! tls       an NBD server with TLS: before the handshake, in it, and after it
//! volumes   VOLUME.toml, superblocks, and the anchors, headers, records and checkpoints of a volume's log
//! tiered    the flash and the journal of a volume with a home
//! pages     the pages of a store that have a checksum, changed and with corrected checksums
//! structures  the structures of volumes by name, and changes of their numbers, under right checksums
//! subjects    volumes and devices whose structures are changed, and the judgement of what they answer
//! mutation  random inputs made from seeds
//! ```
//!
//! `tests/mutated.rs` runs each target with random inputs in every run of the tests, and for a minute each in the nightly one.
//! `fuzz/` has the same targets for `cargo fuzz`, which finds inputs by the branches that they take.
mod mutation;
mod network;
mod pages;
mod structures;
mod subjects;
mod tiered;
mod tls;
mod traces;
mod volumes;

pub use mutation::mutated;

/// Code that reads untrusted bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is also the name of its file in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Reads an input.
    pub run: fn(&[u8]),
    /// Valid inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: [Target; 18] = [
    Target { name: "traces", run: traces::run, seeds: traces::seeds },
    Target { name: "nbd_options", run: network::nbd_options, seeds: network::option_seeds },
    Target { name: "nbd_requests", run: network::nbd_requests, seeds: network::request_seeds },
    Target { name: "tls_options", run: tls::options, seeds: tls::option_seeds },
    Target { name: "tls_handshake", run: tls::handshake, seeds: tls::handshake_seeds },
    Target { name: "tls_records", run: tls::records, seeds: tls::record_seeds },
    Target { name: "local", run: network::local, seeds: network::local_seeds },
    Target { name: "volume_toml", run: volumes::configuration, seeds: volumes::texts },
    Target { name: "superblock", run: volumes::superblock, seeds: volumes::superblocks },
    Target { name: "log_headers", run: volumes::log_headers, seeds: volumes::changes },
    Target { name: "tiered_volume", run: tiered::run, seeds: tiered::seeds },
    of_structures::<subjects::Flash>("flash_structures"),
    of_structures::<subjects::Staged>("staged_structures"),
    of_structures::<subjects::Ordered>("ordered_structures"),
    of_structures::<subjects::Dense>("dense_structures"),
    of_structures::<subjects::Unclaimed>("unclaimed_structures"),
    of_structures::<subjects::Claiming>("claiming_structures"),
    of_structures::<subjects::Dumped>("dump_structures"),
];

const fn of_structures<S: subjects::Subject>(name: &'static str) -> Target {
    Target { name, run: subjects::run::<S>, seeds: subjects::inputs::<S> }
}

/// Passes `input` to the target called `name`.
///
/// # Panics
/// If there is none, or it found a fault.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target's name").run)(input);
}
