//! The cluster, and what tests do to it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::sweeps::{TINY, status};

/// One test at a time: the cluster is small, and some end parts of it.
static CLUSTER: Mutex<()> = Mutex::new(());

/// The cluster for this test alone; none, said on stderr, where there is no cluster.
pub(crate) fn cluster() -> Option<MutexGuard<'static, ()>> {
    let guard = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    let started = Instant::now();
    loop {
        let reason = match nodes() {
            Ok(found) if std::env::var_os("SLURM_CONF").is_some() => match found.as_str() {
                "2 idle" => return Some(guard),
                // Of the test before this one.
                _ if started.elapsed() < Duration::from_secs(60) => {
                    std::thread::sleep(Duration::from_millis(200));
                    continue;
                }
                found => format!("expected two idle nodes, found `{found}`"),
            },
            Ok(_) => "SLURM_CONF is not set".to_owned(),
            Err(reason) => reason,
        };
        skip(&format!("no Slurm of `cargo xtask slurm up`: {}", reason.trim()));
        return None;
    }
}

/// Says that a test is skipped, unless that would not be noticed.
pub(crate) fn skip(reason: &str) {
    assert!(std::env::var_os("CM_REQUIRE_SLURM").is_none(), "{reason}");
    eprintln!("SKIPPED: {reason}");
}

/// How many nodes are in which state.
fn nodes() -> Result<String, String> {
    match Command::new("sinfo").args(["--noheader", "--format=%D %T"]).output() {
        Err(error) => Err(format!("sinfo: {error}")),
        Ok(output) if !output.status.success() => {
            Err(String::from_utf8_lossy(&output.stderr).into())
        }
        Ok(output) => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
    }
}

/// The cluster's configuration.
pub(crate) fn configuration() -> PathBuf {
    std::env::var_os("SLURM_CONF").unwrap().into()
}

/// Another configuration, in which one piece of text stands for another: the cluster as somebody
/// sees it for whom this holds.
pub(crate) fn changed(folder: &Path, from: &str, to: &str) -> PathBuf {
    let text = std::fs::read_to_string(configuration()).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    let file = folder.join("changed.conf");
    std::fs::write(&file, text.replace(from, to)).unwrap();
    file
}

/// `cargo xtask slurm`, which works on `target/slurm` of the workspace.
pub(crate) fn xtask(line: &str) {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut command = Command::new(env!("CARGO"));
    let output = command.args(["xtask", "slurm"]).args(line.split(' ')).current_dir(workspace);
    let output = output.output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Puts the cluster in order when a test ends, however it does.
pub(crate) struct Afterwards(pub(crate) &'static str);

impl Drop for Afterwards {
    fn drop(&mut self) {
        xtask(self.0);
    }
}

pub(crate) fn slurm(line: &str) -> Output {
    let mut words = line.split(' ');
    Command::new(words.next().unwrap()).args(words).output().unwrap()
}

/// `cm` as somebody calls it who has this configuration of Slurm.
pub(crate) fn cm_with(configuration: &Path, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
    command.args(arguments).current_dir(folder).env("SLURM_CONF", configuration);
    command.output().unwrap()
}

/// Waits for something, at most so many seconds.
pub(crate) fn until<T>(seconds: u64, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(seconds), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until every run is in one of these states.
pub(crate) fn wait(folder: &Path, states: &[&str]) -> Vec<serde_json::Value> {
    let mut last = Vec::new();
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(300) {
        last = status(folder, "plan.toml");
        if last.iter().all(|run| states.contains(&run["state"].as_str().unwrap())) {
            return last;
        }
        std::thread::sleep(Duration::from_millis(300));
    }
    panic!("expected {states:?}: {last:#?}");
}

/// Waits until so many runs are under way and have done a step; their status.
pub(crate) fn begun(folder: &Path, count: usize) -> Vec<serde_json::Value> {
    let begun = |run: &serde_json::Value| run["state"] == "running" && run["step"] != 0;
    until(120, "too few have begun", || {
        let running: Vec<_> = status(folder, "plan.toml").into_iter().filter(begun).collect();
        (running.len() >= count).then_some(running)
    })
}

/// The number of the array, from what `cm sweep` prints.
pub(crate) fn job(printed: &str) -> String {
    let number = printed.strip_prefix("job ").and_then(|rest| rest.split(':').next());
    number.unwrap_or_else(|| panic!("{printed}")).to_owned()
}

/// What a task of the first submission wrote.
pub(crate) fn log(folder: &Path, task: usize) -> String {
    let file = folder.join(format!("out/.sweep/submission-1/logs/{task}.log"));
    std::fs::read_to_string(file).unwrap_or_default()
}

pub(crate) fn plan(folder: &Path, steps: u64, retries: u32, rest: &str) {
    let text = TINY.replace("steps = 30", &format!("retries = {retries}\nsteps = {steps}"));
    let text = text.replace("checkpoint_every = 10", "checkpoint_every = 100");
    std::fs::write(folder.join("plan.toml"), format!("{text}{rest}\n")).unwrap();
}

/// A small disk of its own, which needs root.
pub(crate) struct Disk(PathBuf);

impl Disk {
    pub(crate) fn new(path: &Path) -> Option<Self> {
        std::fs::create_dir_all(path).unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(path);
        let mounted = command.output().is_ok_and(|output| output.status.success());
        mounted.then(|| Self(path.to_owned()))
    }

    pub(crate) fn grow(&self) {
        let mut command = Command::new("mount");
        command.args(["-o", "remount,size=64m"]).arg(&self.0);
        assert!(command.status().unwrap().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}
