//! Reports the sizes of a new volume: how they were rounded, and the space that they take.
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tantalum_base::size::human_bytes;
use tantalum_console::output::print_line;
use tantalum_report::number;
use tantalum_volume::{Holder, StoreSpace, VolumeConfig};

/// Prints in one line which sizes were rounded.
pub fn tell_rounded(config: &VolumeConfig) -> anyhow::Result<()> {
    let rounded = config.rounded_sizes()?;
    let told = rounded.iter().map(|size| {
        format!("{} = \"{}\" is {} bytes", size.key, size.text, number::thousands(size.bytes))
    });
    let told = told.collect::<Vec<_>>().join(", ");
    if !rounded.is_empty() {
        print_line(&format!("{}: in whole pages of 4 KiB, {told}", config.path.display()))?;
    }
    Ok(())
}

/// Prints the space allocated at each path, for a volume whose flash or file has `store_bytes`.
pub fn tell_room(config: &VolumeConfig, store_bytes: u64) -> anyhow::Result<()> {
    print_line(&room_at(&config.data_path()?, Some(store_bytes))?)?;
    if let Some(home) = &config.home {
        print_line(&room_at(&home.home_path(&config.path), None)?)?;
        print_line(&room_at(&home.journal_path(&config.path), None)?)?;
    }
    Ok(())
}

/// Prints the space that is about to be allocated.
pub fn tell_spaces(spaces: &[StoreSpace]) {
    for space in spaces {
        // The volume is created even if the output has no reader.
        let _ = print_line(&format!(
            "{}: takes {}{} ({})",
            space.path.display(),
            human_bytes(space.bytes),
            of_what(space),
            space.store
        ));
    }
}

/// The device or file system that provides the space of a store.
pub fn of_what(space: &StoreSpace) -> String {
    let as_written = if space.is_sparse { " as it is written," } else { "" };
    match &space.holder {
        Holder::Device { bytes } => format!(" of the device's {}", human_bytes(*bytes)),
        Holder::FileSystem { mounted_at, free_bytes: None, .. } => {
            format!("{as_written} of the file system at {}", mounted_at.display())
        }
        Holder::FileSystem { mounted_at, free_bytes: Some(free_bytes), .. } => {
            let free = human_bytes(*free_bytes);
            format!("{as_written} of {free} free in the file system at {}", mounted_at.display())
        }
    }
}

/// The space allocated at `path`; for a device, which is allocated as a whole, the part that is `used`.
fn room_at(path: &Path, used: Option<u64>) -> anyhow::Result<String> {
    let there = std::fs::metadata(path)?;
    let name = path.display();
    if !there.is_file() {
        let used = used.map_or("all".to_owned(), human_bytes);
        return Ok(format!("{name}: {used} used of the device"));
    }
    // Blocks have 512 bytes here, whatever the file system's block size is.
    let allocated = there.blocks() * 512;
    if allocated >= there.len() {
        return Ok(format!("{name}: {} allocated", human_bytes(there.len())));
    }
    Ok(format!(
        "{name}: sparse, {} of {} allocated, the rest as it is written",
        human_bytes(allocated),
        human_bytes(there.len())
    ))
}
