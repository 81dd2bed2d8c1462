//! Geometry of a NAND array, and addresses in it.
use tantalum_base::{Error, ErrorKind, PAGE_BYTES, Result};

/// Geometry of a NAND array. All planes are alike and work independently of each other. A package
/// with several dies has the planes of all its dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NandGeometry {
    /// Buses between controller and packages.
    pub channels: u32,
    /// Packages on each channel.
    pub packages_per_channel: u32,
    /// Planes in each package.
    pub planes_per_package: u32,
    /// Erase blocks in each plane.
    pub blocks_per_plane: u32,
    /// Flash pages in each block.
    pub pages_per_block: u32,
    /// Bytes in a flash page, a multiple of 4096.
    pub page_bytes: u32,
    /// Bytes of spare area transferred with each flash page.
    pub spare_bytes: u32,
}

impl NandGeometry {
    /// Number of planes in the array. Plane `p` is on channel `p % channels`, so that planes with
    /// consecutive numbers are on different channels.
    #[inline]
    pub fn planes(&self) -> u32 {
        self.channels * self.packages_per_channel * self.planes_per_package
    }

    /// Slots of 4096 bytes in a flash page.
    #[inline]
    pub fn slots_per_page(&self) -> u32 {
        self.page_bytes / PAGE_BYTES as u32
    }

    /// Slots of 4096 bytes in a block.
    #[inline]
    pub fn slots_per_block(&self) -> u32 {
        self.slots_per_page() * self.pages_per_block
    }

    /// Raw capacity in bytes, including bad and spare blocks, excluding spare areas.
    pub fn bytes(&self) -> u64 {
        u64::from(self.planes())
            * u64::from(self.blocks_per_plane)
            * u64::from(self.pages_per_block)
            * u64::from(self.page_bytes)
    }

    /// Refuses invalid geometries.
    pub(crate) fn check(&self) -> Result<()> {
        let positive = [
            ("channels", self.channels),
            ("packages_per_channel", self.packages_per_channel),
            ("planes_per_package", self.planes_per_package),
            ("blocks_per_plane", self.blocks_per_plane),
            ("pages_per_block", self.pages_per_block),
            ("page_bytes", self.page_bytes),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(Error::new(ErrorKind::InvalidInput, format!("NAND with {name} = 0")));
        }
        if !self.page_bytes.is_multiple_of(PAGE_BYTES as u32) {
            let context = format!("NAND page_bytes {} is no multiple of 4096", self.page_bytes);
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        if self.bytes() / PAGE_BYTES as u64 > u64::from(u32::MAX) {
            let context = format!("NAND of {} bytes has more than 2^32 slots", self.bytes());
            return Err(Error::new(ErrorKind::InvalidInput, context));
        }
        Ok(())
    }
}

/// An erase block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockAddr {
    /// Number of the plane in the array.
    pub plane: u32,
    /// Number of the block in the plane.
    pub block: u32,
}

impl BlockAddr {
    /// Flash page `page` of the block.
    #[inline]
    pub fn page(self, page: u32) -> PageAddr {
        PageAddr { block: self, page }
    }
}

/// A flash page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageAddr {
    /// Its block.
    pub block: BlockAddr,
    /// Number of the flash page in the block.
    pub page: u32,
}
