//! A control group of limited memory.
use std::path::{Path, PathBuf};

/// One that is there as long as this is.
pub struct ControlGroup {
    folder: PathBuf,
}

impl ControlGroup {
    /// One of `bytes`; `None` where none can be made.
    pub fn of(bytes: u64) -> Option<ControlGroup> {
        let name = format!("tantalum-bench-{}", std::process::id());
        let versions =
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        versions.into_iter().find_map(|(parent, limit)| {
            let folder = Path::new(parent).join(&name);
            std::fs::create_dir(&folder).ok()?;
            let group = ControlGroup { folder };
            std::fs::write(group.folder.join(limit), bytes.to_string()).ok().map(|()| group)
        })
    }

    /// The file that a process writes a 0 to, to enter.
    pub fn entrance(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.folder);
    }
}
