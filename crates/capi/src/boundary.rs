//! The boundary between C and Rust: panics stop here, pointers are checked, error messages are
//! stored.
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use tantalum_base::{Error, ErrorKind, Result};

use crate::status::{self, TantalumStatus};

thread_local! {
    // Per thread, so that no other thread's failure can change a message while it is read.
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// The message of this thread's last call that did not return TANTALUM_STATUS_OK: where, what and
/// why, in one line of UTF-8 without a line break; empty before the first. The text belongs to the
/// library and stays until the next such call of this thread, or its end.
#[unsafe(no_mangle)]
pub extern "C" fn tantalum_error_message() -> *const c_char {
    // The message may be gone while the thread ends: no panic may leave this function.
    LAST_ERROR.try_with(|message| message.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// A name for `status`, such as "out of space". The text is static; unknown values have one too.
#[unsafe(no_mangle)]
pub extern "C" fn tantalum_status_name(status: c_int) -> *const c_char {
    status::name(status).as_ptr()
}

/// Runs the body of a call: an error or a panic becomes a status and this thread's message.
pub(crate) fn call(body: impl FnOnce() -> Result<()>) -> TantalumStatus {
    // Anything that a panic left half done is either on the caller's stack, and gone, or behind a
    // lock that it poisoned: later calls get `Closed`.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => TantalumStatus::Ok,
        Ok(Err(error)) => {
            keep_message(error.to_string());
            error.kind().into()
        }
        Err(panic) => {
            keep_message(format!("a bug in the library: {}", panic_text(&*panic)));
            // Dropping the panic's payload could panic again.
            std::mem::forget(panic);
            TantalumStatus::Panicked
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

fn keep_message(text: String) {
    let line: String = text
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    let message = CString::new(line).unwrap_or_default();
    // While the thread ends nobody can read it any more.
    let _ = LAST_ERROR.try_with(|last| *last.borrow_mut() = message);
}

/// An error about an argument.
pub(crate) fn invalid(context: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidInput, context)
}

/// The value at `pointer`, or an error if it is null.
///
/// # Safety
/// If `pointer` is not null, it points to a `T` that outlives the reference and that nobody
/// changes.
pub(crate) unsafe fn reference<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    check_pointer(pointer, name)?;
    // SAFETY: not null, aligned; the caller promises the rest.
    Ok(unsafe { &*pointer })
}

/// Writes `value` to `pointer`.
///
/// # Safety
/// If `pointer` is not null, it points to memory for a `T` that nobody else uses.
pub(crate) unsafe fn put<T>(pointer: *mut T, value: T, name: &str) -> Result<()> {
    check_pointer(pointer, name)?;
    // SAFETY: not null, aligned; the caller promises the rest. The memory may be uninitialized, so
    // its old content is not dropped.
    unsafe { pointer.write(value) };
    Ok(())
}

/// The `count` values at `pointer`, which may be null if there are none.
///
/// # Safety
/// If `pointer` is not null, it points to `count` values that outlive the slice and that nobody
/// changes.
pub(crate) unsafe fn slice<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check_pointer(pointer, name)?;
    check_length::<T>(count, name)?;
    // SAFETY: not null, aligned, no longer than memory can be; the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Copies `parts`, one after another, to `pointer`, which has room for `length` bytes. Together the
/// parts have exactly that length.
///
/// # Safety
/// If `pointer` is not null, it points to `length` bytes of memory that nobody else uses.
pub(crate) unsafe fn copy_out<'a>(
    parts: impl Iterator<Item = &'a [u8]>,
    pointer: *mut u8,
    length: usize,
) {
    let mut at = 0;
    for part in parts {
        assert!(part.len() <= length - at, "more was read than asked for");
        // SAFETY: `at + part.len()` is within `length`, for which the caller promises room; the
        // parts are the library's own memory, so they do not overlap it.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), pointer.add(at), part.len()) };
        at += part.len();
    }
    assert_eq!(at, length, "less was read than asked for");
}

/// The path in the string at `pointer`.
///
/// # Safety
/// If `pointer` is not null, it points to a string with a zero at its end that outlives the path.
pub(crate) unsafe fn path<'a>(pointer: *const c_char, name: &str) -> Result<&'a Path> {
    check_pointer(pointer, name)?;
    // SAFETY: not null; the caller promises the rest.
    let bytes = unsafe { CStr::from_ptr(pointer) }.to_bytes();
    if bytes.is_empty() {
        return Err(invalid(format!("{name} is empty")));
    }
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// Refuses null pointers and misaligned ones.
pub(crate) fn check_pointer<T>(pointer: *const T, name: &str) -> Result<()> {
    if pointer.is_null() {
        return Err(invalid(format!("{name} is NULL")));
    }
    if !pointer.is_aligned() {
        return Err(invalid(format!("{name} is not aligned to {} bytes", align_of::<T>())));
    }
    Ok(())
}

fn check_length<T>(count: usize, name: &str) -> Result<()> {
    let bytes = count.checked_mul(size_of::<T>());
    if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(invalid(format!("{count} values in {name} are more than memory can hold")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> String {
        // SAFETY: the text stays until this thread's next failing call.
        unsafe { CStr::from_ptr(tantalum_error_message()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_becomes_a_status() {
        assert_eq!(call(|| panic!("number {}", 7)), TantalumStatus::Panicked);
        assert_eq!(message(), "a bug in the library: number 7");
        assert_eq!(call(|| std::panic::panic_any(3)), TantalumStatus::Panicked);
        assert_eq!(message(), "a bug in the library: no message");
    }

    #[test]
    fn a_thread_that_ends_has_no_message_and_does_not_panic() {
        struct Last;
        impl Drop for Last {
            fn drop(&mut self) {
                assert_eq!(call(|| Err(invalid("at the end"))), TantalumStatus::InvalidInput);
                assert_eq!(message(), "");
            }
        }
        thread_local!(static LAST: Last = const { Last });
        // Created before the message, so that it is dropped after it.
        let thread = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    LAST.with(|_| ());
                    call(|| Err(invalid("before")));
                })
                .join()
        });
        thread.unwrap();
    }

    #[test]
    fn messages_are_one_line_and_of_their_thread() {
        assert_eq!(call(|| Err(invalid("a\nb\0c"))), TantalumStatus::InvalidInput);
        assert_eq!(message(), "a b\\u0000c");
        assert_eq!(call(|| Ok(())), TantalumStatus::Ok);
        let other = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let before = message();
                call(|| Err(invalid("there")));
                (before, message())
            });
            other.join().unwrap()
        });
        assert_eq!(other, (String::new(), "there".to_owned()));
        assert_eq!(message(), "a b\\u0000c", "neither a success nor another thread changes it");
    }

    #[test]
    fn odd_pointers_are_refused() {
        let null = std::ptr::null::<u64>();
        let numbers = [1_u64, 2];
        // SAFETY: refused pointers are not followed; the last ones are valid.
        unsafe {
            assert!(reference(null, "it").unwrap_err().to_string().contains("it is NULL"));
            assert!(slice(null, 1, "it").is_err());
            assert!(slice(null, 0, "it").unwrap().is_empty());
            assert!(slice(numbers.as_ptr(), usize::MAX, "it").is_err());
            assert!(slice(numbers.as_ptr(), usize::MAX / 8, "it").is_err());
            let odd = numbers.as_ptr().byte_add(1);
            assert!(slice(odd, 1, "it").unwrap_err().to_string().contains("not aligned"));
            assert!(path(c"".as_ptr(), "it").is_err());
            assert_eq!(slice(numbers.as_ptr(), 2, "it").unwrap(), numbers);
        }
    }
}
