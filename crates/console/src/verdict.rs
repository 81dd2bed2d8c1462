//! The end of a program: its exit code, and an error as one line.
use crate::interruption;
use std::process::ExitCode;
use tantalum_base::{Error, ErrorKind, plain};
use tantalum_runtime::live::signal::go_on_after_others;

/// The end of the help of every program.
pub const AFTER_HELP: &str = "Exit status: 0 success; 1 a check failed, or data is damaged; 2 \
                          wrong use, or a refusal; 128 and a signal's number: interrupted by that \
                          signal.";

/// The outcome of a command that could run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All is as it should be.
    Good,
    /// The command ran and found a problem, which it printed.
    FoundWrong,
    /// A signal ended the command early; it printed its results so far.
    Interrupted,
}

/// Runs `command` and reports its outcome: an error as one line on the standard error, and the exit code.
pub fn run(command: impl FnOnce() -> anyhow::Result<Verdict>) -> ExitCode {
    let ran = go_on_after_others().map_err(Into::into).and_then(|()| command());
    match ran {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::FoundWrong) => ExitCode::from(1),
        Ok(Verdict::Interrupted) => ExitCode::from(interruption::exit_code()),
        // The reader of the output has gone, such as `head`: it has read enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let line = format!("{error:#}").lines().collect::<Vec<_>>().join(" ");
            eprintln!("tantalum: {}", plain(&line));
            ExitCode::from(exit_code(&error))
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// 1 if the data or the device has a fault; 2 if the command could not be run; the code of a signal that came before
/// there was anything to print.
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
