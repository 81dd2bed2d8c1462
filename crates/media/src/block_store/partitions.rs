//! The partitions of a block device, as the kernel knows them.
use std::fs::File;

/// Lets the kernel read the partition table again.
///
/// # Errors
/// `BUSY` where a partition is in use; `INVAL` where the device can have none.
#[expect(unsafe_code, reason = "the kernel has no other call for it")]
pub(super) fn reread_partition_table(device: &File) -> rustix::io::Result<()> {
    const BLKRRPART: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 95);
    // SAFETY: `BLKRRPART` takes no argument and touches no memory of ours.
    unsafe { rustix::ioctl::ioctl(device, rustix::ioctl::NoArg::<BLKRRPART>::new()) }
}
