//! `cm sweep` on this machine: what a plan stands for, what is refused, and that a sweep that was
//! stopped ends as one that was not.

mod sites;
#[path = "../sweeps/mod.rs"]
mod sweeps;

use std::process::Command;
use std::time::{Duration, Instant};

use sweeps::{TINY, fail, models, status, succeed};

#[test]
fn a_plan_is_shown_trained_and_reported() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let axes = "method = [\"gcbc\", \"cmd1\"]\nseed = [0, 1]\n\"method.cmd1.twin\" = [true, false]";
    std::fs::write(folder.join("plan.toml"), format!("{TINY}[axes]\n{axes}\n")).unwrap();

    let shown = succeed(folder, &["sweep", "plan.toml", "--dry-run"]);
    for name in ["gcbc-0", "gcbc-1", "cmd1-twin=true-0", "cmd1-twin=false-1"] {
        assert!(shown.contains(name), "{shown}");
    }
    assert!(shown.contains("6 runs of 3 kinds") && shown.contains("to do"), "{shown}");
    assert!(shown.contains("kB") && !shown.contains("no estimate"), "{shown}");
    assert!(!folder.join("out").exists(), "nothing is written");
    assert!(succeed(folder, &["sweep", "status", "plan.toml"]).contains("6 not begun"));

    let printed = succeed(folder, &["sweep", "plan.toml"]);
    assert!(printed.contains("6 runs: 6 done") && printed.contains("2 of 2"), "{printed}");
    let page = std::fs::read_to_string(folder.join("out/index.html")).unwrap();
    assert!(page.contains("data:image/png") && page.contains("cmd1-twin=false-1"));
    let table = std::fs::read_to_string(folder.join("out/results.csv")).unwrap();
    assert_eq!(table.lines().count(), 4, "{table}");
    assert!(table.contains("method,method.cmd1.twin,done"), "{table}");

    // Again trains nothing; one more seed trains that alone.
    let before = models(folder, "out");
    assert!(succeed(folder, &["sweep", "plan.toml"]).contains("nothing is missing of 6"));
    let more = axes.replace("[0, 1]", "{ from = 0, count = 3 }");
    std::fs::write(folder.join("plan.toml"), format!("{TINY}[axes]\n{more}\n")).unwrap();
    assert!(succeed(folder, &["sweep", "plan.toml"]).contains("9 runs: 9 done"));
    let after = models(folder, "out");
    assert!(before.iter().all(|(name, bytes)| after[name] == *bytes) && after.len() == 9);
}

#[test]
fn refusals_name_the_file_and_the_key() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let refused = |text: &str, parts: &[&str]| {
        std::fs::write(folder.join("bad.toml"), text).unwrap();
        let message = fail(folder, &["sweep", "bad.toml", "--dry-run"]);
        let all = parts.iter().chain(&["bad.toml"]).all(|part| message.contains(part));
        assert!(all, "{text}\n{message}");
    };
    let axes = |axes: &str| format!("{TINY}[axes]\n{axes}\n");
    refused("out = \"x\"\ntsk = \"pointmaze\"", &["tsk"]);
    refused("task = \"pointmaze\"", &["out"]);
    refused("out = \"x\"", &["`task`, `data` or `config`"]);
    refused("out = \"x\"\ntask = \"chess\"", &["task: expected", "pointmaze", "chess"]);
    refused("out = \"x\"\ntask = \"pointmaze\"\ndevice = \"tpu\"", &["device", "tpu"]);
    refused(&axes("seed = []"), &["axes.seed", "at least one"]);
    refused(&axes("seed = [1, 1]"), &["axes.seed", "1 twice"]);
    refused(&axes("seed = [-1]"), &["seed", "-1"]);
    refused(&axes("method = [\"cmd9\"]"), &["method", "cmd9"]);
    refused(&axes("goals.gama = [0.5]"), &["gama"]);
    refused(&axes("steps = [3, 4]"), &["axes.steps", "both"]);
    refused(
        &axes("method = [\"gcbc\"]\n\"method.cmd1.twin\" = [true]"),
        &["axes.method.cmd1.twin"],
    );
    refused(&axes("goals.gamma = [0, 0.0]"), &["gamma=0`", "gamma=0.0`", "same settings"]);
    let excluded = |table: &str| axes(&format!("seed = [0, 1]\n[[exclude]]\n{table}"));
    refused(&excluded("seed = [0, 1]"), &["exclude", "found none"]);
    refused(&excluded("seed = 5"), &["exclude (seed)"]);
    refused(&excluded("sed = 0"), &["exclude.sed"]);
    refused(&format!("{TINY}[slurm]\npartion = \"x\""), &["partion"]);

    // Settings that make two runs one, whatever they are called.
    refused(
        &axes("task.point-maze.data.seed = [3]\n")
            .replace("[axes]", "[[runs]]\nbatch = 8\n[[runs]]\nbatch = 8\n[axes]"),
        &["same settings"],
    );
}

