//! How a program ends.
use crate::interruption;
use std::process::ExitCode;
use tantalum_base::{Error, ErrorKind};
use tantalum_runtime::live::signal::go_on_after_others;

/// What the help of every program ends with.
pub const AFTER_HELP: &str = "Exit status: 0 good; 1 found wrong: a check failed, or data is damaged; \
                          2 used wrong, or kept from running; \
                          128 and a signal's number: interrupted by it.";

/// What a command came to when nothing kept it from running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All is as it should be.
    Good,
    /// The command ran and found something wrong, which it printed.
    FoundWrong,
    /// A signal ended it before it was done; it printed what it had.
    Interrupted,
}

/// Runs `command` and tells its outcome: an error as one line on the standard error, and the program's exit code.
pub fn run(command: impl FnOnce() -> anyhow::Result<Verdict>) -> ExitCode {
    let ran = go_on_after_others().map_err(Into::into).and_then(|()| command());
    match ran {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::FoundWrong) => ExitCode::from(1),
        Ok(Verdict::Interrupted) => ExitCode::from(interruption::exit_code()),
        // Whoever reads the output has enough of it, as `head` does.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let line = format!("{error:#}").lines().collect::<Vec<_>>().join(" ");
            eprintln!("tantalum: {line}");
            ExitCode::from(exit_code(&error))
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// 1 where the data or the device turned out wrong, 2 where the command could not be run, and that of a signal where one
/// came before there was anything to print.
fn exit_code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<Error>().map(Error::kind) {
        Some(
            ErrorKind::Checksum
            | ErrorKind::Uncorrectable
            | ErrorKind::ProgramFailed
            | ErrorKind::ZoneRetired
            | ErrorKind::Corrupt
            | ErrorKind::Latched,
        ) => 1,
        Some(ErrorKind::Interrupted) => interruption::exit_code(),
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn the_exit_code_follows_the_kind_also_under_a_context() {
        let code = |kind| {
            let error: Result<(), Error> = Err(Error::new(kind, "page 7"));
            exit_code(&error.context("volume").unwrap_err())
        };
        assert_eq!(code(ErrorKind::Checksum), 1);
        assert_eq!(code(ErrorKind::Corrupt), 1);
        assert_eq!(code(ErrorKind::InvalidInput), 2);
        assert_eq!(code(ErrorKind::Locked), 2);
        assert_eq!(exit_code(&anyhow::anyhow!("anything else")), 2);
    }
}
