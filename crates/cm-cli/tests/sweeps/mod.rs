//! What tests of sweeps share.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

/// A plan of tiny runs, without its axes.
pub(crate) const TINY: &str = "out = \"out\"
task = \"pointmaze\"
steps = 30

[set]
batch = 16
log_every = 5
evaluate_every = 15
checkpoint_every = 10
evaluation.episodes = 8
task.point-maze.world.states = 400
task.point-maze.world.horizon = 20
task.point-maze.data.trajectories = 50

";

pub(crate) fn cm(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cm")).args(arguments).current_dir(folder).output().unwrap()
}

pub(crate) fn succeed(folder: &Path, arguments: &[&str]) -> String {
    let output = cm(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn fail(folder: &Path, arguments: &[&str]) -> String {
    let output = cm(folder, arguments);
    assert!(!output.status.success(), "{arguments:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    stderr
}

/// What `cm sweep status --json` says of every run.
pub(crate) fn status(folder: &Path, plan: &str) -> Vec<serde_json::Value> {
    let text = succeed(folder, &["sweep", "status", plan, "--json"]);
    let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
    whole["runs"].as_array().unwrap().clone()
}

/// The final models and tables of every run, byte for byte.
pub(crate) fn models(folder: &Path, out: &str) -> BTreeMap<String, Vec<Vec<u8>>> {
    let runs = std::fs::read_dir(folder.join(out)).unwrap().flatten();
    let runs = runs.filter(|run| run.path().join("config.toml").exists());
    let files = ["model.safetensors", "best.safetensors", "checkpoint.bin", "metrics.csv"];
    let read = |run: &Path| files.map(|file| std::fs::read(run.join(file)).unwrap()).to_vec();
    runs.map(|run| (run.file_name().into_string().unwrap(), read(&run.path()))).collect()
}
