//! The handshake, until requests may be sent.
use super::End;
use super::inbox::Inbox;
use super::link::send_all;
use crate::options::ServerOptions;
use crate::protocol::handshake::*;
use tantalum_runtime::ByteStream;

/// Most options that a client may send; a real client sends a handful.
const OPTIONS_MAX: usize = 64;
/// Longest option that is read to its end and answered "too big"; a longer one closes the connection.
const OPTION_BYTES_DISCARDED_MAX: u32 = 1 << 20;
/// The required alignment of a client that was not told of block sizes.
const BLOCK_BYTES_UNTOLD: u32 = 1;

/// What follows an option.
enum Next {
    Option,
    Transmission { block_bytes: u32 },
    Abort,
}

/// Negotiates; returns the required alignment of offsets and lengths in this session.
pub(crate) async fn negotiate<S: ByteStream>(
    stream: &S,
    inbox: &mut Inbox<S>,
    options: &ServerOptions,
    info: &ExportInfo,
) -> Result<u32, End> {
    let mut out = Vec::new();
    greeting(&mut out);
    send_all(stream, &out).await.map_err(End::Failed)?;
    let Some(no_zeroes) = client_flags(inbox.take(CLIENT_FLAGS_BYTES).await?) else {
        return Err(End::Violation("client flags that were not offered"));
    };
    let mut told_block_bytes = BLOCK_BYTES_UNTOLD;
    for _ in 0..OPTIONS_MAX {
        out.clear();
        let Some((option, length)) = option_header(inbox.take(OPTION_HEADER_BYTES).await?) else {
            return Err(End::Violation("an option without its magic"));
        };
        let next = if length as usize > OPTION_BYTES_MAX {
            if length > OPTION_BYTES_DISCARDED_MAX || option == OPT_EXPORT_NAME {
                return Err(End::Violation("an option of absurd length"));
            }
            inbox.discard(length.into()).await?;
            option_reply(&mut out, option, REP_ERR_TOO_BIG, &[b"option data is too long"]);
            Next::Option
        } else {
            let data = inbox.take(length as usize).await?;
            let mut answer = Answer { out: &mut out, options, info, told_block_bytes };
            let next = answer.option(option, data, no_zeroes)?;
            told_block_bytes = answer.told_block_bytes;
            next
        };
        send_all(stream, &out).await.map_err(End::Failed)?;
        match next {
            Next::Option => {}
            Next::Transmission { block_bytes } => return Ok(block_bytes),
            Next::Abort => return Err(End::Closed),
        }
    }
    Err(End::Violation("options without end"))
}

struct Answer<'a> {
    out: &'a mut Vec<u8>,
    options: &'a ServerOptions,
    info: &'a ExportInfo,
    told_block_bytes: u32,
}

impl Answer<'_> {
    fn option(&mut self, option: u32, data: &[u8], no_zeroes: bool) -> Result<Next, End> {
        match option {
            OPT_EXPORT_NAME => {
                if !self.is_ours(data) {
                    // EXPORT_NAME has no error reply: a server can only close the connection.
                    return Err(End::Violation("an unknown export name"));
                }
                self.info.export_name_reply(self.out, no_zeroes);
                return Ok(Next::Transmission { block_bytes: self.told_block_bytes });
            }
            OPT_ABORT => {
                option_reply(self.out, option, REP_ACK, &[]);
                return Ok(Next::Abort);
            }
            OPT_LIST if data.is_empty() => {
                let name = self.options.export_name.as_bytes();
                let length = (name.len() as u32).to_be_bytes();
                let description = self.options.description.as_bytes();
                option_reply(self.out, option, REP_SERVER, &[&length, name, description]);
                option_reply(self.out, option, REP_ACK, &[]);
            }
            OPT_LIST => {
                option_reply(self.out, option, REP_ERR_INVALID, &[b"LIST takes no data"]);
            }
            OPT_INFO | OPT_GO => return Ok(self.info_or_go(option, data)),
            _ => option_reply(self.out, option, REP_ERR_UNSUP, &[]),
        }
        Ok(Next::Option)
    }

    fn info_or_go(&mut self, option: u32, data: &[u8]) -> Next {
        let Some(request) = InfoRequest::parse(data) else {
            option_reply(self.out, option, REP_ERR_INVALID, &[b"lengths do not add up"]);
            return Next::Option;
        };
        if !self.is_ours(request.name) {
            option_reply(self.out, option, REP_ERR_UNKNOWN, &[b"no export of that name"]);
            return Next::Option;
        }
        self.info.export_reply(self.out, option);
        for (info, text) in
            [(INFO_NAME, &self.options.export_name), (INFO_DESCRIPTION, &self.options.description)]
        {
            if request.asks_for(info) {
                let parts: [&[u8]; 2] = [&info.to_be_bytes(), text.as_bytes()];
                option_reply(self.out, option, REP_INFO, &parts);
            }
        }
        self.info.block_size_reply(self.out, option);
        // Every client gets the sizes, but only one that asks is sure to heed them.
        if request.asks_for(INFO_BLOCK_SIZE) {
            self.told_block_bytes = self.info.block_bytes_min;
        }
        option_reply(self.out, option, REP_ACK, &[]);
        if option == OPT_GO {
            Next::Transmission { block_bytes: self.told_block_bytes }
        } else {
            Next::Option
        }
    }

    fn is_ours(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.options.export_name.as_bytes()
    }
}
