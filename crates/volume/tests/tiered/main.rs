//! A tiered volume where something is wrong: with the pair of its devices, with its home, with its flash.
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
mod vanishing;
