//! Sweeps on a real Slurm, the one of `cargo xtask slurm up`; skipped, with the reason, where there
//! is none. `CM_REQUIRE_SLURM=1` makes that a failure.

mod sweeps;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sweeps::{TINY, fail, models, status, succeed};

/// One test at a time: the cluster is small, and some end parts of it.
static CLUSTER: Mutex<()> = Mutex::new(());

/// The cluster for this test alone; none, said on stderr, where there is no cluster.
fn cluster() -> Option<MutexGuard<'static, ()>> {
    let guard = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    let reason = match Command::new("sinfo").args(["--noheader", "--format=%D %T"]).output() {
        Err(error) => format!("sinfo: {error}"),
        Ok(output) if !output.status.success() => String::from_utf8_lossy(&output.stderr).into(),
        Ok(output) => match String::from_utf8_lossy(&output.stdout).trim() {
            "2 idle" if std::env::var_os("SLURM_CONF").is_some() => return Some(guard),
            found => format!("expected two idle nodes and SLURM_CONF, found `{found}`"),
        },
    };
    assert!(std::env::var_os("CM_REQUIRE_SLURM").is_none(), "no Slurm: {reason}");
    eprintln!("SKIPPED: no Slurm of `cargo xtask slurm up`: {}", reason.trim());
    None
}

/// `cargo xtask slurm`, which works on `target/slurm` of the workspace.
fn xtask(arguments: &[&str]) {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut command = Command::new(env!("CARGO"));
    let output = command.args(["xtask", "slurm"]).args(arguments).current_dir(workspace).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn slurm(line: &str) -> Output {
    let mut words = line.split(' ');
    Command::new(words.next().unwrap()).args(words).output().unwrap()
}

/// Waits until every run is in one of these states.
fn wait(folder: &Path, states: &[&str]) -> Vec<serde_json::Value> {
    let started = Instant::now();
    loop {
        let runs = status(folder, "plan.toml");
        if runs.iter().all(|run| states.contains(&run["state"].as_str().unwrap())) {
            return runs;
        }
        assert!(started.elapsed() < Duration::from_secs(300), "{runs:#?}");
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// The number of the array, from what `cm sweep` prints.
fn job(printed: &str) -> String {
    let number = printed.strip_prefix("job ").and_then(|rest| rest.split(':').next());
    number.unwrap_or_else(|| panic!("{printed}")).to_owned()
}

fn plan(folder: &Path, steps: u64, rest: &str) {
    let text = TINY.replace("steps = 30", &format!("retries = 2\nsteps = {steps}"));
    let text = text.replace("checkpoint_every = 10", "checkpoint_every = 100");
    std::fs::write(folder.join("plan.toml"), format!("{text}{rest}\n")).unwrap();
}

#[test]
fn what_is_killed_in_the_middle_ends_as_if_it_had_not_been() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let axes = "[axes]\nmethod = [\"gcbc\", \"crl\", \"cmd1\"]\nseed = { from = 0, count = 8 }";
    plan(folder, 400, axes);
    succeed(folder, &["sweep", "plan.toml", "--out", "whole"]);

    let array = job(&succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]));
    let message = fail(folder, &["sweep", "plan.toml", "--on", "local"]);
    assert!(message.contains("with Slurm"), "{message}");
    let again = succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    assert!(again.contains("nothing is missing of 24 runs"), "{again}");

    // Some have begun: their processes are killed, and a node fails.
    let begun = |run: &serde_json::Value| run["state"] == "running" && run["step"] != 0;
    let started = Instant::now();
    let running = loop {
        let running: Vec<_> = status(folder, "plan.toml").into_iter().filter(begun).collect();
        if running.len() >= 2 {
            break running;
        }
        assert!(started.elapsed() < Duration::from_secs(120), "none has begun");
        std::thread::sleep(Duration::from_millis(50));
    };
    let place = running[0]["place"].as_str().unwrap();
    let task = place.split("task ").nth(1).unwrap();
    assert!(slurm(&format!("scancel --signal=KILL {task}")).status.success());
    xtask(&["kill-node", "node2"]);
    std::thread::sleep(Duration::from_secs(2));
    xtask(&["start-node", "node2"]);

    // Slurm takes tasks of a node that failed back by itself; a task that was killed by hand is
    // over, and submitted again as what is missing.
    wait(folder, &["done", "stopped", "failed"]);
    let missing = status(folder, "plan.toml").iter().filter(|run| run["state"] != "done").count();
    if missing > 0 {
        let second = job(&succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]));
        assert_ne!(second, array);
    }
    wait(folder, &["done"]);
    assert!(models(folder, "whole") == models(folder, "out"), "the same bytes as undisturbed");
    let started = Instant::now();
    while !folder.join("out/index.html").exists() {
        assert!(started.elapsed() < Duration::from_secs(60), "no report was written");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_task_whose_time_is_over_goes_back_to_the_queue_and_on() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    // Slurm looks at limits once in half a minute, so the warning comes early or late.
    let slurm = "[slurm]\ntime = \"1:00\"\nwarning = 55";
    plan(folder, 60_000, &format!("[axes]\nmethod = [\"gcbc\"]\nseed = [0]\n\n{slurm}"));
    succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    let log = folder.join("out/.sweep/submission-1/logs/0.log");
    let started = Instant::now();
    let went_back = || std::fs::read_to_string(&log).unwrap_or_default().contains("goes back");
    while !went_back() {
        assert!(started.elapsed() < Duration::from_secs(150), "{:#?}", status(folder, "plan.toml"));
        std::thread::sleep(Duration::from_millis(500));
    }
    let runs = status(folder, "plan.toml");
    assert!(runs[0]["step"].as_u64().unwrap() > 0 && runs[0]["state"] != "failed", "{runs:#?}");
    succeed(folder, &["sweep", "cancel", "plan.toml"]);
    let runs = wait(folder, &["stopped"]);
    assert!(runs[0]["step"].as_u64().unwrap() > 0, "{runs:#?}");
}

