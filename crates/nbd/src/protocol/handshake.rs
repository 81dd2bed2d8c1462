//! Fixed newstyle negotiation: greeting, options, option replies.
use super::be;

/// "NBDMAGIC".
pub(crate) const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// "IHAVEOPT", in the greeting and before every option.
pub(crate) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Before every option reply.
pub(crate) const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// Handshake flags, and the client's flags that answer them.
pub(crate) const FLAG_FIXED_NEWSTYLE: u16 = 1;
pub(crate) const FLAG_NO_ZEROES: u16 = 1 << 1;

/// Transmission flags.
pub(crate) const EXPORT_HAS_FLAGS: u16 = 1;
pub(crate) const EXPORT_READ_ONLY: u16 = 1 << 1;
pub(crate) const EXPORT_SEND_FLUSH: u16 = 1 << 2;
pub(crate) const EXPORT_SEND_FUA: u16 = 1 << 3;
pub(crate) const EXPORT_SEND_TRIM: u16 = 1 << 5;
pub(crate) const EXPORT_SEND_WRITE_ZEROES: u16 = 1 << 6;
pub(crate) const EXPORT_SEND_DF: u16 = 1 << 7;
pub(crate) const EXPORT_CAN_MULTI_CONN: u16 = 1 << 8;
pub(crate) const EXPORT_SEND_FAST_ZERO: u16 = 1 << 11;

/// Options that this server knows.
pub(crate) const OPT_EXPORT_NAME: u32 = 1;
pub(crate) const OPT_ABORT: u32 = 2;
pub(crate) const OPT_LIST: u32 = 3;
pub(crate) const OPT_STARTTLS: u32 = 5;
pub(crate) const OPT_INFO: u32 = 6;
pub(crate) const OPT_GO: u32 = 7;
pub(crate) const OPT_STRUCTURED_REPLY: u32 = 8;
pub(crate) const OPT_LIST_META_CONTEXT: u32 = 9;
pub(crate) const OPT_SET_META_CONTEXT: u32 = 10;

/// Option reply types.
pub(crate) const REP_ACK: u32 = 1;
pub(crate) const REP_SERVER: u32 = 2;
pub(crate) const REP_INFO: u32 = 3;
pub(crate) const REP_META_CONTEXT: u32 = 4;
pub(crate) const REP_ERR_UNSUP: u32 = (1 << 31) + 1;
pub(crate) const REP_ERR_INVALID: u32 = (1 << 31) + 3;
pub(crate) const REP_ERR_TLS_REQD: u32 = (1 << 31) + 5;
pub(crate) const REP_ERR_UNKNOWN: u32 = (1 << 31) + 6;
pub(crate) const REP_ERR_TOO_BIG: u32 = (1 << 31) + 9;

/// Information types of INFO and GO.
pub(crate) const INFO_EXPORT: u16 = 0;
pub(crate) const INFO_NAME: u16 = 1;
pub(crate) const INFO_DESCRIPTION: u16 = 2;
pub(crate) const INFO_BLOCK_SIZE: u16 = 3;

/// Bytes of the client's flags.
pub(crate) const CLIENT_FLAGS_BYTES: usize = 4;
/// Bytes before an option's data.
pub(crate) const OPTION_HEADER_BYTES: usize = 16;
/// Longest name or description that the protocol allows.
pub(crate) const NAME_BYTES_MAX: usize = 4096;
/// Longest option data that is parsed; longer data is "too big". A name and all information
/// requests that exist fit.
pub(crate) const OPTION_BYTES_MAX: usize = NAME_BYTES_MAX + 1024;
/// Zeros after the answer to EXPORT_NAME for a client that did not decline them.
pub(crate) const EXPORT_NAME_ZEROES: usize = 124;

/// The server's first 18 bytes.
pub(crate) fn greeting(out: &mut Vec<u8>) {
    out.extend(MAGIC.to_be_bytes());
    out.extend(OPTION_MAGIC.to_be_bytes());
    out.extend((FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
}

/// Whether the client's flags request to omit the zeros of EXPORT_NAME. `None` for flags that were not offered, after
/// which a server must close the connection.
pub(crate) fn client_flags(bytes: &[u8]) -> Option<bool> {
    let flags = be!(u32, bytes, 0);
    let offered = u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
    (flags & !offered == 0).then_some(flags & u32::from(FLAG_NO_ZEROES) != 0)
}

/// An option's number and the length of its data; `None` if the magic is wrong.
pub(crate) fn option_header(bytes: &[u8]) -> Option<(u32, u32)> {
    (be!(u64, bytes, 0) == OPTION_MAGIC).then(|| (be!(u32, bytes, 8), be!(u32, bytes, 12)))
}

/// One reply to `option`; `data` is given in parts.
pub(crate) fn option_reply(out: &mut Vec<u8>, option: u32, reply: u32, data: &[&[u8]]) {
    let length: usize = data.iter().map(|part| part.len()).sum();
    out.extend(REPLY_MAGIC.to_be_bytes());
    out.extend(option.to_be_bytes());
    out.extend(reply.to_be_bytes());
    out.extend((length as u32).to_be_bytes());
    data.iter().for_each(|part| out.extend_from_slice(part));
}

/// The data of INFO and GO.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct InfoRequest<'a> {
    pub(crate) name: &'a [u8],
    requests: &'a [u8],
}

impl<'a> InfoRequest<'a> {
    /// Parses the data; `None` if its lengths contradict each other.
    pub(crate) fn parse(data: &'a [u8]) -> Option<Self> {
        let name_bytes = data.get(..4).map(|word| be!(u32, word, 0))? as usize;
        let (name, rest) = data[4..].split_at_checked(name_bytes)?;
        let count = rest.get(..2).map(|word| be!(u16, word, 0))?;
        let requests = &rest[2..];
        (requests.len() == 2 * usize::from(count)).then_some(InfoRequest { name, requests })
    }

    /// Whether the client requested this piece of information.
    pub(crate) fn asks_for(&self, info: u16) -> bool {
        self.requests.chunks_exact(2).any(|word| be!(u16, word, 0) == info)
    }
}

/// The description of an export that a client gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ExportInfo {
    pub(crate) size_bytes: u64,
    pub(crate) flags: u16,
    pub(crate) block_bytes_min: u32,
    pub(crate) block_bytes_preferred: u32,
    pub(crate) request_bytes_max: u32,
}

