//! Damaged, lying and senseless files give a clear error: no panic, no absurd allocation, no wrong
//! data passed off as right.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use cm_replay::{Dataset, Matrix, ReadOptions, read};
use rand::{Rng, RngExt};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Notes the largest allocation of the current thread.
struct Watching;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: `place` came from `System.alloc` above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// Enough for a buffer or two, far below what a lying header may ask for.
const LARGEST_ALLOWED: usize = 64 << 20;

fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension != "py"))
        .collect();
    files.sort();
    assert!(files.len() >= 14);
    files
}

/// Reads bytes as if they were a file of this name.
fn read_bytes(name: &str, bytes: &[u8]) -> cm_replay::Result<Dataset> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    LARGEST.set(0);
    let options = ReadOptions { xy_jump: Some(4.0), ..ReadOptions::default() };
    let result = read(&path, &options);
    assert!(LARGEST.get() < LARGEST_ALLOWED, "{name}: allocated {}", LARGEST.get());
    if let Err(error) = &result {
        assert!(error.to_string().contains(name), "{error}");
    }
    result
}

fn error(name: &str, bytes: &[u8]) -> String {
    read_bytes(name, bytes).expect_err("this file must not be accepted").to_string()
}

/// Files of every kind, each with a name that says which.
fn originals() -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = samples()
        .into_iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect();
    files.push(("ours.cmdata".to_owned(), stored()));
    files.push(("logs.csv".to_owned(), b"trajectory,observation,action\n1,2,3\n1,3,4\n".to_vec()));
    files
}

fn stored() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.cmdata");
    let observations = Matrix::from_vec(40, 3, (0..120).map(|x| x as f32).collect()).unwrap();
    let actions = Matrix::from_vec(40, 1, (0..40).map(|x| x as f32).collect()).unwrap();
    let data = Dataset::new(observations, actions.clone(), vec![7, 20, 40]).unwrap();
    data.with_extra("rewards", actions).unwrap().save(&path).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn damage_anywhere_is_survived() {
    let mut random = cm_random::Philox::new(3).stream(0, 0);
    for (name, bytes) in originals() {
        let mut refused = 0;
        for round in 0..250 {
            let mut damaged = bytes.clone();
            match round % 5 {
                0 => damaged.truncate(random.random_range(0..bytes.len())),
                1 => {
                    let at = random.random_range(0..bytes.len());
                    damaged[at] ^= 1 << random.random_range(0..8);
                }
                2 => {
                    let at = random.random_range(0..bytes.len());
                    let end = (at + 8).min(bytes.len());
                    damaged[at..end].fill([0x00, 0x7f, 0xff][round % 3]);
                }
                3 => {
                    // Where most formats keep their headers.
                    for _ in 0..4 {
                        let at = random.random_range(0..bytes.len().min(1500));
                        damaged[at] = random.next_u32() as u8;
                    }
                }
                _ => {
                    let at = random.random_range(0..bytes.len());
                    let length = random.random_range(1..64).min(bytes.len() - at);
                    damaged.drain(at..at + length);
                }
            }
            refused += usize::from(read_bytes(&name, &damaged).is_err());
        }
        assert!(refused > 25 || name.ends_with("csv"), "{name}: only {refused} of 250 noticed");
    }
}

#[test]
fn every_flipped_bit_of_our_own_form_is_noticed_or_harmless() {
    let bytes = stored();
    let data = read_bytes("ours.cmdata", &bytes).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        if let Ok(found) = read_bytes("ours.cmdata", &damaged) {
            // Only the zeros between arrays carry no data.
            assert_eq!(found, data, "byte {at}");
            assert_eq!(bytes[at], 0, "byte {at}");
        }
    }
    for length in 0..bytes.len() {
        error("ours.cmdata", &bytes[..length]);
    }
}

#[test]
fn every_truncation_of_a_sample_is_noticed() {
    for path in samples() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        for length in (0..bytes.len() / 2).step_by(97).chain([0, 1, 8, 64]) {
            error(&name, &bytes[..length]);
        }
    }
}

fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

fn f32s(count: usize) -> Vec<u8> {
    (0..count).flat_map(|x| (x as f32).to_le_bytes()).collect()
}

fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, bytes) in arrays {
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Six rows of two observations and one action in two trajectories, with some arrays replaced.
fn npz_with(replaced: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut arrays = vec![
        ("observations", npy("<f4", "(6, 2)", &f32s(12))),
        ("actions", npy("<f4", "(6, 1)", &f32s(6))),
        ("terminals", npy("|b1", "(6,)", &[0, 0, 1, 0, 0, 1])),
    ];
    for (name, bytes) in replaced {
        arrays.retain(|(known, _)| known != name);
        arrays.push((name, bytes.clone()));
    }
    npz(&arrays)
}

#[test]
fn says_what_is_wrong_with_an_array() {
    assert_eq!(read_bytes("a.npz", &npz_with(&[])).unwrap().ends(), [3, 6]);
    let cases: [(&str, Vec<u8>, &[&str]); 14] = [
        ("observations", npy("<c8", "(6, 2)", &f32s(24)), &["observations", "`<c8`", "f4, f8"]),
        ("observations", npy("|O", "(6,)", &f32s(6)), &["observations", "`|O`"]),
        ("observations", npy("<f4", "()", &f32s(1)), &["observations", "[]"]),
        ("observations", npy("<f4", "(0, 2)", &[]), &["terminals", "[6, 1]", "[0]"]),
        ("observations", npy("<f4", "(6, 0)", &[]), &["observations", "[6, 0]", "at least 2"]),
        ("actions", npy("<f4", "(5, 1)", &f32s(5)), &["actions", "[5, 1]", "6 rows"]),
        ("actions", npy("<f4", "(6, 1)", &f32s(5)), &["actions", "expected 24", "found 20"]),
        ("actions", npy("<f4", "(6, 1)", &f32s(7)), &["actions", "expected 24", "found 28"]),
        ("actions", npy("<f4", "(-6, 1)", &f32s(6)), &["actions", "shape"]),
        ("actions", b"\x93NUMPY\x09\x00\x00\x00".to_vec(), &["actions", "version 9"]),
        ("actions", b"PNG".to_vec(), &["actions", "expected 10", "found 3"]),
        ("terminals", npy("|b1", "(6, 2)", &[0; 12]), &["terminals", "[6, 2]", "[6]"]),
        (
            "ends",
            npy("<i8", "(2,)", &[9, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]),
            &["9", "6"],
        ),
        ("ends", npy("<i8", "(1,)", &[0xff; 8]), &["ends", "-1", "not negative"]),
    ];
    for (name, bytes, expected) in cases {
        let message = error("a.npz", &npz_with(&[(name, bytes)]));
        for part in expected {
            assert!(message.contains(part), "{message:?} lacks {part:?}");
        }
    }
}

#[test]
fn a_header_that_claims_more_than_the_file_can_hold_is_refused_at_once() {
    for shape in ["(1000000000000, 29)", "(4611686018427387904, 4)", "(18446744073709551615,)"] {
        let message = error("a.npz", &npz_with(&[("observations", npy("<f4", shape, &f32s(4)))]));
        assert!(message.contains("observations"), "{message}");
        assert!(message.contains("the file can hold at most"), "{message}");
    }
    // No bytes at all, but rows without end.
    let mut endless = npy("<f4", "(1000000000000000000, 0)", &[]);
    error("a.npz", &npz_with(&[("observations", endless.clone())]));
    let order = endless.windows(5).position(|text| text == b"False").unwrap();
    endless[order..order + 5].copy_from_slice(b"True ");
    error("a.npz", &npz_with(&[("observations", endless)]));
    // A header of four gigabytes.
    let mut long = b"\x93NUMPY\x02\x00".to_vec();
    long.extend([0xff; 4]);
    let message = error("a.npz", &npz_with(&[("observations", long)]));
    assert!(message.contains("claims a header of 4294967295 bytes"), "{message}");
}

/// 128 megabytes of zeros in 128 kilobytes: what the npy header claims is read, and the rest never
/// inflated.
#[test]
fn a_zip_bomb_is_not_inflated() {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    archive.start_file("observations.npy", options).unwrap();
    archive.write_all(&npy("<f4", "(6, 2)", &f32s(12))).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..128 {
        archive.write_all(&zeros).unwrap();
    }
    let bytes = archive.finish().unwrap().into_inner();
    assert!(bytes.len() < 1 << 18);
    let message = error("bomb.npz", &bytes);
    assert!(message.contains("expected 48 bytes, found 134217776"), "{message}");
}

#[test]
fn numbers_that_are_not_finite_are_named_and_can_be_let_in() {
    let mut numbers = f32s(12);
    numbers[28..32].copy_from_slice(&f32::NAN.to_le_bytes());
    let bytes = npz_with(&[("observations", npy("<f4", "(6, 2)", &numbers))]);
    let message = error("a.npz", &bytes);
    assert!(message.contains("`observations` holds NaN at row 3, column 1"), "{message}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    std::fs::write(&path, &bytes).unwrap();
    let options = ReadOptions { allow_not_finite: true, ..ReadOptions::default() };
    let summary = cm_replay::Summary::of(&read(&path, &options).unwrap());
    assert_eq!((summary.arrays[0].not_finite, summary.arrays[1].not_finite), (1, 0));
}

#[test]
fn csv_errors_name_the_line_and_the_column() {
    let cases = [
        ("", "no array `trajectory`"),
        ("trajectory,observation,action\n", "[0, 1]"),
        ("trajectory,x,action\n1,2,3\n", "no array `observation...`"),
        (
            "trajectory,observation,action\n1,2,3\n1,two,3\n",
            "line 3, column `observation`: found `two`",
        ),
        ("trajectory,observation,action\n1,2,3\n1,2\n", "found record with 2 fields"),
        (
            "trajectory,observation,action\na,1,1\nb,1,1\na,1,1\n",
            "line 4, column `trajectory`: found `a`",
        ),
        ("trajectory,observation,action\n1,inf,3\n", "holds inf at row 0"),
    ];
    for (text, expected) in cases {
        let message = error("logs.csv", text.as_bytes());
        assert!(message.contains(expected), "{message:?} lacks {expected:?}");
    }
}

#[test]
fn safetensors_that_lie_are_refused() {
    let tensors = |header: &str, data: &[u8]| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    };
    let huge =
        r#"{"observations":{"dtype":"F32","shape":[1000000000000,29],"data_offsets":[0,4]}}"#;
    error("a.safetensors", &tensors(huge, &[0; 4]));
    let half = r#"{"observations":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]},"actions":{"dtype":"F32","shape":[1,1],"data_offsets":[4,8]}}"#;
    let message = error("a.safetensors", &tensors(half, &[0; 8]));
    assert!(message.contains("`observations`") && message.contains("F16"), "{message}");
    error("a.safetensors", &u64::MAX.to_le_bytes());
}
