//! `cm data` as a user runs it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use cm_replay::{Dataset, Matrix};

fn cm_data(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
    command.arg("data").args(arguments);
    command
}

fn run(command: &mut Command) -> (bool, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
    (status.success(), text.into_owned())
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cm-replay/tests/samples").join(name)
}

#[test]
fn converts_and_summarises() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("ant.cmdata");
    let (input, output) = (sample("d4rl_gzip.hdf5"), output.to_str().unwrap());
    let input = input.to_str().unwrap();
    let (ok, text) = run(&mut cm_data(&["convert", input, output, "--extra", "rewards"]));
    assert!(ok, "{text}");
    let data = Dataset::load(output).unwrap();
    assert_eq!((data.ends(), data.extras()["rewards"].rows()), (&[1, 13, 40][..], 40));
    for file in [input, output] {
        let (ok, text) = run(&mut cm_data(&["stats", file]));
        assert!(ok, "{text}");
        assert!(text.contains("3 trajectories, 40 steps, 37 transitions"), "{text}");
        assert!(text.contains("trajectory length: 1 to 27, median 12"), "{text}");
        assert!(text.contains("observations [40, 29]: 0 NaN or infinite"), "{text}");
    }

    let without = sample("d4rl_without_timeouts.hdf5");
    let without = without.to_str().unwrap();
    let (ok, text) = run(&mut cm_data(&["stats", without]));
    assert!(!ok && text.contains("timeouts") && text.contains(without), "{text}");
    let (ok, text) = run(&mut cm_data(&["stats", without, "--xy-jump", "2"]));
    assert!(ok && text.contains("3 trajectories"), "{text}");
    let (ok, text) = run(&mut cm_data(&["convert", input, "ant.npz"]));
    assert!(!ok && text.contains("must end in .cmdata"), "{text}");
}

#[test]
fn lists_informs_and_verifies() {
    let cache = tempfile::tempdir().unwrap();
    let run_here = |arguments: &[&str]| run(cm_data(arguments).env("CM_DATA_DIR", cache.path()));
    let (ok, text) = run_here(&["list"]);
    assert!(ok && text.contains("antmaze-large-diverse-v2"), "{text}");
    assert!(text.contains("pointmaze-giant-stitch-v0") && !text.contains("downloaded"), "{text}");
    let (ok, text) = run_here(&["info", "antmaze-umaze-v2"]);
    assert!(ok && text.contains("[N, 29]") && text.contains("CC BY 4.0"), "{text}");
    assert!(text.contains(cache.path().to_str().unwrap()), "{text}");
    let (ok, text) = run_here(&["info", "antmaze"]);
    assert!(!ok && text.contains("no data set `antmaze`"), "{text}");

    assert!(text.contains("antmaze-umaze-v2"), "{text}");
    // Which checksums are published is said; a file that is another is not taken for the data set.
    let (_, text) = run_here(&["info", "antmaze-umaze-v2"]);
    assert!(text.contains("size 232532949 bytes") && text.contains("sha256 5ef15257"), "{text}");
    let (_, text) = run_here(&["info", "pointmaze-large-navigate-v0"]);
    assert!(text.contains("sha256 is not published"), "{text}");
    let (ok, text) = run_here(&["verify", "antmaze-umaze-v2"]);
    assert!(!ok && text.contains("`cm data download antmaze-umaze-v2`"), "{text}");
    let name = "Ant_maze_u-maze_noisy_multistart_False_multigoal_False_sparse_fixed.hdf5";
    std::fs::copy(sample("d4rl_gzip.hdf5"), cache.path().join(name)).unwrap();
    let (ok, text) = run_here(&["verify", "antmaze-umaze-v2"]);
    assert!(!ok && text.contains("expected 5ef15257"), "{text}");
}

/// Answers every request with the sample.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let content = std::fs::read(sample("d4rl_gzip.hdf5")).unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len());
            let _ = connection.write_all(head.as_bytes());
            let _ = connection.write_all(&content);
        }
    });
    address
}

