//! Errors of a configuration, with the line of each.
use crate::refusals::CONFIGURATION_LINE;
use std::path::Path;
use tantalum_base::{Error, ErrorKind};

/// The error of a `text` that is no TOML, or has unknown names or values.
pub(super) fn no_toml(text: &str, path: &Path, error: &toml::de::Error) -> Error {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
    let line = before.matches('\n').count() + 1;
    let reason = error.message().trim().replace('\n', ", ");
    let context = format!("{}{CONFIGURATION_LINE} {line}: {reason}", path.display());
    CONFIGURATION_LINE.error(ErrorKind::InvalidInput, context)
}

/// The `error` of a setting, with the path and the setting's line, if `text` has it.
pub(super) fn invalid_setting(text: &str, path: &Path, error: Error) -> Error {
    let line = line_of(text, &error.to_string());
    let place = line.map_or_else(String::new, |line| format!("{CONFIGURATION_LINE} {line}"));
    error.wrap(format!("{}{place}", path.display()))
}

/// The line of `text` with the setting that `told` names first, such as `device.cache`.
fn line_of(text: &str, told: &str) -> Option<usize> {
    let mut words = told.split(|c: char| !c.is_ascii_lowercase() && c != '_' && c != '.');
    let (table, key) = words.find_map(|word| word.split_once('.').filter(|it| !it.0.is_empty()))?;
    let mut within = "";
    let lines = (1..).zip(text.lines().map(str::trim));
    lines.into_iter().find_map(|(number, line)| {
        if let Some(header) = line.strip_prefix('[') {
            within = header.split(']').next()?.trim();
        }
        let name = line.split('=').next()?.trim();
        (within == table && name == key && line.contains('=')).then_some(number)
    })
}
