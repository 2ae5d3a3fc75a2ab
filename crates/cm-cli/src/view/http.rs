//! Requests and answers: one small GET at a time, and everything else refused.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// The longest head of a request.
pub(super) const LONGEST_HEAD: usize = 16 * 1024;
/// The most headers.
const MOST_HEADERS: usize = 64;
/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request that is well formed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    pub(super) path: String,
    /// Keys and values, percent-decoded.
    pub(super) query: Vec<(String, String)>,
}

/// What is sent back.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn new(kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, kind, body: body.into() }
    }

    pub(super) fn refusal(status: u16, reason: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: format!("{reason}\n").into_bytes() }
    }

    pub(super) fn write(&self, stream: &mut impl Write) -> std::io::Result<()> {
        let reason = match self.status {
            200 => "OK",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            413 => "Content Too Large",
            421 => "Misdirected Request",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            500 => "Internal Server Error",
            _ => "Bad Request",
        };
        // Nothing from elsewhere is run or shown, and nobody frames the page.
        let head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\n\
             Content-Security-Policy: default-src 'self'; frame-ancestors 'none'\r\n\r\n",
            self.status,
            self.kind,
            self.body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(&self.body)?;
        stream.flush()
    }
}

/// Reads a request's head; the answer to give if it is none that is served here.
pub(super) fn read(stream: &mut TcpStream) -> Result<Request, Answer> {
    let started = Instant::now();
    let mut head = Vec::new();
    let mut piece = [0; 2048];
    loop {
        if let Some(request) = parse(&head)? {
            return Ok(request);
        }
        if head.len() >= LONGEST_HEAD {
            return Err(Answer::refusal(431, "the request's head is too long"));
        }
        let left = PATIENCE.saturating_sub(started.elapsed());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(Answer::refusal(408, "the request took too long"));
        }
        match stream.read(&mut piece) {
            Ok(0) => return Err(Answer::refusal(400, "the request ended in its head")),
            Ok(count) => head.extend_from_slice(&piece[..count]),
            Err(_) => return Err(Answer::refusal(408, "the request took too long")),
        }
    }
}

/// The request in `bytes`; none if there is not all of its head yet.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Request>, Answer> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Answer::refusal(431, "too many headers"));
        }
        Err(error) => return Err(Answer::refusal(400, &format!("not a request: {error}"))),
    }
    let hosts: Vec<_> =
        request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host")).collect();
    if hosts.len() != 1 || !is_loopback(hosts[0].value) {
        return Err(Answer::refusal(421, "Host: expected this machine by its loopback address"));
    }
    let has_body = request.headers.iter().any(|header| {
        header.name.eq_ignore_ascii_case("transfer-encoding")
            || header.name.eq_ignore_ascii_case("content-length") && header.value != b"0"
    });
    if has_body {
        return Err(Answer::refusal(413, "expected no body"));
    }
    if request.method != Some("GET") {
        return Err(Answer::refusal(405, "expected GET"));
    }
    let target = request.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let decoded = |text: &str| {
        decode(text).ok_or_else(|| Answer::refusal(400, "the address is not percent-encoded UTF-8"))
    };
    let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((decoded(key)?, decoded(value)?))
    });
    Ok(Some(Request { path: decoded(path)?, query: query.collect::<Result<_, Answer>>()? }))
}

/// `localhost`, `127.0.0.1` or `[::1]`, with a port or without: another name could be one that a
/// stranger's page has pointed here.
fn is_loopback(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port))
            if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            name
        }
        _ => host,
    };
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Percent-decoded text; `+` is a space.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'%' => {
                let [high, low, after @ ..] = after else { return None };
                let digit = |byte: u8| char::from(byte).to_digit(16);
                bytes.push((digit(*high)? * 16 + digit(*low)?) as u8);
                rest = after;
            }
            b'+' => bytes.push(b' '),
            byte => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// A listener on a free port of this machine alone, or on the one given.
pub(super) fn listen(port: u16) -> std::io::Result<std::net::TcpListener> {
    let address = ("127.0.0.1", port).to_socket_addrs()?.next();
    let address = address.ok_or(std::io::ErrorKind::AddrNotAvailable)?;
    std::net::TcpListener::bind(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &str) -> u16 {
        match parse(text.as_bytes()) {
            Ok(Some(_)) => 200,
            Ok(None) => 0,
            Err(answer) => answer.status,
        }
    }

    #[test]
    fn only_small_gets_from_this_machine_are_served() {
        let get = |host: &str| status(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        for host in ["localhost", "127.0.0.1:8000", "[::1]:9", "LOCALHOST:1"] {
            assert_eq!(get(host), 200, "{host}");
        }
        let strangers = [
            "example.org",
            "127.0.0.1.example.org",
            "",
            "localhost:x",
            "127.0.0.1:",
            "10.0.0.1",
            "0.0.0.0",
        ];
        for host in strangers {
            assert_eq!(get(host), 421, "{host}");
        }
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), 421);
        assert_eq!(status("GET / HTTP/1.1\r\nHost: localhost\r\nHost: a.org\r\n\r\n"), 421);
        assert_eq!(status("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"), 405);
        let long = "Content-Length: 5";
        assert_eq!(status(&format!("GET / HTTP/1.1\r\nHost: localhost\r\n{long}\r\n\r\n")), 413);
        assert_eq!(status("GET / HTTP/1.1\r\nHost: localhost\r\n"), 0);
        assert_eq!(status("\0\0\0\0\r\n\r\n"), 400);
        assert_eq!(status("GET /%ff HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400);
        assert_eq!(status("GET /%2 HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400);
        let many = "A: b\r\n".repeat(100);
        assert_eq!(status(&format!("GET / HTTP/1.1\r\n{many}Host: localhost\r\n\r\n")), 431);
    }

    #[test]
    fn addresses_are_decoded() {
        let text = "GET /a%20b?to=1%2C-2&x HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let request = parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!(request.path, "/a b");
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(request.query, [pair("to", "1,-2"), pair("x", "")]);
    }
}
