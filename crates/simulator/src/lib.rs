//! The crash lab: it runs a device through power cuts at chosen operations, also during recovery,
//! and checks every promise each time that the device is opened again. `docs/crash-lab.md` describes
//! its use.
//!
//! ```text
//! subject    the device under test: made once, opened again after each cut
//! subjects   the devices, in small sizes               registry  devices and media by name
//! powered    the zones of a device: their power may be cut, and they may be damaged
//! damage     slots that are damaged while the power is off or as they are read, and lost appends
//! writes     the writes so far, and what damage to them may cause: loss, refusal, a missing end of the log
//! passing    I/O errors that pass
//! excuses    the deviations of a device that damage and failures allow
//! tiered     a cache over a home, which loses power together with the flash
//! moments    whether a home without its flash is in its state of one moment
//! life       a scenario: each power-on period, its clients and its end   text   its text form
//! command    the commands of clients                  generate  random lives from a seed
//! possible   checks a scenario against a device's limits
//! run        runs a life                              bench     one power-on period to the next
//! stay       the device from its opening to the end of its clients
//! client     issues commands and checks reads         history   commands issued and acknowledged, reads
//! holds      pages held by transactions, and whether other changes of them were refused
//! verify     whether the contents of a device, and the result of a read, are allowed
//! order      whether some order of commands explains them   backwards  the search for one
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
