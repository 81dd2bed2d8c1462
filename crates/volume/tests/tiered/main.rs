//! A tiered volume with faults: in the pairing of its devices, in its home, in its flash.
mod another_disk;
mod attached_again;
mod failing;
mod flash_pages;
mod home;
mod kills;
mod odd_home;
mod pairs;
mod passing;
mod places;
mod read_only;
mod refusing;
mod rig;
mod unseen_claim;
mod vanishing;
