//! Ids of objects as pages: numbers are pages, text is numbered from 0 in the order of first occurrence.
//!
//! The first id decides which kind they are; a later id of the other kind is refused, not guessed at. Each text is
//! kept, so that no two of them share a page, as they could with a hash.
use super::lines::Fields;
use super::number;
use tantalum_base::{FastMap, Result, Spec};

/// The ids of a trace.
#[derive(Debug)]
pub(crate) struct Ids {
    kind: Kind,
    /// The format, for refusals.
    format: String,
}

#[derive(Debug)]
enum Kind {
    /// The kind of the first id decides.
    Unknown,
    /// Numbers, which are pages.
    Numbers,
    /// Text, which is numbered.
    Texts(TextIds),
}

impl Ids {
    /// Accepts `ids` (`auto`, `number`, `text`).
    pub(crate) fn of(spec: &mut Spec<'_>) -> Result<Ids> {
        let kind = match spec.word("ids", &["auto", "number", "text"])? {
            "number" => Kind::Numbers,
            "text" => Kind::Texts(TextIds::default()),
            _ => Kind::Unknown,
        };
        Ok(Ids { kind, format: spec.name().to_owned() })
    }

    /// Whether they are known to be numbers.
    pub(crate) fn are_numbers(&self) -> bool {
        matches!(self.kind, Kind::Numbers)
    }

    /// The page of the id in the next field of `fields`.
    #[inline]
    pub(crate) fn next(&mut self, fields: &mut Fields<'_>) -> Result<u64, String> {
        if !matches!(self.kind, Kind::Texts(_))
            && let Some(page) = fields.number_ahead()
        {
            self.kind = Kind::Numbers;
            return Ok(page);
        }
        let text = fields.quoted().map_err(|why| format!("the object {why}"))?;
        self.page(&text)
    }

    /// The page of the id `text`.
    pub(crate) fn page(&mut self, text: &[u8]) -> Result<u64, String> {
        if text.is_empty() {
            return Err("the object is empty".to_owned());
        }
        if let Kind::Unknown = self.kind {
            self.kind = match number::whole(text) {
                Some(_) => Kind::Numbers,
                None => Kind::Texts(TextIds::default()),
            };
        }
        match &mut self.kind {
            Kind::Texts(texts) => Ok(texts.page(text)),
            Kind::Numbers | Kind::Unknown => number::whole(text).ok_or_else(|| {
                format!(
                    "the object is not a number of at most 64 bits, as ids are in this trace; if \
                     they are text, say {}:ids=text",
                    self.format
                )
            }),
        }
    }
}

/// The texts seen so far; memory grows with their number and length.
#[derive(Debug, Default)]
pub(crate) struct TextIds {
    pages: FastMap<Box<[u8]>, u64>,
}

impl TextIds {
    /// The page of `text`.
    #[inline]
    pub(crate) fn page(&mut self, text: &[u8]) -> u64 {
        if let Some(&page) = self.pages.get(text) {
            return page;
        }
        let page = self.pages.len() as u64;
        self.pages.insert(text.into(), page);
        page
    }
}
