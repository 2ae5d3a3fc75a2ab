//! A small HTTP server for the tests of the downloader, as unreliable as the test wants.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request: its path and, if it asks for a range, the first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) from: Option<u64>,
    pub(super) if_range: Option<String>,
}

/// What to send: status line and headers, then the body, then the connection is closed.
pub(super) struct Reply {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn new(status: &str, headers: &[(&str, String)], body: &[u8]) -> Self {
        let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        Self { head: head + "\r\n", body: body.to_vec() }
    }

    /// `content` from the byte asked for, as a server that knows ranges sends it; only the first
    /// `sent` bytes of that get through.
    pub(super) fn ranged(request: &Request, content: &[u8], sent: usize) -> Self {
        let tag = ("ETag", "\"v1\"".to_owned());
        let fresh = request.if_range.as_ref().is_none_or(|version| *version == tag.1);
        match request.from {
            Some(from) if fresh && from < content.len() as u64 => {
                let rest = &content[from as usize..];
                let range = format!("bytes {from}-{}/{}", content.len() - 1, content.len());
                let headers =
                    [("Content-Range", range), ("Content-Length", rest.len().to_string()), tag];
                Self::new("206 Partial Content", &headers, &rest[..sent.min(rest.len())])
            }
            Some(_) if fresh => {
                let range = format!("bytes */{}", content.len());
                let headers = [("Content-Range", range), ("Content-Length", "0".to_owned())];
                Self::new("416 Range Not Satisfiable", &headers, &[])
            }
            _ => {
                let headers = [("Content-Length", content.len().to_string()), tag];
                Self::new("200 OK", &headers, &content[..sent.min(content.len())])
            }
        }
    }
}

/// Answers each connection by `answer`, until the process ends.
pub(super) struct Server {
    pub(super) address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub(super) fn start(mut answer: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = requests.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                if let Some(request) = read_request(&mut connection) {
                    log.lock().unwrap().push(request.clone());
                    let reply = answer(&request);
                    // The client may hang up in the middle.
                    let _ = connection.write_all(reply.head.as_bytes());
                    let _ = connection.write_all(&reply.body);
                }
            }
        });
        Self { address, requests }
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn read_request(connection: &mut TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(connection).lines();
    let first = lines.next()?.ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut request = Request { path, from: None, if_range: None };
    for line in lines {
        let line = line.ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        match name.to_lowercase().as_str() {
            "range" => {
                request.from = value.trim().strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok();
            }
            "if-range" => request.if_range = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    Some(request)
}
