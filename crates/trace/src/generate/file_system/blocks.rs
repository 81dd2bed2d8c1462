//! Blocks of the file system: the layout of data and metadata, as in ext3.
//!
//! ```text
//! super block, group descriptors, then groups of 32768 blocks:
//! block bitmap, inode bitmap, 256 blocks of the inode table, data and directories
//! ```
use super::super::transactions::Touched;

/// Bytes in a block, a page of the trace.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// Blocks per group: the number of bits in a bitmap of one block.
const GROUP_BLOCKS: u64 = 8 * BLOCK_BYTES;
/// Inodes per group: one per 16 KiB, mke2fs's default.
const GROUP_INODES: u64 = GROUP_BLOCKS * BLOCK_BYTES / 16384;
/// Inodes of 128 bytes per block.
const BLOCK_INODES: u64 = BLOCK_BYTES / 128;
/// Blocks of a group before its data.
const GROUP_METADATA: u64 = 2 + GROUP_INODES / BLOCK_INODES;
/// Entries per block of a directory: names of filebench's length take about 32 bytes.
const BLOCK_ENTRIES: u64 = 128;
/// Blocks that the inode itself points to.
const DIRECT_BLOCKS: usize = 12;
/// Pointers in an indirect block.
const INDIRECT_POINTERS: usize = 1024;
/// Blocks before the first group.
const HEAD: u64 = 2;

/// A file: its inode, its entry in the set of files, and its blocks.
#[derive(Clone, Debug)]
pub(super) struct File {
    entry: u32,
    inode: u64,
    pub(super) bytes: u64,
    data: Vec<u64>,
    indirect: Vec<u64>,
}

/// The used blocks or inodes of a group; the lowest free one is allocated first.
#[derive(Clone, Debug)]
struct Bitmap {
    words: Vec<u64>,
    /// No word before this has a free bit.
    first: usize,
}

impl Bitmap {
    fn new(bits: u64) -> Self {
        let mut words = vec![0; bits.div_ceil(64) as usize];
        if let Some(last) = words.last_mut().filter(|_| !bits.is_multiple_of(64)) {
            // Bits after the last valid one are never free.
            *last = u64::MAX << (bits % 64);
        }
        Bitmap { words, first: 0 }
    }

    fn take(&mut self) -> Option<u64> {
        let word = (self.first..self.words.len()).find(|word| self.words[*word] != u64::MAX);
        self.first = word.unwrap_or(self.words.len());
        let word = word?;
        let bit = self.words[word].trailing_ones();
        self.words[word] |= 1 << bit;
        Some(word as u64 * 64 + u64::from(bit))
    }

    fn give(&mut self, bit: u64) {
        let word = (bit / 64) as usize;
        self.words[word] &= !(1 << (bit % 64));
        self.first = self.first.min(word);
    }
}

#[derive(Clone, Debug)]
struct Group {
    blocks: Bitmap,
    inodes: Bitmap,
}

/// Everything that is allocated.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    groups: Vec<Group>,
    /// Blocks of each directory's entries.
    directories: Vec<Vec<u64>>,
}

impl Blocks {
    /// Space for `data` blocks, and for `files` files in `directories` directories.
    pub(super) fn new(data: u64, files: u64, directories: u64) -> Self {
        let entry_blocks = (files / directories + 2).div_ceil(BLOCK_ENTRIES);
        let needed = data + directories * entry_blocks;
        let by_data = needed.div_ceil(GROUP_BLOCKS - GROUP_METADATA);
        let groups = by_data.max((files + directories).div_ceil(GROUP_INODES)) + 1;
        let group = Group {
            blocks: Bitmap::new(GROUP_BLOCKS - GROUP_METADATA),
            inodes: Bitmap::new(GROUP_INODES),
        };
        let mut blocks = Blocks { groups: vec![group; groups as usize], directories: Vec::new() };
        let mut before = Touched::default();
        for directory in 0..directories {
            let group = blocks.group_of(directory);
            let entries = (0..entry_blocks).map_while(|_| blocks.take_block(group, &mut before));
            let entries = entries.collect();
            blocks.directories.push(entries);
        }
        blocks
    }

    /// All blocks are below this.
    pub(super) fn pages(&self) -> u64 {
        HEAD + self.groups.len() as u64 * GROUP_BLOCKS
    }

    /// Directories are spread over the groups, files are near their directory.
    fn group_of(&self, directory: u64) -> usize {
        (directory % self.groups.len() as u64) as usize
    }

    fn directory_of(&self, entry: u32) -> u64 {
        u64::from(entry) % self.directories.len() as u64
    }

    /// Marks the block with a file's entry as changed.
    fn touch_entry(&self, entry: u32, touched: &mut Touched) {
        let blocks = &self.directories[self.directory_of(entry) as usize];
        let slot = u64::from(entry) / self.directories.len() as u64;
        let block = ((slot / BLOCK_ENTRIES) as usize).min(blocks.len() - 1);
        touched.written.insert(blocks[block]);
    }

