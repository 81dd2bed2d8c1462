//! The crash lab: a device lives through power cuts at chosen operations, in its recoveries too, and
//! every promise is checked each time that it comes back. `docs/crash-lab.md` says how to use it.
//!
//! ```text
//! subject    what is under test: made once, opened again after each cut
//! subjects   the devices, small                       registry  devices and media by name
//! powered    the zones that a device gets: their power may go, and they may be damaged
//! damage     slots that are struck in the dark or as they are read, and appends that are lost
//! writes     what was written, and what may be lost, refused or missing where some of it is damaged
//! passing    I/O errors that pass
//! excuses    what all of that excuses of a device
//! tiered     a cache over a home, which loses power together with the flash
//! moments    whether a home without its flash is as it was at one moment
//! life       a scenario: each time with power, its clients and its end   text   written down
//! command    what clients do                          generate  random lives from a seed
//! possible   what a device can be asked for
//! run        lives a life                             bench     one power-on to the next
//! stay       the device between its opening and the end of its clients
//! client     issues commands and checks reads         history   what was issued, acknowledged, read
//! holds      which pages transactions hold, and whether others were refused
//! verify     whether what a device holds, and what a read returns, is allowed
//! order      whether some order of commands explains it   backwards  the search for one
//! campaign   many lives                               exhaustive  every cut of one load
//! shrink     a smaller life that still fails
//! ```
mod backwards;
mod bench;
mod campaign;
mod client;
mod command;
mod damage;
mod excuses;
mod exhaustive;
mod generate;
mod history;
mod holds;
mod life;
mod moments;
mod order;
mod passing;
mod possible;
mod powered;
mod registry;
mod run;
mod shrink;
mod stay;
mod subject;
pub mod subjects;
mod text;
mod tiered;
mod verify;
mod writes;

pub use campaign::{Campaign, CampaignOptions, Found, campaign, check};
pub use command::Command;
pub use exhaustive::Exhaustive;
pub use generate::Workload;
pub use life::{Cut, CutAt, End, How, Life, LostWrite, Operations, PowerOn, Strike, Violation};
pub use passing::{Passing, Span};
pub use powered::{DamagedZones, Powered};
pub use registry::{DEVICES, Lives, MEDIA, PROFILES, carries, find, spelled};
pub use run::{Outcome, run};
pub use shrink::{Shrunk, shrink};
pub use subject::WithoutMedium;
pub use subject::{
    Alone, Coverage, Damaged, FailedProgram, Kept, Medium, Promises, Subject, Tested,
};
pub use tantalum_models::rig::{self, ArrayShape, FileRig, IoFault, NandRig, Rig, Size};
pub use text::Replay;
pub use tiered::{KeptHome, TieredDevice, TieredKind};