#[test]
fn a_folder_has_one_sweep_at_a_time_and_goes_on_where_it_was_cancelled() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let text = TINY
        .replace("steps = 30", "steps = 900")
        .replace("checkpoint_every = 10", "checkpoint_every = 200");
    std::fs::write(folder.join("plan.toml"), format!("{text}[axes]\nseed = [0, 1, 2]\n")).unwrap();
    let whole = ["sweep", "plan.toml", "--out", "whole"];
    succeed(folder, &whole);

    let cut = ["sweep", "plan.toml", "--workers", "2"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
    let mut child = command.args(cut).current_dir(folder).spawn().unwrap();
    let started = Instant::now();
    while status(folder, "plan.toml").iter().all(|run| run["step"].as_u64().unwrap() < 5) {
        assert!(started.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(20));
    }
    let message = fail(folder, &cut);
    assert!(message.contains("another sweep") && message.contains("process"), "{message}");
    let running = status(folder, "plan.toml");
    assert!(running.iter().any(|run| run["state"] == "running"), "{running:?}");
    assert!(succeed(folder, &["sweep", "report", "plan.toml"]).contains("running"));
    succeed(folder, &["sweep", "cancel", "plan.toml"]);
    assert!(!child.wait().unwrap().success(), "it says that it was stopped");
    let stopped = status(folder, "plan.toml");
    assert!(stopped.iter().any(|run| run["state"] == "stopped"), "{stopped:?}");
    assert!(stopped.iter().all(|run| run["state"] != "running"), "{stopped:?}");

    succeed(folder, &cut);
    assert!(models(folder, "whole") == models(folder, "out"), "the same bytes as without a stop");
}

#[test]
fn a_run_that_fails_is_named_with_its_first_error() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let text = format!("{TINY}[axes]\nmethod = [\"gcbc\"]\nseed = [0, 1]\n");
    std::fs::write(folder.join("plan.toml"), text).unwrap();
    // A file lies where the run's table should be.
    std::fs::create_dir_all(folder.join("out/gcbc-1/metrics.csv")).unwrap();
    let message = fail(folder, &["sweep", "plan.toml"]);
    assert!(message.contains("1 of 2 runs failed") && message.contains("metrics.csv"), "{message}");
    let shown = succeed(folder, &["sweep", "status", "plan.toml"]);
    assert!(shown.contains("1 done, 1 failed") && shown.contains("metrics.csv"), "{shown}");
    std::fs::remove_dir(folder.join("out/gcbc-1/metrics.csv")).unwrap();
    assert!(succeed(folder, &["sweep", "plan.toml"]).contains("2 runs: 2 done"));

    // A folder with another run in it.
    let other = std::fs::read_to_string(folder.join("plan.toml"))
        .unwrap()
        .replace("batch = 16", "batch = 8");
    std::fs::write(folder.join("plan.toml"), other).unwrap();
    assert!(fail(folder, &["sweep", "plan.toml"]).contains("other settings (`batch`)"));
}
