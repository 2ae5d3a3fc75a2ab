//! The downloader against servers that drop connections, serve ranges or not, redirect, lie about
//! sizes and serve wrong files.

use std::net::TcpListener;
use std::time::Duration;

use std::sync::Mutex;

use super::server::{Reply, Server};
use super::*;
use crate::manifest::RECORD;
use crate::{Event, Unit, sha256_of_bytes as sha256, silent};

fn content() -> Vec<u8> {
    (0..300_000_u32).map(|x| (x.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn entry(addresses: &[&str], sha256: &str) -> FileEntry {
    FileEntry {
        name: "data.npz".to_owned(),
        addresses: addresses.iter().map(|address| format!("{address}/data.npz")).collect(),
        size: None,
        sha256: sha256.to_owned(),
    }
}

fn settings() -> DownloadSettings {
    let (pause, patience) = (Duration::from_millis(1), Duration::from_millis(500));
    DownloadSettings { attempts: 3, pause, patience, use_proxy: false }
}

struct Scratch {
    cache: Cache,
    _folder: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { cache: Cache::new(folder.path().join("data")), _folder: folder }
    }

    fn download(&self, file: &FileEntry) -> Result<Downloaded> {
        download(file, &self.cache, &settings(), &silent)
    }

    fn files(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.cache.folder()) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn data(&self) -> Vec<u8> {
        std::fs::read(self.cache.path("data.npz")).unwrap()
    }
}

/// A port nobody listens on.
fn dead_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn downloads_and_records_the_checksum() {
    let server = Server::start(|request| Reply::ranged(request, &content(), usize::MAX));
    let scratch = Scratch::new();
    let file = entry(&[&server.address], RECORD);
    let downloaded = scratch.download(&file).unwrap();
    assert_eq!(downloaded.checked_by, Some(Checksum::Unknown));
    assert_eq!(scratch.data(), content());
    assert_eq!(scratch.files(), ["data.npz", "data.npz.sha256"]);
    let recorded = Checksum::Recorded(sha256(&content()));
    assert_eq!(scratch.cache.checksum(&file).unwrap(), recorded);
    // A second time there is nothing to do.
    assert_eq!(scratch.download(&file).unwrap().checked_by, None);
    assert_eq!(server.requests().len(), 1);
    // What was recorded holds from then on.
    std::fs::remove_file(downloaded.path).unwrap();
    assert_eq!(scratch.download(&file).unwrap().checked_by, Some(recorded));
}

#[test]
fn of_several_at_once_one_downloads_and_the_others_find_it() {
    let server = Server::start(|request| {
        std::thread::sleep(Duration::from_millis(100));
        Reply::ranged(request, &content(), usize::MAX)
    });
    let scratch = Scratch::new();
    let file = entry(&[&server.address], RECORD);
    std::thread::scope(|scope| {
        let downloads: Vec<_> = (0..4).map(|_| scope.spawn(|| scratch.download(&file))).collect();
        let found = downloads.into_iter().map(|download| download.join().unwrap().unwrap());
        assert_eq!(found.filter(|downloaded| downloaded.checked_by.is_some()).count(), 1);
    });
    assert_eq!(server.requests().len(), 1);
    assert_eq!(scratch.data(), content());
    assert_eq!(scratch.files(), ["data.npz", "data.npz.sha256"]);
}

#[test]
fn says_how_far_it_is() {
    let server = Server::start(|request| Reply::ranged(request, &content(), 200_000));
    let (scratch, told) = (Scratch::new(), Mutex::new(Vec::new()));
    let watch = |event: Event<'_>| {
        let mut told = told.lock().unwrap();
        match event {
            Event::Began { what, unit, done, total } => {
                assert_eq!((unit, total), (Unit::Bytes, Some(300_000)), "{what}");
                told.push((what.to_owned(), done, done));
            }
            Event::Advanced(by) => told.last_mut().unwrap().2 += by,
            Event::Ended => {}
            other => panic!("{other:?}"),
        }
    };
    let file = entry(&[&server.address], &sha256(&content()));
    download(&file, &scratch.cache, &settings(), &watch).unwrap();
    let expected = [("data.npz", 0, 200_000), ("data.npz", 200_000, 300_000)]
        .into_iter()
        .chain([("checking", 0, 300_000)]);
    let expected: Vec<_> = expected.map(|(what, from, to)| (what.to_owned(), from, to)).collect();
    assert_eq!(*told.lock().unwrap(), expected);
}

#[test]
fn goes_on_where_a_dropped_connection_stopped() {
    let server = Server::start(|request| Reply::ranged(request, &content(), 70_000));
    for sha256 in [sha256(&content()), RECORD.to_owned()] {
        let scratch = Scratch::new();
        scratch.download(&entry(&[&server.address], &sha256)).unwrap();
        assert_eq!(scratch.data(), content());
    }
    let asked: Vec<_> = server.requests().iter().map(|request| request.from).collect();
    let once = [None, Some(70_000), Some(140_000), Some(210_000), Some(280_000)];
    assert_eq!(asked, [once, once].concat());
}

#[test]
fn a_killed_download_is_resumed_by_the_next_one() {
    let server = Server::start(|request| Reply::ranged(request, &content(), usize::MAX));
    let scratch = Scratch::new();
    let file = entry(&[&server.address], RECORD);
    std::fs::create_dir_all(scratch.cache.folder()).unwrap();
    std::fs::write(scratch.cache.partial("data.npz"), &content()[..123_456]).unwrap();
    std::fs::write(scratch.cache.origin("data.npz"), format!("{}\n\"v1\"\n", file.addresses[0]))
        .unwrap();
    scratch.download(&file).unwrap();
    assert_eq!(scratch.data(), content());
    assert_eq!(server.requests()[0].from, Some(123_456));
    assert_eq!(server.requests()[0].if_range.as_deref(), Some("\"v1\""));

    // Killed after the last byte, before the rename.
    std::fs::rename(scratch.cache.path("data.npz"), scratch.cache.partial("data.npz")).unwrap();
    std::fs::write(scratch.cache.origin("data.npz"), format!("{}\n\"v1\"\n", file.addresses[0]))
        .unwrap();
    scratch.download(&file).unwrap();
    assert_eq!(scratch.data(), content());
    assert_eq!(server.requests()[1].from, Some(300_000));
}

#[test]
fn starts_over_when_the_file_changed_or_ranges_are_not_served() {
    let scratch = Scratch::new();
    let server = Server::start(|request| Reply::ranged(request, &content(), usize::MAX));
    let file = entry(&[&server.address], RECORD);
    let leave_partial = |version: &str, address: &str| {
        std::fs::create_dir_all(scratch.cache.folder()).unwrap();
        std::fs::write(scratch.cache.partial("data.npz"), [7; 1000]).unwrap();
        std::fs::write(scratch.cache.origin("data.npz"), format!("{address}\n{version}\n"))
            .unwrap();
    };
    // Another version; another address; no version at all: nothing to compare, so nothing to trust.
    for (version, address) in [
        ("\"v0\"", file.addresses[0].as_str()),
        ("\"v1\"", "http://elsewhere/"),
        ("", &file.addresses[0]),
    ] {
        leave_partial(version, address);
        scratch.download(&file).unwrap();
        assert_eq!(scratch.data(), content());
        std::fs::remove_file(scratch.cache.path("data.npz")).unwrap();
        std::fs::remove_file(scratch.cache.path("data.npz.sha256")).unwrap();
    }

    let plain = Server::start(|_| {
        Reply::new("200 OK", &[("Content-Length", "300000".to_owned())], &content())
    });
    let file = entry(&[&plain.address], &sha256(&content()));
    leave_partial("", &file.addresses[0]);
    scratch.download(&file).unwrap();
    assert_eq!(scratch.data(), content());
    assert_eq!(plain.requests()[0].from, Some(1000));
}

#[test]
fn follows_redirects() {
    let server = Server::start(|request| Reply::ranged(request, &content(), 200_000));
    let target = server.address.clone();
    let front = Server::start(move |request| {
        Reply::new("302 Found", &[("Location", format!("{target}/moved{}", request.path))], &[])
    });
    let scratch = Scratch::new();
    scratch.download(&entry(&[&front.address], &sha256(&content()))).unwrap();
    assert_eq!(scratch.data(), content());
    let requests = server.requests();
    assert_eq!(requests[0].path, "/moved/data.npz");
    assert_eq!(requests[1].from, Some(200_000));
}

#[test]
fn retries_a_server_that_is_busy() {
    let mut refusals = 2;
    let server = Server::start(move |request| {
        if refusals > 0 {
            refusals -= 1;
            return Reply::new("503 Service Unavailable", &[], b"busy");
        }
        Reply::ranged(request, &content(), usize::MAX)
    });
    let scratch = Scratch::new();
    scratch.download(&entry(&[&server.address], RECORD)).unwrap();
    assert_eq!(scratch.data(), content());
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn tries_the_mirrors_in_turn() {
    let missing = Server::start(|_| Reply::new("404 Not Found", &[], b"no"));
    let wrong = Server::start(|request| Reply::ranged(request, &[1; 300_000], usize::MAX));
    let right = Server::start(|request| Reply::ranged(request, &content(), usize::MAX));
    let dead = dead_address();
    let scratch = Scratch::new();
    let addresses = [dead.as_str(), &missing.address, &wrong.address, &right.address];
    scratch.download(&entry(&addresses, &sha256(&content()))).unwrap();
    assert_eq!(scratch.data(), content());
    assert_eq!(scratch.files(), ["data.npz"]);
    // Nothing of the wrong file was kept.
    assert_eq!(right.requests()[0].from, None);
}

#[test]
fn a_partial_file_is_continued_from_a_mirror_if_the_checksum_can_tell() {
    let mut answered = false;
    let breaks = Server::start(move |request| {
        if std::mem::replace(&mut answered, true) {
            return Reply::new("404 Not Found", &[], b"gone");
        }
        Reply::ranged(request, &content(), 100_000)
    });
    let mirror = Server::start(|request| Reply::ranged(request, &content(), usize::MAX));
    let scratch = Scratch::new();
    scratch.download(&entry(&[&breaks.address, &mirror.address], &sha256(&content()))).unwrap();
    assert_eq!(scratch.data(), content());
    assert_eq!(mirror.requests()[0].from, Some(100_000));
}

#[test]
fn a_partial_file_that_is_wrong_is_given_up_for_a_fresh_start() {
    let server = Server::start(|request| Reply::ranged(request, &content(), usize::MAX));
    let file = entry(&[&server.address], &sha256(&content()));
    // Wrong bytes; more bytes than the file has.
    for partial in [vec![7; 1000], vec![7; 400_000]] {
        let scratch = Scratch::new();
        std::fs::create_dir_all(scratch.cache.folder()).unwrap();
        std::fs::write(scratch.cache.partial("data.npz"), partial).unwrap();
        std::fs::write(
            scratch.cache.origin("data.npz"),
            format!("{}\n\"v1\"\n", file.addresses[0]),
        )
        .unwrap();
        scratch.download(&file).unwrap();
        assert_eq!(scratch.data(), content());
    }
}

#[test]
fn a_wrong_checksum_leaves_nothing() {
    let server = Server::start(|request| Reply::ranged(request, &content(), usize::MAX));
    let scratch = Scratch::new();
    let wrong = "0".repeat(64);
    let message = scratch.download(&entry(&[&server.address], &wrong)).unwrap_err().to_string();
    assert!(message.contains(&wrong) && message.contains(&sha256(&content())), "{message}");
    assert!(!scratch.files().iter().any(|name| name == "data.npz" || name == "data.npz.part"));
}

#[test]
fn sizes_that_do_not_agree_are_refused() {
    // More than promised: the surplus is never taken for data.
    let liar = Server::start(|_| {
        Reply::new("200 OK", &[("Content-Length", "1000".to_owned())], &content())
    });
    let scratch = Scratch::new();
    scratch.download(&entry(&[&liar.address], &sha256(&content()))).unwrap_err();
    assert!(!scratch.cache.path("data.npz").exists());

    // Less than promised, again and again.
    let miser =
        Server::start(|_| Reply::new("200 OK", &[("Content-Length", "300000".to_owned())], &[]));
    let message = scratch.download(&entry(&[&miser.address], RECORD)).unwrap_err().to_string();
    assert!(message.contains("3 attempts"), "{message}");

    // Another size than the manifest's.
    let server = Server::start(|request| Reply::ranged(request, &content(), usize::MAX));
    let file = FileEntry { size: Some(299_999), ..entry(&[&server.address], RECORD) };
    let message = scratch.download(&file).unwrap_err().to_string();
    assert!(message.contains("offers 300000 bytes, the manifest says 299999"), "{message}");

    // A range that was not asked for.
    let confused = Server::start(|_| {
        let range = "bytes 5-299999/300000".to_owned();
        Reply::new("206 Partial Content", &[("Content-Range", range)], &content()[5..])
    });
    let message = scratch.download(&entry(&[&confused.address], RECORD)).unwrap_err().to_string();
    assert!(message.contains("bytes 5-299999/300000"), "{message}");
    assert!(!scratch.cache.path("data.npz").exists());
}

#[test]
fn says_plainly_that_the_network_is_down() {
    let scratch = Scratch::new();
    let (first, second) = (dead_address(), dead_address());
    let message = scratch.download(&entry(&[&first, &second], RECORD)).unwrap_err().to_string();
    assert!(message.contains("the network seems to be down"), "{message}");
    assert!(message.contains(&first) && message.contains(&second), "{message}");
    assert!(message.contains("data.npz"), "{message}");

    // A server that answers, even if only to refuse, is not a dead network.
    let missing = Server::start(|_| Reply::new("404 Not Found", &[], b"no"));
    let message = scratch.download(&entry(&[&missing.address], RECORD)).unwrap_err().to_string();
    assert!(message.contains("404") && !message.contains("network"), "{message}");
}

#[test]
fn a_silent_server_is_not_waited_for_forever() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let scratch = Scratch::new();
    let file = entry(&[&address], RECORD);
    let settings = DownloadSettings { patience: Duration::from_millis(50), ..settings() };
    let message = download(&file, &scratch.cache, &settings, &silent).unwrap_err().to_string();
    assert!(message.contains("timeout"), "{message}");
    drop(listener);
}
