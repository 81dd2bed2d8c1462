//! The greetings at the beginning of a connection.
use super::fields::{Fields, Put};
use super::replies::refusal;
use super::{Kind, frame, malformed};
use tantalum_base::{Durability, Error, ErrorKind, Limits, Result};

/// The protocol version of this program.
pub const VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"TANTLOCL";
/// A flag of both greetings: read-only.
const READ_ONLY: u32 = 1;
/// A flag of a welcome: it names the file of the volume.
const HAS_FILE: u32 = 2;

/// A client's greeting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The client will change nothing.
    pub read_only: bool,
    /// Its process number, for logs.
    pub pid: u32,
}

/// The identity of a file, independent of its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileId {
    /// Major and minor number of its device.
    pub device: (u32, u32),
    /// Its inode number on that device.
    pub inode: u64,
}

/// A server's reply to a greeting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Welcome {
    /// Changes are refused.
    pub read_only: bool,
    /// The server's process number.
    pub pid: u32,
    /// The device's limits for this connection.
    pub limits: Limits,
    /// The number of the last change.
    pub last_change: u64,
    /// The file that contains the volume.
    pub file: Option<FileId>,
}

impl Hello {
    /// Encodes the frame.
    pub fn encode(&self) -> Vec<u8> {
        frame(Kind::Hello, 0, |body| {
            body.extend_from_slice(MAGIC);
            body.u32(VERSION);
            body.u32(if self.read_only { READ_ONLY } else { 0 });
            body.u32(self.pid);
            body.u32(0);
        })
    }

    /// Decodes a frame.
    ///
    /// # Errors
    /// `Format` if it is not a greeting, `Unsupported` if it has another version.
    pub fn decode(kind: Kind, body: &[u8]) -> Result<Hello> {
        let mut fields = Fields(body);
        if kind != Kind::Hello || fields.bytes(8)? != MAGIC {
            return Err(malformed("no greeting"));
        }
        let version = fields.u32()?;
        if version != VERSION {
            let context = format!("the client speaks version {version}, the server {VERSION}");
            return Err(Error::new(ErrorKind::Unsupported, context));
        }
        let (flags, pid) = (fields.u32()?, fields.u32()?);
        Ok(Hello { read_only: flags & READ_ONLY != 0, pid })
    }
}

impl Welcome {
    /// Encodes the frame.
    pub fn encode(&self) -> Vec<u8> {
        frame(Kind::Welcome, 0, |body| {
            let read_only = if self.read_only { READ_ONLY } else { 0 };
            let has_file = if self.file.is_some() { HAS_FILE } else { 0 };
            body.u32(VERSION);
            body.u32(read_only | has_file);
            body.u32(self.pid);
            body.u32(self.limits.page_bytes);
            body.u64(self.limits.pages);
            body.u32(self.limits.atomic_write_pages_max);
            body.u32(self.limits.transaction_pages_max);
            body.u32(self.limits.transactions_max);
            body.u32(self.limits.share_pairs_max);
            body.u32(self.limits.durability as u32);
            body.u32(0);
            body.u64(self.last_change);
            let file = self.file.unwrap_or(FileId { device: (0, 0), inode: 0 });
            body.u32(file.device.0);
            body.u32(file.device.1);
            body.u64(file.inode);
        })
    }

    /// Decodes a frame.
    ///
    /// # Errors
    /// The server's error if it refuses the connection; `Format` if the frame is neither.
    pub fn decode(kind: Kind, body: &[u8]) -> Result<Welcome> {
        let mut fields = Fields(body);
        match kind {
            Kind::Welcome => {}
            Kind::Refused => return Err(refusal(&mut fields)?),
            _ => return Err(malformed("no greeting")),
        }
        let (_version, flags, pid) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let mut limits = Limits {
            page_bytes: fields.u32()?,
            pages: fields.u64()?,
            atomic_write_pages_max: fields.u32()?,
            transaction_pages_max: fields.u32()?,
            transactions_max: fields.u32()?,
            share_pairs_max: fields.u32()?,
            durability: Durability::Volatile,
        };
        let all = [Durability::OnAck, Durability::OnFlush, Durability::Volatile];
        let durability = fields.u32()?;
        let known = all.into_iter().find(|known| *known as u32 == durability);
        limits.durability = known.ok_or_else(|| malformed("an unknown durability"))?;
        fields.u32()?;
        let last_change = fields.u64()?;
        let file = FileId { device: (fields.u32()?, fields.u32()?), inode: fields.u64()? };
        let file = (flags & HAS_FILE != 0).then_some(file);
        Ok(Welcome { read_only: flags & READ_ONLY != 0, pid, limits, last_change, file })
    }
}
