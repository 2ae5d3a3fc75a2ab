//! One attempt to get the rest of a file from one address.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::time::Duration;

use ureq::Agent;
use ureq::http::{HeaderMap, StatusCode};

use crate::progress::Stage;
use crate::{Cache, Checksum, FileEntry, Progress, Unit};

/// Why an attempt ended without the whole file.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection failed or broke; another attempt may go on from here.
    Interrupted { reason: String, received: u64, reached: bool },
    /// This address cannot give the file.
    Refused(String),
    /// The fault is on this side, such as a full disk.
    Local(std::io::Error),
}

/// A client that gives up on a server which is silent for `patience`.
pub(super) fn agent(patience: Duration, use_proxy: bool) -> Agent {
    let mut builder = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(10)
        .timeout_resolve(Some(patience))
        .timeout_connect(Some(patience))
        .timeout_recv_response(Some(patience))
        .timeout_per_read(Some(patience));
    if !use_proxy {
        builder = builder.proxy(None);
    }
    builder.build().new_agent()
}

/// How a file became whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    /// From its first byte in this attempt.
    Fresh,
    /// By going on where an earlier attempt stopped.
    Continued,
}

/// Asks `address` for what the partial file lacks and appends it; `Ok` when the file is whole.
pub(super) fn attempt(
    agent: &Agent,
    address: &str,
    file: &FileEntry,
    cache: &Cache,
    expected: &Checksum,
    progress: Progress<'_>,
) -> Result<Whole, Failure> {
    let partial = cache.partial(&file.name);
    let mut present = std::fs::metadata(&partial).map_or(0, |metadata| metadata.len());
    let version = resumable_version(address, &file.name, cache, expected);
    if version.is_none() {
        present = 0;
    }
    let mut request = agent.get(address).header("Accept-Encoding", "identity");
    if present > 0 {
        request = request.header("Range", format!("bytes={present}-"));
        if let Some(version) = version.filter(|version| !version.is_empty()) {
            request = request.header("If-Range", version);
        }
    }
    let response = request.call().map_err(|error| interrupted(error, 0, false))?;
    let (start, total) = match plan(response.status(), response.headers(), present)? {
        Plan::Nothing => return Ok(Whole::Continued),
        Plan::StartOver(reason) => {
            open_partial(&partial, 0).map_err(Failure::Local)?;
            return Err(Failure::Interrupted { reason, received: 0, reached: true });
        }
        Plan::Receive { start, total } => (start, total),
    };
    if let (Some(size), Some(total)) = (file.size, total)
        && size != total
    {
        let reason = format!("it offers {total} bytes, the manifest says {size}");
        return Err(Failure::Refused(reason));
    }
    let total = total.or(file.size);
    let mut target = open_partial(&partial, start).map_err(Failure::Local)?;
    if start == 0 {
        let origin = format!("{address}\n{}\n", version_of(response.headers()));
        std::fs::write(cache.origin(&file.name), origin).map_err(Failure::Local)?;
    }
    let stage = Stage::begin(progress, &file.name, Unit::Bytes, start, total);
    receive(response.into_body().into_reader(), &mut target, start, total, &stage)?;
    Ok(if start == 0 { Whole::Fresh } else { Whole::Continued })
}

enum Plan {
    /// The partial file is already whole.
    Nothing,
    /// The partial file cannot be right.
    StartOver(String),
    /// Bytes from `start` follow, up to `total` where the server says.
    Receive { start: u64, total: Option<u64> },
}

fn plan(status: StatusCode, headers: &HeaderMap, present: u64) -> Result<Plan, Failure> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let range = header("content-range").and_then(parse_content_range);
    match (status.as_u16(), range) {
        (200, _) => {
            // The whole file, whatever was asked for.
            let total = header("content-length").and_then(|length| length.parse().ok());
            Ok(Plan::Receive { start: 0, total })
        }
        (206, Some((Some(start), total))) if start == present => Ok(Plan::Receive { start, total }),
        (206, _) => Err(Failure::Refused(format!(
            "it sent the range {:?}, asked for from byte {present}",
            header("content-range")
        ))),
        (416, Some((None, Some(total)))) if total == present => Ok(Plan::Nothing),
        (416, _) => Ok(Plan::StartOver(format!("it has nothing from byte {present} on"))),
        (408 | 429 | 500..=599, _) => Err(Failure::Interrupted {
            reason: format!("it answered {status}"),
            received: 0,
            reached: true,
        }),
        _ => Err(Failure::Refused(format!("it answered {status}"))),
    }
}

/// `bytes 5-9/10` and `bytes */10` as first byte and total.
fn parse_content_range(text: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let start = range.split_once('-').and_then(|(start, _)| start.trim().parse().ok());
    Some((start, total.trim().parse().ok()))
}

/// Copies the body to the partial file and checks that it is as long as was promised.
fn receive(
    mut body: impl Read,
    target: &mut File,
    start: u64,
    total: Option<u64>,
    stage: &Stage<'_>,
) -> Result<(), Failure> {
    let mut buffer = vec![0; 1 << 16];
    let mut received = 0;
    loop {
        let count = match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) => return Err(interrupted(error, received, true)),
        };
        target.write_all(&buffer[..count]).map_err(Failure::Local)?;
        received += count as u64;
        stage.advance(count as u64);
        if total.is_some_and(|total| start + received > total) {
            target.set_len(0).map_err(Failure::Local)?;
            return Err(Failure::Refused("it sent more than it promised".to_owned()));
        }
    }
    match total {
        Some(total) if start + received < total => {
            let reason = format!("it stopped at {} of {total} bytes", start + received);
            Err(Failure::Interrupted { reason, received, reached: true })
        }
        _ => target.sync_all().map_err(Failure::Local),
    }
}

/// The partial file, cut to `start` bytes and ready to grow.
fn open_partial(path: &std::path::Path, start: u64) -> std::io::Result<File> {
    use std::io::Seek;
    let mut file = OpenOptions::new().create(true).write(true).truncate(false).open(path)?;
    file.set_len(start)?;
    file.seek(std::io::SeekFrom::End(0))?;
    Ok(file)
}

/// Whether a partial file may be continued from `address`, and the version (possibly empty) it must
/// still have there.
///
/// Where the checksum is known it decides in the end. Otherwise parts of two different versions
/// must not be joined, so only the same address with a version to compare will do.
fn resumable_version(
    address: &str,
    name: &str,
    cache: &Cache,
    expected: &Checksum,
) -> Option<String> {
    let origin = std::fs::read_to_string(cache.origin(name)).ok()?;
    let (from, version) = origin.trim_end().split_once('\n').unwrap_or((origin.trim_end(), ""));
    let same = from == address;
    match expected {
        Checksum::Published(_) | Checksum::Recorded(_) => {
            Some(if same { version.to_owned() } else { String::new() })
        }
        Checksum::Unknown => (same && !version.is_empty()).then(|| version.to_owned()),
    }
}

/// A strong entity tag or the date of the last change, whichever the server gives.
fn version_of(headers: &HeaderMap) -> String {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let tag = header("etag").filter(|tag| !tag.starts_with("W/"));
    tag.or(header("last-modified")).unwrap_or_default().to_owned()
}

fn interrupted(error: impl std::fmt::Display, received: u64, reached: bool) -> Failure {
    Failure::Interrupted { reason: error.to_string(), received, reached }
}
