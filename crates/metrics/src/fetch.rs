//! The client side: fetches the metrics of an endpoint once.
use crate::connection::{unless_closed, within};
use httparse::{EMPTY_HEADER, Response, Status};
use tantalum_base::{Error, ErrorKind, Result};
use tantalum_runtime::{ByteStream, Runtime};

/// Time limit of the whole exchange.
const LIMIT_NS: u64 = 10_000_000_000;
/// Length limit of an answer.
const ANSWER_BYTES_MAX: usize = 16 << 20;
const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// The text that the endpoint at the other end of `stream` returns.
///
/// # Errors
/// `Closed` if there is no complete answer within 10 seconds; `Io`, from the network; `Format` if the server's answer
/// is not metrics.
pub async fn fetch<R: Runtime, S: ByteStream>(runtime: &R, stream: S) -> Result<String> {
    let answer = within(runtime, LIMIT_NS, exchange(&stream)).await;
    stream.shutdown();
    answer
}

async fn exchange<S: ByteStream>(stream: &S) -> Result<String> {
    let mut left = REQUEST;
    while !left.is_empty() {
        left = &left[unless_closed(stream.send(left).await?)?..];
    }
    let mut answer = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let received = stream.recv(&mut piece).await?;
        answer.extend_from_slice(&piece[..received]);
        if let Some(body) = body(&answer, received == 0)? {
            return Ok(body);
        }
        unless_closed(received)?;
        if answer.len() > ANSWER_BYTES_MAX {
            return Err(no_metrics("more than 16 MiB".into()));
        }
    }
}

fn no_metrics(what: String) -> Error {
    Error::new(ErrorKind::Format, format!("the answer is not metrics: {what}"))
}

/// The body of an answer, when it is complete.
fn body(answer: &[u8], is_ended: bool) -> Result<Option<String>> {
    let mut headers = [EMPTY_HEADER; 64];
    let mut response = Response::new(&mut headers);
    let parsed = response.parse(answer).map_err(|error| no_metrics(error.to_string()))?;
    let Status::Complete(head_bytes) = parsed else { return Ok(None) };
    if response.code != Some(200) {
        let reason = response.reason.unwrap_or("");
        return Err(no_metrics(format!("status {} {reason}", response.code.unwrap_or(0))));
    }
    let length = response.headers.iter().find(|it| it.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|it| std::str::from_utf8(it.value).ok()?.trim().parse().ok());
    let body = &answer[head_bytes..];
    let whole = match length {
        Some(length) => body.get(..length),
        // The body ends with the connection.
        None => is_ended.then_some(body),
    };
    let text = whole.map(|body| String::from_utf8(body.to_vec()));
    text.transpose().map_err(|_| no_metrics("not UTF-8".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_ends_with_its_length_or_with_the_connection() {
        let counted = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\na 1";
        assert_eq!(body(counted, false).unwrap().as_deref(), Some("a 1"));
        assert_eq!(body(&counted[..counted.len() - 1], true).unwrap(), None);
        let open = b"HTTP/1.0 200 OK\r\n\r\na 1";
        assert_eq!(body(open, false).unwrap(), None);
        assert_eq!(body(open, true).unwrap().as_deref(), Some("a 1"));
    }

    #[test]
    fn what_is_no_endpoint_is_told_apart() {
        let missing = body(b"HTTP/1.1 404 Not Found\r\n\r\n", false).unwrap_err();
        assert!(missing.to_string().contains("status 404 Not Found"), "{missing}");
        let nbd = body(b"NBDMAGICIHAVEOPT\0\x03", false).unwrap_err();
        assert_eq!(nbd.kind(), ErrorKind::Format);
    }
}
