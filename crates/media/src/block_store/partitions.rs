//! The kernel's view of the partitions of a block device.
use std::fs::File;

/// Makes the kernel reread the partition table.
///
/// # Errors
/// `BUSY` if a partition is in use; `INVAL` if the device cannot have partitions.
#[expect(unsafe_code, reason = "the kernel has no other call for it")]
pub(super) fn reread_partition_table(device: &File) -> rustix::io::Result<()> {
    const BLKRRPART: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 95);
    // SAFETY: `BLKRRPART` takes no argument and touches no memory of ours.
    unsafe { rustix::ioctl::ioctl(device, rustix::ioctl::NoArg::<BLKRRPART>::new()) }
}
