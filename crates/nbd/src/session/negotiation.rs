//! The handshake, until requests may be sent.
use super::End;
use super::inbox::Inbox;
use super::link::Link;
use super::tls;
use crate::export::Export;
use crate::options::ServerOptions;
use crate::part::Part;
use crate::protocol::handshake::*;
use crate::protocol::meta_context::{ALLOCATION, ALLOCATION_ID, MetaRequest};
use crate::terms::Terms;
use tantalum_base::{PageBuf, PageDevice};
use tantalum_runtime::{ByteStream, Runtime};

/// Maximum options that a client may send; a real client sends a handful.
const OPTIONS_MAX: usize = 64;
/// Longest option that is read to its end and answered "too big"; a longer one closes the connection.
const OPTION_BYTES_DISCARDED_MAX: u32 = 1 << 20;

/// Bytes of an unknown name in the log.
const NAME_BYTES_TOLD_MAX: usize = 100;

/// The step that follows an option.
enum Next {
    Option,
    Transmission,
    Tls,
    Abort,
}

/// Negotiates; returns the terms of the session.
pub(crate) async fn negotiate<R: Runtime, S: ByteStream, D: PageDevice<Page = PageBuf>>(
    runtime: &R,
    link: &Link<S>,
    inbox: &mut Inbox<S>,
    export: &Export<D>,
) -> Result<Terms, End> {
    let mut out = Vec::new();
    greeting(&mut out);
    link.send_all(&out).await.map_err(End::Failed)?;
    let Some(no_zeroes) = client_flags(inbox.take(CLIENT_FLAGS_BYTES).await?) else {
        return Err(End::Violation("client flags that were not offered"));
    };
    let mut terms = Terms::default();
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
            // This option resets the earlier selection, even if it fails.
            terms.allocation &= option != OPT_SET_META_CONTEXT;
            match tls::is_required(&export.options, link.is_secure(), option) {
                true => tls::require(&mut out, option),
                false => {
                    option_reply(&mut out, option, REP_ERR_TOO_BIG, &[b"option data is too long"]);
                }
            }
            Next::Option
        } else {
            let data = inbox.take(length as usize).await?;
            let (options, info, is_secure) = (&export.options, &export.info, link.is_secure());
            let mut answer = Answer { out: &mut out, options, info, is_secure, terms: &mut terms };
            answer.option(option, data, no_zeroes)?
        };
        if matches!(next, Next::Tls) && !inbox.is_empty() {
            // An attacker on the network could have inserted these bytes, so that they pass for the client's.
            return Err(End::Violation("bytes after STARTTLS without TLS"));
        }
        link.send_all(&out).await.map_err(End::Failed)?;
        match next {
            Next::Option => {}
            Next::Tls => {
                tls::start(runtime, link, export).await?;
                // Everything negotiated before is dropped, as it was not protected.
                terms = Terms::default();
            }
            Next::Transmission => return Ok(terms),
            Next::Abort => return Err(End::Closed),
        }
    }
    Err(End::Violation("options without end"))
}

struct Answer<'a> {
    out: &'a mut Vec<u8>,
    options: &'a ServerOptions,
    info: &'a ExportInfo,
    is_secure: bool,
    terms: &'a mut Terms,
}

