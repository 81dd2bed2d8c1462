//! Formats in which each line is one request to a volume that the line names; this is their common code.
use super::lines::{self, Line, Lines};
use super::volumes::Volumes;
use super::{Decode, Format, Head};
use crate::event::BlockEvent;
use std::fmt::Debug;
use std::marker::PhantomData;
use tantalum_base::{Result, Spec};

/// The particulars of such a format.
pub(crate) trait VolumeLines: Send + Sync + Debug + 'static {
    /// The name by which users select the format.
    const NAME: &'static str;

    /// The header that some traces begin with; empty if none do.
    const COLUMNS: &'static [&'static str] = &[];

    /// Kinds of data that no event holds.
    const DROPPED: &'static [&'static str] = &["times"];

    /// Whether a valid `line` is certainly of this format.
    fn is_sure(_line: &[u8]) -> bool {
        true
    }

    /// The event of `line`.
    fn event(line: &[u8], volumes: &mut Volumes) -> Result<BlockEvent, String>;
}

impl<L: VolumeLines> Format<BlockEvent> for L {
    fn name(&self) -> &'static str {
        L::NAME
    }

    fn detect(&self, head: &Head<'_>) -> bool {
        let mut volumes = Volumes::any_number();
        head.every_line(is_header::<L>, |line| {
            L::event(line, &mut volumes).is_ok() && L::is_sure(line)
        })
    }

    fn decoder(&self, _spec: &mut Spec<'_>) -> Result<Box<dyn Decode<BlockEvent>>> {
        let volumes = Volumes::any_number();
        Ok(Box::new(Lines::new(Parser::<L> { volumes, format: PhantomData })))
    }
}

fn is_header<L: VolumeLines>(line: &[u8]) -> bool {
    !L::COLUMNS.is_empty() && lines::is_header(line, L::COLUMNS)
}

struct Parser<L> {
    volumes: Volumes,
    format: PhantomData<L>,
}

impl<L: VolumeLines> Line<BlockEvent> for Parser<L> {
    fn read_header(&mut self, line: &[u8]) -> Result<bool, String> {
        Ok(is_header::<L>(line))
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<BlockEvent>) -> Result<(), String> {
        out.push(L::event(line, &mut self.volumes)?);
        Ok(())
    }

    fn dropped(&self) -> Vec<&'static str> {
        L::DROPPED.to_vec()
    }

    fn names(&self) -> &[String] {
        self.volumes.names()
    }
}
