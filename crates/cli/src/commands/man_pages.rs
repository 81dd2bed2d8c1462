//! `tantalum man-pages FOLDER`.
use crate::common::print_line;
use crate::{Cli, Verdict};
use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Write manual pages, one a command, into a folder
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The folder, which is made where it does not exist
    folder: PathBuf,
}

const AFTER_HELP: &str =
    "man looks for them in a folder man1 of its path, such as ~/.local/share/man/man1.

Examples:
  tantalum man-pages ~/.local/share/man/man1";

/// What stands at the foot of a page.
const SOURCE: &str = concat!("tantalum ", env!("TANTALUM_VERSION"));

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Verdict> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let pages = write_pages(folder, "tantalum", &command)?;
    print_line(&format!("{}: {pages} pages written", folder.display()))?;
    Ok(Verdict::Good)
}

/// Writes the page `name` of `command`, and those of the commands in it; their number.
fn write_pages(folder: &Path, name: &str, command: &Command) -> anyhow::Result<usize> {
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page(name, command)?)
        .with_context(|| format!("writing {}", path.display()))?;
    let mut pages = 1;
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        pages += write_pages(folder, &format!("{name}-{}", command.get_name()), command)?;
    }
    Ok(pages)
}

fn page(name: &str, command: &Command) -> anyhow::Result<Vec<u8>> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command.clone()).title(name.to_uppercase()).source(SOURCE);
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut out)?;
    }
    out.write_all(closing(&after).as_bytes())?;
    Ok(out)
}

/// What stands below the options in a help, as a section of a page. Its lines are kept, as there are tables and
/// examples among them.
fn closing(after: &str) -> String {
    let mut out = ".SH NOTES\n".to_owned();
    let mut kept = false;
    for line in after.lines() {
        let keep = line.starts_with("  ");
        if keep != kept {
            out.push_str(if keep { ".nf\n" } else { ".fi\n" });
            kept = keep;
        }
        if line.is_empty() {
            out.push_str(".PP\n");
            continue;
        }
        // A point or an apostrophe at the start of a line would be a request to the formatter.
        if line.starts_with(['.', '\'']) {
            out.push_str("\\&");
        }
        let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
        out.push_str(&line);
        out.push('\n');
    }
    out.push_str(if kept { ".fi\n" } else { "" });
    out
}

#[cfg(test)]
mod tests {
    use super::closing;

    #[test]
    fn lines_of_examples_are_kept_and_nothing_is_taken_for_a_request() {
        let told = closing(".dot\nwords\n\nExamples:\n  a --b 'c\\d'");
        let expected =
            ".SH NOTES\n\\&.dot\nwords\n.PP\nExamples:\n.nf\n  a \\-\\-b \\(aqc\\ed\\(aq\n.fi\n";
        assert_eq!(told, expected);
    }
}
