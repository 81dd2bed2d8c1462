//! A binary heap of frames with removal of any frame; the frame with the lowest rank is on top. The
//! caller provides the ranks, which must not change while a frame is in the heap.

/// The place of a frame that is not in the heap.
const NOWHERE: u32 = u32::MAX;

/// 8 bytes a frame, all allocated at creation.
#[derive(Debug)]
pub(crate) struct FrameHeap {
    frames: Vec<u32>,
    /// The place of each frame in `frames`.
    places: Vec<u32>,
}

impl FrameHeap {
    /// A heap for at most `frames_max` frames, numbered below `frames_end`.
    pub(crate) fn new(frames_max: u32, frames_end: usize) -> Self {
        FrameHeap {
            frames: Vec::with_capacity(frames_max as usize),
            places: vec![NOWHERE; frames_end],
        }
    }

    /// The frame with the lowest rank.
    pub(crate) fn top(&self) -> Option<u32> {
        self.frames.first().copied()
    }

    /// All frames in the heap, the lowest first and the others in no particular order.
    pub(crate) fn frames(&self) -> &[u32] {
        &self.frames
    }

    pub(crate) fn push<R: Ord>(&mut self, frame: u32, rank: impl Fn(u32) -> R) {
        debug_assert_eq!(self.places[frame as usize], NOWHERE, "a frame is in the heap once");
        self.frames.push(frame);
        self.rise(self.frames.len() - 1, frame, &rank);
    }

    /// Removes `frame`, which must be in the heap.
    pub(crate) fn remove<R: Ord>(&mut self, frame: u32, rank: impl Fn(u32) -> R) {
        let at = std::mem::replace(&mut self.places[frame as usize], NOWHERE) as usize;
        let Some(last) = self.frames.pop().filter(|last| *last != frame) else { return };
        let at = self.sink(at, last, &rank);
        self.rise(at, last, &rank);
    }

    /// Puts `frame` at `at`, or as far above as its rank requires.
    fn rise<R: Ord>(&mut self, mut at: usize, frame: u32, rank: &impl Fn(u32) -> R) {
        while at > 0 {
            let above = self.frames[(at - 1) / 2];
            if rank(above) <= rank(frame) {
                break;
            }
            self.put(at, above);
            at = (at - 1) / 2;
        }
        self.put(at, frame);
    }

    /// Moves the frames below `at` up, as far as `frame`'s rank requires. Returns the place of
    /// `frame`.
    fn sink<R: Ord>(&mut self, mut at: usize, frame: u32, rank: &impl Fn(u32) -> R) -> usize {
        loop {
            let below = (2 * at + 1..self.frames.len().min(2 * at + 3))
                .min_by_key(|&below| rank(self.frames[below]));
            match below {
                Some(below) if rank(self.frames[below]) < rank(frame) => {
                    self.put(at, self.frames[below]);
                    at = below;
                }
                _ => return at,
            }
        }
    }

    fn put(&mut self, at: usize, frame: u32) {
        self.frames[at] = frame;
        self.places[frame as usize] = at as u32;
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        ((self.frames.capacity() + self.places.len()) * size_of::<u32>()) as u64
    }

    #[cfg(test)]
    pub(crate) fn validate<R: Ord>(&self, rank: impl Fn(u32) -> R) {
        for (at, &frame) in self.frames.iter().enumerate() {
            assert_eq!(self.places[frame as usize] as usize, at);
            assert!(at == 0 || rank(self.frames[(at - 1) / 2]) <= rank(frame), "not a heap");
        }
        let placed = self.places.iter().filter(|place| **place != NOWHERE).count();
        assert_eq!(placed, self.frames.len());
    }
}
