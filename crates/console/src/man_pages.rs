//! Manual pages, one per command.
use anyhow::Context;
use clap::Command;
use clap_mangen::Man;
use std::io::Write;
use std::path::Path;

/// Writes the pages of the commands of `program` to `folder`, except hidden ones, with `source` at the foot. If
/// `with_whole`, also writes a page of the program itself. Returns the number of pages.
///
/// # Errors
/// If the folder cannot be made, or a page cannot be written.
pub fn write(
    folder: &Path,
    program: Command,
    source: &str,
    with_whole: bool,
) -> anyhow::Result<usize> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let mut command = program.disable_help_subcommand(true);
    command.build();
    let pages = Pages { folder, source };
    if with_whole {
        return pages.write("tantalum", &command);
    }
    pages.write_all_of("tantalum", &command)
}

struct Pages<'a> {
    folder: &'a Path,
    source: &'a str,
}

impl Pages<'_> {
    /// Writes the page `name` of `command`, and the pages of its subcommands; returns the number of pages.
    fn write(&self, name: &str, command: &Command) -> anyhow::Result<usize> {
        let path = self.folder.join(format!("{name}.1"));
        std::fs::write(&path, page(name, command, self.source)?)
            .with_context(|| format!("writing {}", path.display()))?;
        Ok(1 + self.write_all_of(name, command)?)
    }

    fn write_all_of(&self, name: &str, command: &Command) -> anyhow::Result<usize> {
        let shown = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set() && !crate::programs::is_elsewhere(command));
        shown.map(|command| self.write(&format!("{name}-{}", command.get_name()), command)).sum()
    }
}

fn page(name: &str, command: &Command, source: &str) -> anyhow::Result<Vec<u8>> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command.clone()).title(name.to_uppercase()).source(source);
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

/// The text that follows the options in a help, as a section of a page. Its line breaks are kept, as it contains
/// tables and examples.
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
        // A full stop or an apostrophe at the start of a line would be a request to the formatter.
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