impl Answer<'_> {
    fn option(&mut self, option: u32, data: &[u8], no_zeroes: bool) -> Result<Next, End> {
        if tls::is_required(self.options, self.is_secure, option) {
            if option == OPT_EXPORT_NAME {
                // This option has no error reply.
                return Err(End::Violation("EXPORT_NAME without TLS, which is required"));
            }
            tls::require(self.out, option);
            return Ok(Next::Option);
        }
        match option {
            OPT_EXPORT_NAME => {
                let Ok(part) = self.part_named(data) else {
                    // EXPORT_NAME has no error reply: a server can only close the connection.
                    return Err(End::Violation("an unknown export name"));
                };
                self.terms.part = part;
                self.info_told(part).export_name_reply(self.out, no_zeroes);
                return Ok(Next::Transmission);
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
            OPT_STARTTLS if self.options.tls.is_some() => {
                return Ok(match tls::answer(self.out, data, self.is_secure) {
                    true => Next::Tls,
                    false => Next::Option,
                });
            }
            OPT_INFO | OPT_GO => return Ok(self.info_or_go(option, data)),
            OPT_STRUCTURED_REPLY if data.is_empty() => {
                self.terms.structured = true;
                option_reply(self.out, option, REP_ACK, &[]);
            }
            OPT_STRUCTURED_REPLY => {
                let words: &[u8] = b"STRUCTURED_REPLY takes no data";
                option_reply(self.out, option, REP_ERR_INVALID, &[words]);
            }
            OPT_LIST_META_CONTEXT | OPT_SET_META_CONTEXT => self.meta_context(option, data),
            _ => option_reply(self.out, option, REP_ERR_UNSUP, &[]),
        }
        Ok(Next::Option)
    }

    fn info_or_go(&mut self, option: u32, data: &[u8]) -> Next {
        let Some(request) = InfoRequest::parse(data) else {
            option_reply(self.out, option, REP_ERR_INVALID, &[b"lengths do not add up"]);
            return Next::Option;
        };
        let part = match self.part_named(request.name) {
            Ok(part) => part,
            Err(why) => {
                option_reply(self.out, option, REP_ERR_UNKNOWN, &[why.as_bytes()]);
                return Next::Option;
            }
        };
        self.terms.part = part;
        self.info_told(part).export_reply(self.out, option);
        let name = match request.name {
            [] => self.options.export_name.as_bytes(),
            name => name,
        };
        for (info, text) in
            [(INFO_NAME, name), (INFO_DESCRIPTION, self.options.description.as_bytes())]
        {
            if request.asks_for(info) {
                let parts: [&[u8]; 2] = [&info.to_be_bytes(), text];
                option_reply(self.out, option, REP_INFO, &parts);
            }
        }
        self.info.block_size_reply(self.out, option);
        // Every client gets the sizes, but only a client that requests them is sure to obey them.
        if request.asks_for(INFO_BLOCK_SIZE) {
            self.terms.block_bytes = self.info.block_bytes_min;
        }
        option_reply(self.out, option, REP_ACK, &[]);
        if option == OPT_GO { Next::Transmission } else { Next::Option }
    }

    fn meta_context(&mut self, option: u32, data: &[u8]) {
        let sets = option == OPT_SET_META_CONTEXT;
        if sets {
            // The earlier selection is reset, even if this fails.
            self.terms.allocation = false;
        }
        let Some(request) = MetaRequest::parse(data) else {
            return option_reply(self.out, option, REP_ERR_INVALID, &[b"lengths do not add up"]);
        };
        if sets && !self.terms.structured {
            let words: &[u8] = b"metadata contexts need structured replies";
            return option_reply(self.out, option, REP_ERR_INVALID, &[words]);
        }
        if let Err(why) = self.part_named(request.name) {
            return option_reply(self.out, option, REP_ERR_UNKNOWN, &[why.as_bytes()]);
        }
        let (found, id) = match sets {
            true => (request.selects_allocation(), ALLOCATION_ID),
            // In a list, the context's number is reserved.
            false => (request.lists_allocation(), 0),
        };
        if found {
            let parts: [&[u8]; 2] = [&id.to_be_bytes(), ALLOCATION.as_bytes()];
            option_reply(self.out, option, REP_META_CONTEXT, &parts);
        }
        self.terms.allocation |= sets && found;
        option_reply(self.out, option, REP_ACK, &[]);
    }

    /// The export as announced to this client: DF is only for clients with structured replies.
    fn info_told(&self, part: Part) -> ExportInfo {
        let more = if self.terms.structured { EXPORT_SEND_DF } else { 0 };
        ExportInfo { flags: self.info.flags | more, size_bytes: part.bytes, ..*self.info }
    }

    fn part_named(&self, name: &[u8]) -> Result<Part, &'static str> {
        let part = Part::named(name, &self.options.export_name, self.info.size_bytes);
        part.inspect_err(|why| {
            tracing::info!(name = %name[..name.len().min(NAME_BYTES_TOLD_MAX)].escape_ascii(), why, "a client asked for an export that does not exist");
        })
    }
}
