//! Requests that are answered with an error before the device sees them.
use crate::export::Export;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::transmission::{CMD_FLAG_FAST_ZERO, CMD_FLAG_NO_HOLE, Command, Request};
use crate::terms::Terms;
use tantalum_base::{PageBuf, PageDevice};

/// The reason for the refusal of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) why: &'static str,
}

impl Refusal {
    fn invalid(why: &'static str) -> Option<Self> {
        Some(Refusal { code: ErrorCode::Inval, why })
    }
}

impl<D: PageDevice<Page = PageBuf>> Export<D> {
    /// The problem of a request of a client with these terms, if there is one.
    pub(crate) fn check(&self, request: &Request, terms: &Terms) -> Option<Refusal> {
        let (offset, length) = (request.offset, u64::from(request.length));
        if matches!(request.command, Command::Unknown(_)) {
            return Refusal::invalid("an unknown command");
        }
        if request.command == Command::BlockStatus && !terms.allocation {
            return Refusal::invalid("block status without a negotiated metadata context");
        }
        if request.flags & !request.command.flags_allowed(terms.structured) != 0 {
            return Refusal::invalid("a flag that this command does not have");
        }
        if request.command == Command::Flush {
            let empty = offset == 0 && length == 0;
            return if empty { None } else { Refusal::invalid("a flush of a range") };
        }
        if request.command.writes() && self.options.read_only {
            return Some(Refusal { code: ErrorCode::Perm, why: "the export is read-only" });
        }
        let has_payload = matches!(request.command, Command::Read | Command::Write);
        if has_payload && request.length > self.options.request_bytes_max {
            return Refusal::invalid("longer than the maximum block size");
        }
        let block_bytes = u64::from(terms.block_bytes);
        if !offset.is_multiple_of(block_bytes) || !length.is_multiple_of(block_bytes) {
            return Refusal::invalid("offset or length is no multiple of the minimum block size");
        }
        if offset.checked_add(length).is_none_or(|end| end > terms.part.bytes) {
            let full = matches!(request.command, Command::Write | Command::WriteZeroes);
            let code = if full { ErrorCode::NoSpc } else { ErrorCode::Inval };
            return Some(Refusal { code, why: "past the end of the export" });
        }
        // A reply must have a descriptor, and a descriptor must have a length.
        if request.command == Command::BlockStatus && length == 0 {
            return Refusal::invalid("block status of no bytes");
        }
        // Zeros without a hole are as slow as any write, which FAST_ZERO forbids.
        (request.has(CMD_FLAG_FAST_ZERO) && request.has(CMD_FLAG_NO_HOLE)).then_some(Refusal {
            code: ErrorCode::NotSup,
            why: "zeros that leave no hole are as slow as any write",
        })
    }
}
