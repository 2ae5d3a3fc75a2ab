//! Requests made of noise and of pieces of good ones: every one is answered, and none breaks the
//! parser.

use cm_random::{Philox, below_u32};
use rand_core::Rng;

use super::http::{Request, parse};

const PIECES: [&[u8]; 24] = [
    b"GET ",
    b"POST ",
    b"/",
    b"/api/map",
    b"/api/states?run=",
    b"0",
    b"99999999999999999999",
    b"%",
    b"%2e%2e%2f",
    b"../../etc/passwd",
    b"?to=",
    b"1,2",
    b"nan,inf",
    b"-1e39,",
    b" HTTP/1.1",
    b"\r\n",
    b"\r\n\r\n",
    b"Host: ",
    b"localhost",
    b"127.0.0.1:80",
    b"example.org",
    b"Content-Length: 7",
    b"\0\xff\xfe",
    b"&",
];

#[test]
fn any_bytes_are_a_request_or_a_refusal() {
    let cases = match std::env::var("CM_FUZZ_CASES") {
        Ok(text) => text.parse().expect("CM_FUZZ_CASES is a number"),
        Err(_) => 200_000_u64,
    };
    let philox = Philox::new(17);
    let (mut served, mut refused, mut partial) = (0, 0, 0);
    for case in 0..cases {
        let mut random = philox.stream(case, 0x7f2);
        let mut bytes = Vec::new();
        if case % 3 > 0 {
            bytes.extend_from_slice(b"GET /api/map?run=0 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        }
        for _ in 0..below_u32(random.next_u32(), 12) {
            let at = below_u32(random.next_u32(), bytes.len() as u32 + 1) as usize;
            match below_u32(random.next_u32(), 4) {
                0 => bytes.insert(at, random.next_u32() as u8),
                1 if at < bytes.len() => bytes[at] = random.next_u32() as u8,
                2 => bytes.truncate(at),
                _ => {
                    let piece = PIECES[below_u32(random.next_u32(), 24) as usize];
                    bytes.splice(at..at, piece.iter().copied());
                }
            }
        }
        match parse(&bytes) {
            Ok(Some(Request { path, query })) => {
                assert!(path.len() <= bytes.len() && query.len() <= bytes.len());
                served += 1;
            }
            Ok(None) => partial += 1,
            Err(answer) => {
                assert!((400..500).contains(&answer.status), "{}", answer.status);
                refused += 1;
            }
        }
    }
    println!("{cases} cases: {served} served, {refused} refused, {partial} not whole");
    assert!(served > cases / 100 && refused > cases / 100 && partial > cases / 100);
}
