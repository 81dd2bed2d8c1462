//! A tiny NBD client: whole pages, errors as numbers.
use std::io::{Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

pub const PAGE_BYTES: usize = 4096;
pub const EPERM: u32 = 1;
pub const EIO: u32 = 5;

/// A request that the server is to answer.
#[derive(Clone, Copy)]
pub enum Command {
    Read = 0,
    Write = 1,
    Flush = 3,
    Trim = 4,
    WriteZeroes = 6,
}

/// A connection to a server.
pub struct Client {
    stream: UnixStream,
    /// Bytes of the export.
    pub export_bytes: u64,
}

impl Client {
    /// Connects, and opens the only export with the oldest option, without any extension.
    pub fn connect(socket: &Path) -> Result<Client> {
        let mut stream = UnixStream::connect(socket)?;
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        let mut hello = 3u32.to_be_bytes().to_vec();
        hello.extend(b"IHAVEOPT");
        hello.extend(1u32.to_be_bytes());
        hello.extend(0u32.to_be_bytes());
        stream.write_all(&hello)?;
        let mut export = [0; 10];
        stream.read_exact(&mut export)?;
        let export_bytes = u64::from_be_bytes(export[..8].try_into().expect("8 bytes"));
        Ok(Client { stream, export_bytes })
    }

    /// Sends a request for `pages` pages from `first`; `content` for a write.
    pub fn send(
        &mut self,
        command: Command,
        cookie: u64,
        first: u64,
        pages: usize,
        content: &[u8],
    ) -> Result<()> {
        let (offset, length) = (first * PAGE_BYTES as u64, (pages * PAGE_BYTES) as u32);
        self.send_bytes(command, cookie, offset, length, content)
    }

    fn send_bytes(
        &mut self,
        command: Command,
        cookie: u64,
        offset: u64,
        length: u32,
        content: &[u8],
    ) -> Result<()> {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend(0u16.to_be_bytes());
        request.extend((command as u16).to_be_bytes());
        request.extend(cookie.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(length.to_be_bytes());
        request.extend(content);
        self.stream.write_all(&request)
    }

    /// Closes the client's own direction, without a goodbye; replies still come.
    pub fn send_no_more(&self) -> Result<()> {
        self.stream.shutdown(std::net::Shutdown::Write)
    }

    /// The next reply: cookie and error (0 for none).
    pub fn reply(&mut self) -> Result<(u64, u32)> {
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply)?;
        assert_eq!(reply[..4], 0x6744_6698_u32.to_be_bytes());
        let error = u32::from_be_bytes(reply[4..8].try_into().expect("4 bytes"));
        let cookie = u64::from_be_bytes(reply[8..].try_into().expect("8 bytes"));
        Ok((cookie, error))
    }

    /// Reads `pages` pages, or the error's number.
    pub fn read(&mut self, first: u64, pages: usize) -> std::result::Result<Vec<u8>, u32> {
        self.send(Command::Read, 1, first, pages, &[]).expect("sent");
        match self.reply().expect("answered") {
            (_, 0) => {
                let mut content = vec![0; pages * PAGE_BYTES];
                self.stream.read_exact(&mut content).expect("content");
                Ok(content)
            }
            (_, error) => Err(error),
        }
    }

    /// Changes `length` bytes from byte `offset` on, and waits for the reply: the error's number, or 0.
    pub fn change(&mut self, command: Command, offset: u64, length: u32, content: &[u8]) -> u32 {
        self.send_bytes(command, 1, offset, length, content).expect("sent");
        self.reply().expect("answered").1
    }

    /// Reads `length` bytes from byte `offset` on.
    pub fn read_bytes(&mut self, offset: u64, length: usize) -> Vec<u8> {
        self.send_bytes(Command::Read, 1, offset, length as u32, &[]).expect("sent");
        assert_eq!(self.reply().expect("answered"), (1, 0));
        let mut content = vec![0; length];
        self.stream.read_exact(&mut content).expect("content");
        content
    }

    /// Writes, and waits for the reply.
    pub fn write(&mut self, first: u64, content: &[u8]) {
        let pages = content.len() / PAGE_BYTES;
        self.send(Command::Write, 1, first, pages, content).expect("sent");
        assert_eq!(self.reply().expect("answered"), (1, 0));
    }

    /// Trims, and waits for the reply.
    pub fn trim(&mut self, first: u64, pages: usize) {
        self.send(Command::Trim, 1, first, pages, &[]).expect("sent");
        assert_eq!(self.reply().expect("answered"), (1, 0));
    }

    /// Flushes, and waits for the reply.
    pub fn flush(&mut self) {
        self.send(Command::Flush, 1, 0, 0, &[]).expect("sent");
        assert_eq!(self.reply().expect("answered"), (1, 0));
    }
}
