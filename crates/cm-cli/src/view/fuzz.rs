//! Requests made of noise and of pieces of good ones: every one is answered, and none breaks the
//! parser or what answers. `CM_FUZZ_CASES` sets how many.

use std::sync::atomic::AtomicBool;

use cm_envs::walks::Course;
use cm_random::{Philox, Stream, below_u32};
use cm_train::{Device, Method, RunFolder, RunSettings, train};
use rand_core::Rng;

use super::api::Runs;
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

fn cases(usual: u64) -> u64 {
    match std::env::var("CM_FUZZ_CASES") {
        Ok(text) => text.parse().expect("CM_FUZZ_CASES is a number"),
        Err(_) => usual,
    }
}

fn one_of<T: Copy>(random: &mut Stream, choices: &[T]) -> T {
    choices[below_u32(random.next_u32(), choices.len() as u32) as usize]
}

/// Bytes put in, changed and cut off, and pieces put in, anywhere.
fn damage(random: &mut Stream, bytes: &mut Vec<u8>, most: u32) {
    for _ in 0..below_u32(random.next_u32(), most) {
        let at = below_u32(random.next_u32(), bytes.len() as u32 + 1) as usize;
        match below_u32(random.next_u32(), 4) {
            0 => bytes.insert(at, random.next_u32() as u8),
            1 if at < bytes.len() => bytes[at] = random.next_u32() as u8,
            2 => bytes.truncate(at),
            _ => {
                let piece = one_of(random, &PIECES);
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
}

#[test]
fn any_bytes_are_a_request_or_a_refusal() {
    let cases = cases(200_000);
    let philox = Philox::new(17);
    let (mut served, mut refused, mut partial) = (0, 0, 0);
    for case in 0..cases {
        let mut random = philox.stream(case, 0x7f2);
        let mut bytes = Vec::new();
        if case % 3 > 0 {
            bytes.extend_from_slice(b"GET /api/map?run=0 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        }
        damage(&mut random, &mut bytes, 12);
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

/// A run of a few steps on a small ring.
fn small_run(folder: &std::path::Path) -> std::path::PathBuf {
    let file = folder.join("ring.csv");
    std::fs::write(&file, Course::Ring.collect(20, 30, 0).unwrap().to_csv()).unwrap();
    let settings =
        RunSettings { steps: 20, batch: 16, ..RunSettings::own_data(Method::Cmd1, file) };
    let task = settings.task.open().unwrap();
    let run = folder.join("run");
    let never = AtomicBool::new(false);
    train(Device::Cpu, &settings, &task, &RunFolder::new(&run), &never, |_| {}).unwrap();
    run
}

/// What is asked of the routes: whole requests whose pieces are good, damaged or strange.
fn request(random: &mut Stream) -> Request {
    const ROUTES: [&str; 9] = [
        "/api/map",
        "/api/map",
        "/api/distance",
        "/api/path",
        "/api/states",
        "/api/curves",
        "/api/episode",
        "/api/runs",
        "/page.js",
    ];
    const KEYS: [&str; 6] = ["run", "to", "from", "seed", "axes", ""];
    const VALUES: [&str; 14] = [
        "0",
        "1",
        "10,0",
        "-3.5,9.25",
        "0,0",
        "1e30,-1e30",
        "3.4e38,3.4e38",
        "nan,0",
        "inf,-inf",
        "1,2,3",
        "1e-45,0",
        "-0,0",
        "18446744073709551616",
        "../run",
    ];
    let text = |random: &mut Stream, good: &str| {
        let mut bytes = good.as_bytes().to_vec();
        if one_of(random, &[true, false, false]) {
            damage(random, &mut bytes, 3);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let route = one_of(random, &ROUTES);
    let mut query = vec![("run".to_owned(), "0".to_owned())];
    for _ in 0..below_u32(random.next_u32(), 4) {
        let (key, value) = (one_of(random, &KEYS), one_of(random, &VALUES));
        query.push((text(random, key), text(random, value)));
    }
    if one_of(random, &[true, false, false, false]) {
        query.remove(0);
    }
    Request { path: text(random, route), query }
}

#[test]
fn every_route_answers_or_refuses_whatever_is_asked() {
    let scratch = tempfile::tempdir().unwrap();
    let mut runs = Runs::new(vec![small_run(scratch.path())]);
    let cases = cases(5_000);
    let philox = Philox::new(18);
    let (mut answered, mut refused) = (0, 0);
    for case in 0..cases {
        let request = request(&mut philox.stream(case, 0x7f3));
        let answer = runs.answer(&request);
        match answer.status {
            200 => answered += 1,
            400..500 => refused += 1,
            status => panic!("{request:?}: {status}"),
        }
        if answer.status == 200 && request.path == "/api/map" {
            assert_eq!(answer.body.len(), 4 * 20 * 30, "{request:?}");
        }
    }
    println!("{cases} cases: {answered} answered, {refused} refused");
    assert!(answered > cases / 100 && refused > cases / 100);
}
