//! The limit of the memory of this process, and the return of freed memory to the operating system.
use std::fs;
use std::path::Path;

/// Returns as much unused memory as possible to the operating system. glibc's allocator keeps memory that lies
/// between two used blocks; after many small blocks that may be nearly all of it. This may take tens of milliseconds
/// per GiB and blocks the calling thread. Other C libraries do this by themselves, or never.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[expect(unsafe_code, reason = "the standard library does not offer it")]
        // SAFETY: this is its declaration in malloc.h; it may be called at any time by any thread.
        unsafe extern "C" {
            safe fn malloc_trim(pad_bytes: usize) -> std::ffi::c_int;
        }
        // It returns whether any memory was released.
        let _ = malloc_trim(0);
    }
}

/// Bytes of memory that this process may use: the lowest of the machine's memory including swap space, the limit of its
/// control group, and the limit of its address space.
pub fn limit_bytes() -> u64 {
    let memory = rustix::system::sysinfo();
    let pages = (memory.totalram as u64).saturating_add(memory.totalswap as u64);
    let machine = pages.saturating_mul(u64::from(memory.mem_unit));
    let address_space = rustix::process::getrlimit(rustix::process::Resource::As).current;
    let [group, own] = [control_group_bytes(), address_space].map(|it| it.unwrap_or(u64::MAX));
    machine.min(group).min(own)
}

/// The lowest limit of the control groups that contain the process; `None` if there is none.
fn control_group_bytes() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().flat_map(limits_of).min()
}

/// The limits of a line of `/proc/self/cgroup` and of the groups above it: `memory.max` of version 2,
/// `memory.limit_in_bytes` of version 1.
fn limits_of(line: &str) -> Vec<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (folder, file) = match parts.next() {
        Some("") => ("/sys/fs/cgroup", "memory.max"),
        Some(controllers) if controllers.split(',').any(|it| it == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let group = parts.next().unwrap_or_default().trim_start_matches('/');
    let limit = |group: &Path| {
        let limit = Path::new(folder).join(group).join(file);
        fs::read_to_string(limit).ok()?.trim().parse().ok()
    };
    Path::new(group).ancestors().filter_map(limit).collect()
}
