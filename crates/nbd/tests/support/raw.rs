//! A client on a bare socket, to send bytes that no well-behaved client sends.
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A connection whose greeting was read.
pub fn greeted(socket: &Path) -> UnixStream {
    try_greeted(socket).unwrap()
}

fn try_greeted(socket: &Path) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting)?;
    assert_eq!(&greeting, b"NBDMAGICIHAVEOPT\0\x03");
    Ok(stream)
}

/// A connection that is ready for requests.
pub fn negotiated(socket: &Path) -> UnixStream {
    try_negotiated(socket).unwrap()
}

/// The same; an error if the server turns it away.
pub fn try_negotiated(socket: &Path) -> io::Result<UnixStream> {
    let mut stream = try_greeted(socket)?;
    // EXPORT_NAME with the empty name, without the zeros behind its answer.
    stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0")?;
    stream.read_exact(&mut [0; 10])?;
    Ok(stream)
}

/// A connection that is ready for requests, `BLOCK_STATUS` too.
pub fn with_block_status(socket: &Path) -> UnixStream {
    let mut stream = greeted(socket);
    stream.write_all(&3_u32.to_be_bytes()).unwrap();
    let query = b"base:allocation";
    let mut context = [0, 1, query.len() as u32].map(u32::to_be_bytes).concat();
    context.extend(query);
    for (option, data) in [(8_u32, Vec::new()), (10, context)] {
        stream.write_all(b"IHAVEOPT").unwrap();
        stream.write_all(&[option, data.len() as u32].map(u32::to_be_bytes).concat()).unwrap();
        stream.write_all(&data).unwrap();
        while option_reply(&mut stream) != ACKNOWLEDGED {}
    }
    // EXPORT_NAME with the empty name, without the zeros behind its answer.
    stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    stream
}

const ACKNOWLEDGED: u32 = 1;

/// Reads the reply to an option; returns its type.
fn option_reply(stream: &mut UnixStream) -> u32 {
    let mut reply = [0; 20];
    stream.read_exact(&mut reply).unwrap();
    let number = |at: usize| u32::from_be_bytes(reply[at..at + 4].try_into().unwrap());
    stream.read_exact(&mut vec![0; number(16) as usize]).unwrap();
    number(12)
}

/// A request's header.
pub fn request(command: u16, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(0_u16.to_be_bytes());
    bytes.extend(command.to_be_bytes());
    bytes.extend(7_u64.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// Writes a page and waits for the answer.
pub fn write_page(stream: &mut UnixStream, page: u64) {
    let mut bytes = request(1, page * 4096, 4096);
    bytes.extend([7; 4096]);
    stream.write_all(&bytes).unwrap();
    let mut reply = [0; 16];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0]);
}

/// Waits until the server closes; returns the bytes that it sent before.
pub fn rest(stream: &mut UnixStream) -> Vec<u8> {
    let mut rest = Vec::new();
    // A reset ends the connection just as well.
    let _ = stream.read_to_end(&mut rest);
    rest
}
