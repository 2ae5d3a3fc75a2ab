//! `cargo xtask dataset` as a user runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use cm_replay::{Dataset, Matrix};

fn xtask(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("dataset").args(arguments);
    command
}

fn run(command: &mut Command) -> (bool, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
    (status.success(), text.into_owned())
}

fn sample(name: &str) -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    workspace.join("crates/cm-replay/tests/samples").join(name)
}

#[test]
fn converts_and_summarises() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("ant.cmdata");
    let (input, output) = (sample("d4rl_gzip.hdf5"), output.to_str().unwrap());
    let input = input.to_str().unwrap();
    let (ok, text) = run(&mut xtask(&["convert", input, output, "--extra", "rewards"]));
    assert!(ok, "{text}");
    let data = Dataset::load(output).unwrap();
    assert_eq!((data.ends(), data.extras()["rewards"].rows()), (&[1, 13, 40][..], 40));
    for file in [input, output] {
        let (ok, text) = run(&mut xtask(&["stats", file]));
        assert!(ok, "{text}");
        assert!(text.contains("3 trajectories, 40 steps, 37 transitions"), "{text}");
        assert!(text.contains("trajectory length: 1 to 27, median 12"), "{text}");
        assert!(text.contains("observations [40, 29]: 0 NaN or infinite"), "{text}");
    }

    let without = sample("d4rl_without_timeouts.hdf5");
    let without = without.to_str().unwrap();
    let (ok, text) = run(&mut xtask(&["stats", without]));
    assert!(!ok && text.contains("timeouts") && text.contains(without), "{text}");
    let (ok, text) = run(&mut xtask(&["stats", without, "--xy-jump", "2"]));
    assert!(ok && text.contains("3 trajectories"), "{text}");
    let (ok, text) = run(&mut xtask(&["convert", input, "ant.npz"]));
    assert!(!ok && text.contains("must end in .cmdata"), "{text}");
}

#[test]
fn lists_informs_and_verifies() {
    let cache = tempfile::tempdir().unwrap();
    let run_here = |arguments: &[&str]| run(xtask(arguments).env("CM_DATA_DIR", cache.path()));
    let (ok, text) = run_here(&["list"]);
    assert!(ok && text.contains("antmaze-large-diverse-v2"), "{text}");
    assert!(text.contains("pointmaze-giant-stitch-v0") && !text.contains("downloaded"), "{text}");
    let (ok, text) = run_here(&["info", "antmaze-umaze-v2"]);
    assert!(ok && text.contains("[N, 29]") && text.contains("CC BY 4.0"), "{text}");
    assert!(text.contains(cache.path().to_str().unwrap()), "{text}");
    let (ok, text) = run_here(&["info", "antmaze"]);
    assert!(!ok && text.contains("no data set `antmaze`"), "{text}");

    let (ok, text) = run_here(&["verify", "antmaze-umaze-v2"]);
    assert!(!ok && text.contains("dataset download antmaze-umaze-v2"), "{text}");
    // As a finished download leaves it.
    let name = "Ant_maze_u-maze_noisy_multistart_False_multigoal_False_sparse_fixed.hdf5";
    let path = cache.path().join(name);
    std::fs::copy(sample("d4rl_gzip.hdf5"), &path).unwrap();
    let (ok, text) = run_here(&["verify", "antmaze-umaze-v2"]);
    assert!(!ok && text.contains("no checksum is known"), "{text}");
    let record = cache.path().join(format!("{name}.sha256"));
    std::fs::write(&record, format!("{}\n", "0".repeat(64))).unwrap();
    let (ok, text) = run_here(&["verify", "antmaze-umaze-v2"]);
    let (_, found) = text.split_once("sha256 is ").unwrap();
    assert!(!ok && text.contains("expected 0000"), "{text}");
    std::fs::write(&record, &found[..64]).unwrap();
    let (ok, text) = run_here(&["verify", "antmaze-umaze-v2"]);
    assert!(ok && text.contains("3 trajectories, 40 steps"), "{text}");
    let (_, text) = run_here(&["list"]);
    assert!(text.contains("downloaded"), "{text}");
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
    assert!(run(&mut xtask(&["convert", input, target])).0);
    let whole = start.elapsed();
    std::fs::remove_file(&output).unwrap();
    let mut killed_without = 0;
    for round in 0..40 {
        let mut child =
            xtask(&["convert", input, target]).stdout(std::process::Stdio::null()).spawn().unwrap();
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
        let mut child =
            xtask(&["convert", input, target]).stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole.mul_f64(f64::from(round) / 16.0));
        let _ = child.kill();
        child.wait().unwrap();
        let found = Dataset::load(&output).unwrap();
        assert!(found == data || found == old);
    }
}
