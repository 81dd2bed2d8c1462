//! A tiered volume where something is wrong: with the pair of its devices, with its home, with its flash.
#![allow(dead_code, reason = "each test uses a part of the rig")]
mod failing;
mod flash_pages;
mod home;
mod kills;
mod pairs;
mod rig;
