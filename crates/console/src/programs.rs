//! The programs and their commands. `tantalum NAME` hands a command that it lacks to the program that has it, as git
//! and cargo do.
use anyhow::Context;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// A program that has commands of `tantalum`.
pub struct Program {
    /// Its file's name.
    pub name: &'static str,
    /// Its commands.
    pub commands: &'static [&'static str],
}

/// The programs beside `tantalum`.
pub const PROGRAMS: &[Program] = &[
    Program { name: "tantalum-lab", commands: &["replay", "curve", "advise", "trace"] },
    Program { name: "tantalum-demo", commands: &["demo"] },
    Program { name: "tantalum-crash", commands: &["crash"] },
    Program { name: "tantalum-repro", commands: &["repro"] },
];

/// The program that also serves simulated devices.
pub const LABORATORY: &Program = &PROGRAMS[0];

/// The arguments after the name of a command that another program has.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Elsewhere {
    #[arg(id = ELSEWHERE, trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<OsString>,
}

const ELSEWHERE: &str = "words of another program";

impl Elsewhere {
    /// The arguments that request the help.
    pub fn help() -> Elsewhere {
        Elsewhere { words: vec!["--help".into()] }
    }

    /// Replaces this process by the program of `command`, with these arguments. Returns only on failure.
    pub fn run(&self, command: &str) -> anyhow::Error {
        let Some(program) = having(command) else {
            return anyhow::anyhow!("no program has the command {command}");
        };
        program.take_over(command, &self.words)
    }
}

/// Whether another program has `command`.
pub fn is_elsewhere(command: &clap::Command) -> bool {
    command.get_arguments().any(|argument| argument.get_id() == ELSEWHERE)
}

/// The program that has `command`.
pub fn having(command: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.commands.contains(&command))
}

impl Program {
    /// The path of the program: beside the running program, otherwise in a folder of `PATH`.
    pub fn path(&self) -> Option<PathBuf> {
        let beside = std::env::current_exe().ok().map(|program| program.with_file_name(self.name));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let in_path = std::env::split_paths(&path).map(|folder| folder.join(self.name));
        beside.into_iter().chain(in_path).find(|path| path.is_file())
    }

    /// Replaces this process by the program, with `command` and `words`. Returns only on failure.
    pub fn take_over(&self, command: &str, words: &[OsString]) -> anyhow::Error {
        let Some(path) = self.path() else {
            return anyhow::anyhow!(
                "`tantalum {command}` is in the program {}, which is neither beside tantalum nor in a folder of PATH; \
                 `make build` builds all of them, `make install` installs them",
                self.name
            );
        };
        let error = Command::new(&path).arg(command).args(words).exec();
        anyhow::Error::from(error).context(format!("starting {}", path.display()))
    }

    /// Runs the program to its end with `words`, and returns its standard output. `None` if it is not installed.
    ///
    /// # Errors
    /// If it cannot be started, or fails.
    pub fn output(&self, words: &[OsString]) -> anyhow::Result<Option<Vec<u8>>> {
        let Some(path) = self.path() else { return Ok(None) };
        let context = || format!("running {}", path.display());
        let output = Command::new(&path).args(words).output().with_context(context)?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            return Err(anyhow::anyhow!("{}", told.trim()).context(context()));
        }
        Ok(Some(output.stdout))
    }
}

/// Commands of each program except `tantalum`, called only by other programs of this project.
#[derive(clap::Subcommand, Debug)]
pub enum Documents {
    /// Print the completion script of this program for a shell
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write a manual page for each command to a folder
    #[command(hide = true)]
    ManPages {
        /// The folder
        folder: PathBuf,
    },
}

impl Documents {
    /// Writes them for the commands of `program`, whose executable is called `name`.
    pub fn run(&self, program: clap::Command, name: &str) -> anyhow::Result<crate::Verdict> {
        match self {
            Documents::Completions { shell } => crate::completions::print(*shell, &program, name)?,
            Documents::ManPages { folder } => {
                let source = concat!("tantalum ", env!("CARGO_PKG_VERSION"));
                let pages = crate::man_pages::write(folder, program, source, false)?;
                crate::output::print_line(&pages.to_string())?;
            }
        }
        Ok(crate::Verdict::Good)
    }
}