impl ExportInfo {
    /// The answer to EXPORT_NAME, which has no header.
    pub(crate) fn export_name_reply(&self, out: &mut Vec<u8>, no_zeroes: bool) {
        out.extend(self.size_bytes.to_be_bytes());
        out.extend(self.flags.to_be_bytes());
        if !no_zeroes {
            out.extend([0; EXPORT_NAME_ZEROES]);
        }
    }

    /// The information reply with size and transmission flags.
    pub(crate) fn export_reply(&self, out: &mut Vec<u8>, option: u32) {
        let parts: [&[u8]; 3] =
            [&INFO_EXPORT.to_be_bytes(), &self.size_bytes.to_be_bytes(), &self.flags.to_be_bytes()];
        option_reply(out, option, REP_INFO, &parts);
    }

    /// The information reply with the block sizes.
    pub(crate) fn block_size_reply(&self, out: &mut Vec<u8>, option: u32) {
        let parts: [&[u8]; 4] = [
            &INFO_BLOCK_SIZE.to_be_bytes(),
            &self.block_bytes_min.to_be_bytes(),
            &self.block_bytes_preferred.to_be_bytes(),
            &self.request_bytes_max.to_be_bytes(),
        ];
        option_reply(out, option, REP_INFO, &parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn greeting_is_magic_magic_flags() {
        assert_eq!(bytes(greeting), b"NBDMAGICIHAVEOPT\0\x03");
    }

    #[test]
    fn unknown_client_flags_are_refused() {
        assert_eq!(client_flags(&[0, 0, 0, 3]), Some(true));
        assert_eq!(client_flags(&[0, 0, 0, 1]), Some(false));
        assert_eq!(client_flags(&[0, 0, 0, 0]), Some(false));
        assert_eq!(client_flags(&[0, 0, 0, 7]), None);
        assert_eq!(client_flags(&[0x80, 0, 0, 1]), None);
    }

    #[test]
    fn option_header_wants_its_magic() {
        assert_eq!(option_header(b"IHAVEOPT\0\0\0\x07\0\0\x01\x02"), Some((7, 0x102)));
        assert_eq!(option_header(b"IHAVEOPS\0\0\0\x07\0\0\x01\x02"), None);
    }

    #[test]
    fn option_reply_counts_its_parts() {
        let reply = bytes(|out| option_reply(out, OPT_LIST, REP_SERVER, &[b"\0\0\0\x01", b"a"]));
        assert_eq!(
            reply,
            b"\x00\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x03\0\0\0\x02\0\0\0\x05\0\0\0\x01a"
        );
        let reply = bytes(|out| option_reply(out, 99, REP_ERR_UNSUP, &[]));
        assert_eq!(reply, b"\x00\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x63\x80\0\0\x01\0\0\0\0");
    }

    #[test]
    fn info_request_is_taken_apart_or_refused() {
        let request = InfoRequest::parse(b"\0\0\0\x02ab\0\x02\0\x03\0\x01").unwrap();
        assert_eq!(request.name, b"ab");
        assert!(request.asks_for(INFO_BLOCK_SIZE) && request.asks_for(INFO_NAME));
        assert!(!request.asks_for(INFO_DESCRIPTION));
        assert_eq!(InfoRequest::parse(b"\0\0\0\0\0\0").unwrap().name, b"");
        let bad: [&[u8]; 7] = [
            b"",
            b"\0\0\0",
            b"\0\0\0\x05ab\0\0",
            b"\xff\xff\xff\xffab\0\0",
            b"\0\0\0\x02ab\0",
            b"\0\0\0\x02ab\0\x02\0\x03",
            b"\0\0\0\x02ab\0\0\0",
        ];
        for data in bad {
            assert_eq!(InfoRequest::parse(data), None, "{data:?}");
        }
    }

    #[test]
    fn export_information_byte_for_byte() {
        let info = ExportInfo {
            size_bytes: 0x1_0000,
            flags: 0x016d,
            block_bytes_min: 512,
            block_bytes_preferred: 4096,
            request_bytes_max: 32 << 20,
        };
        assert_eq!(
            bytes(|out| info.export_reply(out, OPT_GO))[8..],
            *b"\0\0\0\x07\0\0\0\x03\0\0\0\x0c\0\0\0\0\0\0\0\x01\0\0\x01\x6d"
        );
        assert_eq!(
            bytes(|out| info.block_size_reply(out, OPT_INFO))[8..],
            *b"\0\0\0\x06\0\0\0\x03\0\0\0\x0e\0\x03\0\0\x02\0\0\0\x10\0\x02\0\0\0"
        );
        assert_eq!(bytes(|out| info.export_name_reply(out, true)), b"\0\0\0\0\0\x01\0\0\x01\x6d");
        let with_zeroes = bytes(|out| info.export_name_reply(out, false));
        assert_eq!(with_zeroes.len(), 134);
        assert!(with_zeroes[10..].iter().all(|&byte| byte == 0));
    }
}
