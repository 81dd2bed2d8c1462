pub mod history;
pub mod lives;
pub mod media;
