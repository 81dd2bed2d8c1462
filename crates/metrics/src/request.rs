//! Parses an HTTP request, and makes the head of its response: pure functions of bytes.
use httparse::{EMPTY_HEADER, Error, Request, Status};

use tantalum_runtime::metrics::CONTENT_TYPE;

/// Length limit of a request's head, in bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 8 << 10;
/// Limit of the header lines of a request.
const HEADERS_MAX: usize = 64;

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The metrics; without `with_body`, only the head of the response (HEAD).
    Metrics { with_body: bool },
    /// A refusal, with this status and line of text.
    Refused(u16, &'static str),
}

/// The answer to the bytes received so far; `None` if more bytes must come. The second number is the length of the
/// request's head.
pub(crate) fn parse(bytes: &[u8]) -> Option<(Asked, usize)> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut request = Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(Status::Complete(head_bytes)) => {
            let (method, path) = (request.method.unwrap_or(""), request.path.unwrap_or(""));
            Some((asked(method, path), head_bytes))
        }
        Ok(Status::Partial) if bytes.len() < HEAD_BYTES_MAX => None,
        Ok(Status::Partial) | Err(Error::TooManyHeaders) => {
            Some((Asked::Refused(431, "the request is too long"), 0))
        }
        Err(Error::Version) => {
            Some((Asked::Refused(505, "only HTTP/1.0 and HTTP/1.1 are supported"), 0))
        }
        Err(_) => Some((Asked::Refused(400, "this is not an HTTP request"), 0)),
    }
}

fn asked(method: &str, path: &str) -> Asked {
    let (path, _query) = path.split_once('?').unwrap_or((path, ""));
    match (path, method) {
        ("/metrics", "GET") => Asked::Metrics { with_body: true },
        ("/metrics", "HEAD") => Asked::Metrics { with_body: false },
        ("/metrics", _) => Asked::Refused(405, "only GET and HEAD are supported"),
        _ => Asked::Refused(404, "the only path is /metrics"),
    }
}

/// The head of a response with a body of `body_bytes`.
pub(crate) fn response_head(status: u16, body_bytes: usize) -> String {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        505 => "HTTP Version Not Supported",
        _ => "Error",
    };
    let content_type = if status == 200 { CONTENT_TYPE } else { "text/plain; charset=utf-8" };
    let allow = if status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\n\
         Content-Length: {body_bytes}\r\n{allow}Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> Option<u16> {
        parse(text.as_bytes()).map(|(asked, _)| match asked {
            Asked::Metrics { .. } => 200,
            Asked::Refused(status, _) => status,
        })
    }

    #[test]
    fn get_and_head_of_metrics_are_answered() {
        let get = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
        assert_eq!(parse(get.as_bytes()), Some((Asked::Metrics { with_body: true }, get.len())));
        let head = "HEAD /metrics?a=b HTTP/1.0\r\n\r\nrest";
        let told = Some((Asked::Metrics { with_body: false }, head.len() - 4));
        assert_eq!(parse(head.as_bytes()), told);
        for end in 0..get.len() {
            assert_eq!(parse(&get.as_bytes()[..end]), None);
        }
    }

    #[test]
    fn everything_else_is_refused_with_its_status() {
        for (text, expected) in [
            ("POST /metrics HTTP/1.1\r\n\r\n", 405),
            ("GET / HTTP/1.1\r\n\r\n", 404),
            ("GET /metrics/ HTTP/1.1\r\n\r\n", 404),
            ("GET http://x/metrics HTTP/1.1\r\n\r\n", 404),
            ("GET /metrics HTTP/3.0\r\n\r\n", 505),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
            ("\x16\x03\x01\x02\0\x01", 400),
            ("\0\0\0\x03IHAVEOPT", 400),
            ("GET /metrics HTTP/1.1\r\nno colon\r\n\r\n", 400),
        ] {
            assert_eq!(status(text), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn what_is_too_long_is_refused_and_not_waited_for() {
        let endless = format!("GET /{}", "x".repeat(HEAD_BYTES_MAX));
        assert_eq!(status(&endless[..HEAD_BYTES_MAX - 1]), None);
        assert_eq!(status(&endless[..HEAD_BYTES_MAX]), Some(431));
        let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX + 1));
        assert_eq!(status(&many), Some(431));
    }

    #[test]
    fn the_head_says_how_long_the_body_is_and_that_it_is_the_last() {
        let head = response_head(200, 12);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4;"));
        assert!(head.contains("\r\nContent-Length: 12\r\n") && head.ends_with("close\r\n\r\n"));
        assert!(response_head(405, 0).contains("\r\nAllow: GET, HEAD\r\n"));
    }
}