#[test]
fn what_slurm_refuses_is_said_in_its_words_and_leaves_nothing() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    plan(folder, 30, "[axes]\nmethod = [\"gcbc\"]\nseed = [0]");
    let nowhere = ["sweep", "plan.toml", "--on", "slurm", "--partition", "nowhere"];
    let message = fail(folder, &nowhere);
    assert!(message.contains("sbatch failed") && message.contains("partition"), "{message}");
    assert!(!folder.join("out/.sweep/submission-1").exists());
    assert_eq!(status(folder, "plan.toml")[0]["state"], "not begun");
}

/// A small disk of its own, which needs root.
struct Disk(PathBuf);

impl Disk {
    fn new(folder: &Path) -> Option<Self> {
        std::fs::create_dir_all(folder).unwrap();
        let options = ["-t", "tmpfs", "-o", "size=256k", "tmpfs"];
        let mounted = Command::new("mount").args(options).arg(folder).output().ok()?;
        mounted.status.success().then(|| Self(folder.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_fails_its_runs_which_go_on_when_there_is_room() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    plan(folder, 200, "[axes]\nmethod = [\"gcbc\"]\nseed = [0]");
    // Slurm lets a task that goes back to the queue wait two minutes.
    let text = std::fs::read_to_string(folder.join("plan.toml")).unwrap();
    std::fs::write(folder.join("plan.toml"), text.replace("retries = 2", "retries = 0")).unwrap();
    let Some(_disk) = Disk::new(&folder.join("out")) else {
        eprintln!("SKIPPED: a small disk cannot be mounted here");
        return;
    };
    succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    let runs = wait(folder, &["failed"]);
    let error = runs[0]["error"].as_str().unwrap();
    assert!(error.contains("No space left"), "{error}");
    let grown =
        Command::new("mount").args(["-o", "remount,size=64m"]).arg(folder.join("out")).status();
    assert!(grown.unwrap().success());
    succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    wait(folder, &["done"]);
    succeed(folder, &["sweep", "plan.toml", "--out", "whole"]);
    assert!(models(folder, "whole") == models(folder, "out"));
}

#[test]
fn without_an_answer_status_says_what_the_files_say() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    plan(folder, 30, "[axes]\nmethod = [\"gcbc\"]\nseed = [0, 1]");
    succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    wait(folder, &["done"]);
    // A controller that is not there, as commands see it.
    let text = std::fs::read_to_string(std::env::var("SLURM_CONF").unwrap()).unwrap();
    let gone = folder.join("gone.conf");
    std::fs::write(&gone, text.replace("SlurmctldPort=26817", "SlurmctldPort=9")).unwrap();
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
        command.args(arguments).current_dir(folder).env("SLURM_CONF", &gone).output().unwrap()
    };
    let output = ask(&["sweep", "status", "plan.toml"]);
    let (text, said) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && text.contains("2 runs: 2 done"), "{text}{said}");
    assert!(said.contains("Slurm does not answer"), "{said}");
    // Nothing is started while it is not known what Slurm trains.
    plan(folder, 60, "[axes]\nmethod = [\"gcbc\"]\nseed = [0, 1]");
    let output = ask(&["sweep", "plan.toml"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("is not known"), "{said}");
}
