//! Completion scripts for shells: one script per program, and glue that joins them.
//!
//! bash and zsh call a function for each command line: the function of `tantalum` calls that of another program if the
//! first word is a command of that program. fish has rules, which can simply be concatenated. The other shells get the
//! names of all commands, and the options of the commands of `tantalum`.
use clap::Command;
use clap_complete::Shell;
use std::ffi::OsString;
use std::io::Write;

use crate::programs::{PROGRAMS, Program};

/// Prints the script of the program called `name`, whose commands are in `whole`.
///
/// # Errors
/// If the standard output cannot be written.
pub fn print(shell: Shell, whole: &Command, name: &str) -> std::io::Result<()> {
    write(&script(shell, whole, &function_of(name)))
}

/// Prints the script for `tantalum`, whose commands are in `whole`, joined with the scripts of the other installed
/// programs.
///
/// # Errors
/// If the standard output cannot be written, or a program fails.
pub fn print_joined(shell: Shell, whole: &Command) -> anyhow::Result<()> {
    let mut text = script(shell, whole, "tantalum");
    let joins = matches!(shell, Shell::Bash | Shell::Zsh | Shell::Fish);
    let mut joined = Vec::new();
    for program in PROGRAMS.iter().filter(|_| joins) {
        let words = ["completions".into(), OsString::from(shell.to_string())];
        if let Some(script) = program.output(&words)? {
            let script = String::from_utf8_lossy(&script).into_owned();
            // The first line of a zsh script names the completed command; it must occur only once.
            text.push_str(
                script
                    .strip_prefix(&format!("#compdef {}\n", function_of(program.name)))
                    .unwrap_or(&script),
            );
            joined.push(program);
        }
    }
    match shell {
        Shell::Bash => text.push_str(&bash(&joined)),
        Shell::Zsh => text.push_str(&zsh(&joined)),
        _ => {}
    }
    Ok(write(&text)?)
}

/// The name of a program within scripts, without hyphens: the generator cannot handle them.
fn function_of(program: &str) -> String {
    program.replace('-', "_")
}

/// The script without the hidden commands, which would be offered like any other.
fn script(shell: Shell, whole: &Command, name: &str) -> String {
    let shown = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    // Rules of fish belong to the command that the user types.
    let name = if shell == Shell::Fish { "tantalum" } else { name };
    let mut shown = Command::new("tantalum").version(env!("CARGO_PKG_VERSION")).subcommands(shown);
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut shown, name, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn cases(programs: &[&Program], call: impl Fn(&str) -> String) -> String {
    let case = |program: &&Program| {
        format!("        {}) {} ;;\n", program.commands.join("|"), call(&function_of(program.name)))
    };
    programs.iter().map(case).collect()
}

fn bash(programs: &[&Program]) -> String {
    let cases = cases(programs, |name| format!("_{name} \"$@\""));
    format!(
        "\n_tantalum_any() {{\n    if [[ $COMP_CWORD -lt 2 ]]; then _tantalum \"$@\"; return; fi\n    \
         case \"${{COMP_WORDS[1]}}\" in\n{cases}        *) _tantalum \"$@\" ;;\n    esac\n}}\n\
         complete -F _tantalum_any -o bashdefault -o default tantalum\n"
    )
}

fn zsh(programs: &[&Program]) -> String {
    let cases = cases(programs, |name| format!("_{name} \"$@\""));
    format!(
        "\n_tantalum_any() {{\n    if (( CURRENT < 3 )); then _tantalum \"$@\"; return; fi\n    \
         case \"$words[2]\" in\n{cases}        *) _tantalum \"$@\" ;;\n    esac\n}}\n\
         compdef _tantalum_any tantalum\n"
    )
}

fn write(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
