pub mod history;
pub mod large;
pub mod lives;
pub mod media;