    /// Marks the metadata about free space of a group as changed.
    fn touch_group(group: u64, bitmap: u64, touched: &mut Touched) {
        touched.written.extend([0, 1, HEAD + group * GROUP_BLOCKS + bitmap]);
    }

    fn touch_inode(inode: u64, touched: &mut Touched) {
        let (group, index) = (inode / GROUP_INODES, inode % GROUP_INODES);
        touched.written.insert(HEAD + group * GROUP_BLOCKS + 2 + index / BLOCK_INODES);
    }

    /// Allocates a free block of `group`, or of a later group.
    fn take_block(&mut self, group: usize, touched: &mut Touched) -> Option<u64> {
        let groups = self.groups.len();
        (0..groups).map(|step| (group + step) % groups).find_map(|group| {
            let bit = self.groups[group].blocks.take()?;
            let group = group as u64;
            Self::touch_group(group, 0, touched);
            Some(HEAD + group * GROUP_BLOCKS + GROUP_METADATA + bit)
        })
    }

    fn give_block(&mut self, block: u64, touched: &mut Touched) {
        let (group, offset) = ((block - HEAD) / GROUP_BLOCKS, (block - HEAD) % GROUP_BLOCKS);
        self.groups[group as usize].blocks.give(offset - GROUP_METADATA);
        Self::touch_group(group, 0, touched);
    }

    /// Makes an empty file at the position `entry` of its directory.
    pub(super) fn create(&mut self, entry: u32, touched: &mut Touched) -> File {
        let (near, groups) = (self.group_of(self.directory_of(entry)), self.groups.len());
        let inode = (0..groups).map(|step| (near + step) % groups).find_map(|group| {
            let index = self.groups[group].inodes.take()?;
            Some(group as u64 * GROUP_INODES + index)
        });
        // There is an inode for every file and one for the log.
        let inode = inode.unwrap_or(0);
        Self::touch_group(inode / GROUP_INODES, 1, touched);
        Self::touch_inode(inode, touched);
        self.touch_entry(entry, touched);
        File { entry, inode, bytes: 0, data: Vec::new(), indirect: Vec::new() }
    }

    /// Appends `bytes`, or less if no block is free.
    pub(super) fn append(&mut self, file: &mut File, bytes: u64, touched: &mut Touched) {
        let group = (file.inode / GROUP_INODES) as usize;
        let end = file.bytes + bytes;
        if !file.bytes.is_multiple_of(BLOCK_BYTES) {
            touched.written.extend(file.data.last());
        }
        while (file.data.len() as u64) * BLOCK_BYTES < end {
            if let Some(behind) = file.data.len().checked_sub(DIRECT_BLOCKS) {
                if behind.is_multiple_of(INDIRECT_POINTERS) {
                    let Some(block) = self.take_block(group, touched) else { break };
                    file.indirect.push(block);
                }
                touched.written.extend(file.indirect.last());
            }
            let Some(block) = self.take_block(group, touched) else { break };
            touched.written.insert(block);
            file.data.push(block);
        }
        file.bytes = end.min(file.data.len() as u64 * BLOCK_BYTES);
        Self::touch_inode(file.inode, touched);
    }

    /// Deletes a file: changes its entry, its inode, and the metadata about free space.
    pub(super) fn delete(&mut self, file: &File, touched: &mut Touched) {
        self.touch_entry(file.entry, touched);
        Self::touch_inode(file.inode, touched);
        Self::touch_group(file.inode / GROUP_INODES, 1, touched);
        self.groups[(file.inode / GROUP_INODES) as usize].inodes.give(file.inode % GROUP_INODES);
        for block in file.data.iter().chain(&file.indirect) {
            self.give_block(*block, touched);
            // The block will not be read: its changes since the last commit are dropped.
            touched.written.remove(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_given_once_and_lies_where_data_may_lie() {
        let mut blocks = Blocks::new(2 * GROUP_BLOCKS, 10, 1);
        let mut touched = Touched::default();
        let mut given = Vec::new();
        while let Some(block) = blocks.take_block(1, &mut touched) {
            given.push(block);
        }
        let groups = blocks.groups.len() as u64;
        let directory = blocks.directories[0].len() as u64;
        assert_eq!(given.len() as u64, groups * (GROUP_BLOCKS - GROUP_METADATA) - directory);
        assert!(given.iter().all(|block| (block - HEAD) % GROUP_BLOCKS >= GROUP_METADATA));
        given.sort_unstable();
        given.dedup();
        assert_eq!(given.len() as u64, groups * (GROUP_BLOCKS - GROUP_METADATA) - directory);
        assert!(given.iter().all(|block| *block < blocks.pages()));
        given.iter().for_each(|block| blocks.give_block(*block, &mut touched));
        assert!(blocks.take_block(0, &mut touched).is_some());
    }
}
