//! Forks: the identity of the current process, and descriptors that a forked child does not keep.
//!
//! A forked child has a copy of its parent's memory, including every handle. It also shares the open files, and so
//! the locks on them. The child must not use any of that: two processes would write to one volume, each with its own
//! view of it. [`Process`] lets a handle detect this. [`ParentOnly`] keeps the child's copy of a descriptor from
//! holding a lock.
use rustix::fs::{Mode, OFlags};
use rustix::io::DupFlags;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64};
use tantalum_base::{Result, ResultExt};

/// A process. Its forks are other processes, at any depth, even if a process ID is reused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process(u64);

/// The number of this process, or 0 if it has none yet. It lies on a page that the kernel zeroes in a forked child.
static NUMBER: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());

/// The highest number of this process and its ancestors.
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

impl Process {
    /// The current process.
    pub fn current() -> Process {
        let number = number();
        match number.load(Acquire) {
            0 => {
                let next = LAST_NUMBER.fetch_add(1, Relaxed) + 1;
                // Another thread may have been faster.
                let raced = number.compare_exchange(0, next, AcqRel, Acquire);
                Process(raced.err().unwrap_or(next))
            }
            number => Process(number),
        }
    }

    /// Whether it is the current process.
    pub fn is_current(self) -> bool {
        self == Process::current()
    }
}

fn number() -> &'static AtomicU64 {
    let mut page = NUMBER.load(Acquire);
    if page.is_null() {
        let made = number_page();
        let raced = NUMBER.compare_exchange(null_mut(), made, AcqRel, Acquire);
        // A page that lost the race stays allocated, all zero; this costs one page, once.
        page = raced.err().unwrap_or(made);
    }
    // SAFETY: made by `number_page`, never freed, and only ever used as an atomic.
    #[expect(unsafe_code, reason = "the page stays mapped until the process ends")]
    unsafe {
        &*page
    }
}

/// A page of zeros that is zeroed again in a forked child, however it was forked. If the kernel cannot do that
/// (before Linux 4.14), memory that [`in_child`] zeroes.
fn number_page() -> *mut AtomicU64 {
    const BYTES: usize = 4096;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping that no other code knows, and zeros are a valid atomic number.
    #[expect(unsafe_code, reason = "only a mapping can be zeroed in children")]
    unsafe {
        if let Ok(page) = rustix::mm::mmap_anonymous(null_mut(), BYTES, access, MapFlags::PRIVATE) {
            if rustix::mm::madvise(page, BYTES, Advice::LinuxWipeOnFork).is_ok() {
                return page.cast();
            }
            let _ = rustix::mm::munmap(page, BYTES);
        }
    }
    watch_forks();
    Box::into_raw(Box::new(AtomicU64::new(0)))
}

/// While this exists, children forked by the C library's `fork` do not keep the descriptor. Its number stays in use
/// in the child, but every read, write or lock through it fails with `EBADF`. So a lock ends with the process that
/// took it. Drop this before the descriptor is closed.
pub struct ParentOnly(&'static Inherited);

/// A descriptor to remove from children. Entries are allocated once and reused. The list is lock-free, because a fork
/// may occur while any thread is anywhere in this code.
struct Inherited {
    /// Negative if the entry is free.
    descriptor: AtomicI32,
    next: *const Inherited,
}

const FREE: RawFd = -1;

static ENTRIES: AtomicPtr<Inherited> = AtomicPtr::new(null_mut());

/// The replacement for a descriptor in children: a descriptor that permits no operation.
static NOTHING: AtomicI32 = AtomicI32::new(FREE);

// SAFETY: `next` is set before the entry is shared and not changed; the rest is atomic.
#[expect(unsafe_code, reason = "raw pointers are not `Sync` by themselves")]
unsafe impl Sync for Inherited {}

impl ParentOnly {
    /// Removes `descriptor` from future children.
    ///
    /// # Errors
    /// `Io` if there are no descriptors left.
    pub fn new(descriptor: BorrowedFd<'_>) -> Result<ParentOnly> {
        if NOTHING.load(Acquire) == FREE {
            let nothing = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            let nothing = nothing.map_err(std::io::Error::from);
            let nothing = nothing.context(|| "opening a descriptor for forked children")?;
            if NOTHING.compare_exchange(FREE, nothing.as_raw_fd(), AcqRel, Acquire).is_ok() {
                let _ = nothing.into_raw_fd();
            }
        }
        watch_forks();
        let descriptor = descriptor.as_raw_fd();
        let free = entries().find(|entry| {
            entry.descriptor.compare_exchange(FREE, descriptor, AcqRel, Relaxed).is_ok()
        });
        Ok(ParentOnly(free.unwrap_or_else(|| push(descriptor))))
    }
}

impl Drop for ParentOnly {
    fn drop(&mut self) {
        self.0.descriptor.store(FREE, Release);
    }
}

fn entries() -> impl Iterator<Item = &'static Inherited> {
    let mut at = ENTRIES.load(Acquire).cast_const();
    std::iter::from_fn(move || {
        // SAFETY: null or a leaked entry.
        #[expect(unsafe_code, reason = "entries are leaked and shared by pointers")]
        let entry = unsafe { at.as_ref() }?;
        at = entry.next;
        Some(entry)
    })
}

fn push(descriptor: RawFd) -> &'static Inherited {
    let mut next = ENTRIES.load(Acquire);
    let entry = Box::leak(Box::new(Inherited { descriptor: AtomicI32::new(descriptor), next }));
    loop {
        match ENTRIES.compare_exchange(next, entry, AcqRel, Acquire) {
            Ok(_) => return entry,
            Err(other) => {
                next = other;
                entry.next = next;
            }
        }
    }
}

/// Registers [`in_child`] to be called in children from now on.
fn watch_forks() {
    type Handler = Option<extern "C" fn()>;
    #[expect(unsafe_code, reason = "only the C library reports forks")]
    unsafe extern "C" {
        fn pthread_atfork(before: Handler, in_parent: Handler, in_child: Handler) -> c_int;
    }
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.swap(true, AcqRel) {
        // SAFETY: the handler may be called at any time, as documented there. If there is no memory to register it, a
        // child keeps its descriptors, and with them locks, until it ends.
        #[expect(unsafe_code, reason = "only the C library reports forks")]
        let _ = unsafe { pthread_atfork(None, None, Some(in_child)) };
    }
}

/// Runs in a child before `fork` returns there. Other threads are gone, at whatever point they were: so no locks and
/// no allocation, only system calls.
extern "C" fn in_child() {
    let page = NUMBER.load(Acquire);
    // SAFETY: null or made by `number_page`; and descriptors that are open, because a descriptor is removed from the
    // list before it is closed.
    #[expect(unsafe_code, reason = "raw pointers and descriptors; nothing else is safe in a fork")]
    unsafe {
        if let Some(number) = page.as_ref() {
            number.store(0, Release);
        }
        let nothing = NOTHING.load(Acquire);
        for entry in entries() {
            let descriptor = entry.descriptor.load(Acquire);
            if descriptor == FREE || nothing == FREE {
                continue;
            }
            // The original owner still closes it, in the child as well.
            let mut taken = ManuallyDrop::new(OwnedFd::from_raw_fd(descriptor));
            let nothing = BorrowedFd::borrow_raw(nothing);
            // There is no way to report a failure; the child would keep the descriptor until it ends.
            let _ = rustix::io::dup3(nothing, &mut taken, DupFlags::CLOEXEC);
        }
    }
}
