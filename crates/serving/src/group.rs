//! Groups of the system, by name.
use tantalum_base::{Error, ErrorKind, Result, ResultExt};

const GROUPS: &str = "/etc/group";

/// The id of `group`, which is a name or already a number.
///
/// # Errors
/// `InvalidInput` if there is no group with that name.
pub fn group_id(group: &str) -> Result<u32> {
    // The largest number means "no change" to the system.
    if let Some(id) = group.parse().ok().filter(|id| *id != u32::MAX) {
        return Ok(id);
    }
    let groups = std::fs::read_to_string(GROUPS).context(|| format!("reading {GROUPS}"))?;
    listed(&groups, group).ok_or_else(|| {
        let context =
            format!("there is no group {group:?} in {GROUPS}: name another, or its number");
        Error::new(ErrorKind::InvalidInput, context)
    })
}

/// The id of `group` in `groups`, a text of lines `name:password:id:members`.
fn listed(groups: &str, group: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_by_name_or_number() {
        let groups = "root:x:0:\nwheel:x:10:ada,bob\n# a comment\nshort:x\n";
        assert_eq!(listed(groups, "wheel"), Some(10));
        for unknown in ["ada", "", "short", "# a comment"] {
            assert_eq!(listed(groups, unknown), None, "{unknown}");
        }
        assert_eq!(group_id("4711").unwrap(), 4711);
        let error = group_id("no such group").unwrap_err().to_string();
        assert!(error.contains("\"no such group\" in /etc/group"), "{error}");
        assert!(group_id("4294967295").is_err());
    }
}