#[test]
fn downloads_and_verifies_by_a_manifest_of_ones_own() {
    let cache = tempfile::tempdir().unwrap();
    let run_here = |arguments: &[&str]| {
        run(cm_data(arguments).env("CM_DATA_DIR", cache.path()).env("no_proxy", "127.0.0.1"))
    };
    let manifest = |sha256: &str, actions: usize| {
        let folder = cache.path().join("manifests");
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "name = \"walks\"\ndescription = \"A walk\"\nformat = \"D4RL HDF5\"\nobservations = 29\n\
             actions = {actions}\nlicence = \"ours\"\ncitation = \"none\"\nregenerate = \"no\"\n\
             [[files]]\nname = \"walks.hdf5\"\naddresses = [\"{}/walks.hdf5\"]\nsha256 = \"{sha256}\"\n",
            serve()
        );
        std::fs::write(folder.join("walks.toml"), text).unwrap();
    };
    // Nobody has published the checksum: the first download records it, and it holds.
    manifest("not published: recorded at the first download", 8);
    let (ok, text) = run_here(&["download", "walks"]);
    assert!(ok && text.contains("no sha256 is published"), "{text}");
    let (ok, text) = run_here(&["download", "walks"]);
    assert!(ok && text.contains("is there already"), "{text}");
    let (ok, text) = run_here(&["verify", "walks"]);
    assert!(ok && text.contains("3 trajectories, 40 steps"), "{text}");
    let (_, text) = run_here(&["list"]);
    let line = text.lines().find(|line| line.starts_with("walks ")).unwrap();
    assert!(line.contains("downloaded"), "{text}");
    let record = cache.path().join("walks.hdf5.sha256");
    let sum = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, "0".repeat(64)).unwrap();
    let (ok, text) = run_here(&["verify", "walks"]);
    assert!(!ok && text.contains("expected 0000") && text.contains(sum.trim()), "{text}");
    std::fs::remove_file(&record).unwrap();
    let (ok, text) = run_here(&["verify", "walks"]);
    assert!(!ok && text.contains("no checksum is known"), "{text}");

    // A published checksum decides, whatever was recorded.
    std::fs::remove_file(cache.path().join("walks.hdf5")).unwrap();
    manifest(&"0".repeat(64), 8);
    let (ok, text) = run_here(&["download", "walks"]);
    assert!(!ok && text.contains(sum.trim()) && text.contains("expected 0000"), "{text}");
    assert!(!cache.path().join("walks.hdf5").exists());
    manifest(sum.trim(), 7);
    let (ok, text) = run_here(&["download", "walks"]);
    assert!(ok && text.contains("its sha256 is as published"), "{text}");
    let (ok, text) = run_here(&["verify", "walks"]);
    assert!(!ok && text.contains("have widths (29, 8), expected (29, 7)"), "{text}");
}

/// Killed after ever longer times: at each moment there is nothing, the old file or the new one.
#[test]
fn a_killed_conversion_leaves_nothing_or_everything() {
    let folder = tempfile::tempdir().unwrap();
    let rows = 100_000;
    let numbers = |scale: f32| {
        Matrix::from_vec(rows, 8, (0..rows * 8).map(|x| x as f32 * scale).collect()).unwrap()
    };
    let data = Dataset::new(numbers(0.5), numbers(0.25), vec![7, rows / 2, rows]).unwrap();
    let (input, output) = (folder.path().join("in.cmdata"), folder.path().join("out.cmdata"));
    data.save(&input).unwrap();

    let (input, target) = (input.to_str().unwrap(), output.to_str().unwrap());
    let start = Instant::now();
    assert!(run(&mut cm_data(&["convert", input, target])).0);
    let whole = start.elapsed();
    std::fs::remove_file(&output).unwrap();
    let mut killed_without = 0;
    for round in 0..40 {
        let mut child = cm_data(&["convert", input, target]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole.mul_f64(f64::from(round) / 30.0).max(Duration::from_millis(1)));
        // It may have finished already.
        let _ = child.kill();
        child.wait().unwrap();
        if output.exists() {
            assert_eq!(Dataset::load(&output).unwrap(), data);
            std::fs::remove_file(&output).unwrap();
        } else {
            killed_without += 1;
        }
    }
    assert!(killed_without > 0, "the test never killed in time");

    // Over an older file: the old one stays whole until the new one is.
    let old = Dataset::new(numbers(2.0), numbers(3.0), vec![rows]).unwrap();
    for round in 0..20 {
        old.save(&output).unwrap();
        let mut child = cm_data(&["convert", input, target]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole.mul_f64(f64::from(round) / 16.0));
        let _ = child.kill();
        child.wait().unwrap();
        let found = Dataset::load(&output).unwrap();
        assert!(found == data || found == old);
    }
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_causes_no_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = cm_data(&["list"]).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&stderr);
    assert!(text.is_empty() && status.code() == Some(141), "{status} {text}");
}
