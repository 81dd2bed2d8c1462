//! Requests and simple replies; replies in chunks are in [`structured`](super::structured).
use super::be;
use super::error_code::ErrorCode;

/// Magic number before every request.
pub(crate) const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Magic number before every simple reply.
pub(crate) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Bytes of a request without its payload.
pub(crate) const REQUEST_BYTES: usize = 28;
/// Bytes of a simple reply without its payload.
pub(crate) const SIMPLE_REPLY_BYTES: usize = 16;

/// Command flags.
pub(crate) const CMD_FLAG_FUA: u16 = 1;
pub(crate) const CMD_FLAG_NO_HOLE: u16 = 1 << 1;
pub(crate) const CMD_FLAG_DF: u16 = 1 << 2;
pub(crate) const CMD_FLAG_REQ_ONE: u16 = 1 << 3;
pub(crate) const CMD_FLAG_FAST_ZERO: u16 = 1 << 4;

/// The operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    Read,
    Write,
    Disconnect,
    Flush,
    Trim,
    WriteZeroes,
    BlockStatus,
    /// A number that this server does not know; such a request has no payload.
    Unknown(u16),
}

impl Command {
    fn of(number: u16) -> Command {
        match number {
            0 => Command::Read,
            1 => Command::Write,
            2 => Command::Disconnect,
            3 => Command::Flush,
            4 => Command::Trim,
            6 => Command::WriteZeroes,
            7 => Command::BlockStatus,
            other => Command::Unknown(other),
        }
    }

    /// Flags that the command allows. FUA is valid with every command, DF only if replies are `structured`.
    pub(crate) fn flags_allowed(self, structured: bool) -> u16 {
        match self {
            Command::Read if structured => CMD_FLAG_FUA | CMD_FLAG_DF,
            Command::BlockStatus => CMD_FLAG_FUA | CMD_FLAG_REQ_ONE,
            Command::WriteZeroes => CMD_FLAG_FUA | CMD_FLAG_NO_HOLE | CMD_FLAG_FAST_ZERO,
            _ => CMD_FLAG_FUA,
        }
    }

    /// Whether the command changes the export.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Command::Write | Command::Trim | Command::WriteZeroes)
    }
}

/// One request, without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    pub(crate) flags: u16,
    pub(crate) command: Command,
    /// Chosen by the client; the reply repeats it.
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

impl Request {
    /// Parses [`REQUEST_BYTES`] bytes; `None` if the magic is wrong.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Request> {
        (be!(u32, bytes, 0) == REQUEST_MAGIC).then(|| Request {
            flags: be!(u16, bytes, 4),
            command: Command::of(be!(u16, bytes, 6)),
            cookie: be!(u64, bytes, 8),
            offset: be!(u64, bytes, 16),
            length: be!(u32, bytes, 24),
        })
    }

    /// Whether `flag` is set.
    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// A reply's header; `None` is success, after which a read's payload follows.
pub(crate) fn simple_reply(cookie: u64, error: Option<ErrorCode>) -> [u8; SIMPLE_REPLY_BYTES] {
    let mut reply = [0; SIMPLE_REPLY_BYTES];
    reply[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    reply[4..8].copy_from_slice(&error.map_or(0, |error| error as u32).to_be_bytes());
    reply[8..].copy_from_slice(&cookie.to_be_bytes());
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_byte_for_byte() {
        let bytes = b"\x25\x60\x95\x13\0\x01\0\x01abcdefgh\0\0\0\0\0\0\x10\0\0\0\x02\0";
        let request = Request::parse(bytes).unwrap();
        assert_eq!(
            request,
            Request {
                flags: CMD_FLAG_FUA,
                command: Command::Write,
                cookie: u64::from_be_bytes(*b"abcdefgh"),
                offset: 4096,
                length: 512,
            }
        );
        assert_eq!(
            Request::parse(b"\x25\x60\x95\x14\0\x01\0\x01abcdefgh\0\0\0\0\0\0\x10\0\0\0\x02\0"),
            None
        );
    }

    #[test]
    fn command_numbers() {
        let known = [
            (0, Command::Read),
            (1, Command::Write),
            (2, Command::Disconnect),
            (3, Command::Flush),
            (4, Command::Trim),
            (6, Command::WriteZeroes),
            (5, Command::Unknown(5)),
            (7, Command::BlockStatus),
            (8, Command::Unknown(8)),
        ];
        for (number, command) in known {
            assert_eq!(Command::of(number), command);
        }
    }

    #[test]
    fn simple_reply_byte_for_byte() {
        let cookie = u64::from_be_bytes(*b"abcdefgh");
        assert_eq!(simple_reply(cookie, None), *b"\x67\x44\x66\x98\0\0\0\0abcdefgh");
        assert_eq!(
            simple_reply(cookie, Some(ErrorCode::Shutdown)),
            *b"\x67\x44\x66\x98\0\0\0\x6cabcdefgh"
        );
    }
}
