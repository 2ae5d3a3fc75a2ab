//! `cm data generate` and `cm expert` as a user runs them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use cm_replay::{Dataset, ReadOptions};

/// Ten episodes, the last one cut short, in two parts.
const ROWS: &str = "9500";

fn generate(output: &Path, further: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
    command.args(["data", "generate", "antmaze-umaze", "--transitions", ROWS, "--out"]);
    command.arg(output).args(further);
    command
}

fn run(command: &mut Command) -> (bool, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
    (status.success(), text.into_owned())
}

fn has_mujoco(test: &str) -> bool {
    match cm_envs::mujoco::Mujoco::find() {
        Ok(_) => true,
        Err(reason @ cm_envs::Error::SimulatorMissing { .. })
            if std::env::var_os("CM_REQUIRE_MUJOCO").is_none() =>
        {
            let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn data_is_the_same_for_a_seed_however_it_came_about() {
    if !has_mujoco("data_is_the_same_for_a_seed_however_it_came_about") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let one = folder.path().join("one/data.cmdata");
    let (ok, text) = run(&mut generate(&one, &["--threads", "1", "--d4rl-hdf5"]));
    assert!(ok && text.contains("10 episodes of 491 to 1001 rows"), "{text}");
    check_contents(&one);

    // Killed after its first part, and started again on another number of threads.
    let two = folder.path().join("two.cmdata");
    let parts = folder.path().join("two.parts");
    let mut cut_off = generate(&two, &["--threads", "1"]).spawn().unwrap();
    let finished_parts = || {
        let entries = std::fs::read_dir(&parts).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().extension().is_some_and(|e| e == "cmdata")).count()
    };
    let start = Instant::now();
    while finished_parts() == 0 && start.elapsed() < Duration::from_secs(100) {
        std::thread::sleep(Duration::from_millis(20));
    }
    cut_off.kill().unwrap();
    cut_off.wait().unwrap();
    assert!(finished_parts() > 0 && !two.exists());

    let (ok, text) = run(&mut generate(&two, &["--seed", "5"]));
    assert!(!ok && text.contains("unfinished data of other settings (`seed`)"), "{text}");
    let (ok, text) = run(&mut generate(&two, &["--threads", "2"]));
    assert!(ok, "{text}");
    assert_eq!(bytes(&one), bytes(&two));
    assert!(!parts.exists());

    // What is there is neither made again nor overwritten.
    let (ok, text) = run(&mut generate(&two, &[]));
    assert!(ok && text.contains("is there already"), "{text}");
    for further in [["--seed", "1"], ["--cells", "round"], ["--noise", "0.1"]] {
        let (ok, text) = run(&mut generate(&two, &further));
        let named = format!("generated with other settings (`{}`)", further[0].trim_matches('-'));
        assert!(!ok && text.contains(&named), "{text}");
    }
    assert_eq!(bytes(&one), bytes(&two));
}

/// Both files hold the same, rewards mark one goal of the evaluation, and the description says how
/// it was made.
fn check_contents(output: &Path) {
    let data = Dataset::load(output).unwrap();
    let extras = ["rewards", "infos/goal", "infos/qpos", "infos/qvel"].map(str::to_owned).to_vec();
    let options = ReadOptions { extras, ..ReadOptions::default() };
    let d4rl = cm_replay::read(output.with_extension("hdf5"), &options).unwrap();
    assert_eq!(d4rl, data);

    let (places, rewards) = (data.observations(), &data.extras()["rewards"]);
    let rewarded: Vec<usize> =
        (0..data.steps()).filter(|&row| rewards.row(row)[0] == 1.0).collect();
    assert!(rewarded.len() > 200, "{}", rewarded.len());
    // All within a circle of radius 0.5, somewhere in the region of the goals.
    let next = |row: usize| [places.row(row + 1)[0], places.row(row + 1)[1]];
    for axis in 0..2 {
        let numbers = rewarded.iter().map(|&row| next(row)[axis]);
        let (low, high) =
            numbers.fold((f32::MAX, f32::MIN), |(low, high), x| (low.min(x), high.max(x)));
        assert!(high - low <= 1.0 && low > [-0.5, 7.5][axis] && high < [2.0, 10.0][axis]);
    }
    for end in data.ends() {
        assert_eq!(rewards.row(end - 1)[0], 0.0);
    }
    let described = std::fs::read_to_string(output.with_extension("toml")).unwrap();
    for part in [
        "task = \"antmaze-umaze-v2\"",
        "cells = \"floor\"",
        "noise = 0.2",
        "mujoco = ",
        "success_rate = ",
    ] {
        assert!(described.contains(part), "{described}");
    }
    assert!(output.with_extension("png").exists());
}

#[test]
fn mistakes_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let output: PathBuf = scratch.path().join("data.cmdata");
    let say = |further: &[&str], part: &str| {
        let (ok, text) = run(&mut generate(&output, further));
        assert!(!ok && text.contains(part), "{further:?}: {text}");
    };
    say(&["--cells", "ceiling"], "floor, round");
    say(&["--out"], "--out");
    let (ok, text) =
        run(Command::new(env!("CARGO_BIN_EXE_cm")).args(["data", "generate", "antmaze-tiny"]));
    assert!(
        !ok && text.contains("antmaze-tiny") && text.contains("antmaze-large-play-v2"),
        "{text}"
    );
    let nowhere = scratch.path().to_str().unwrap();
    let (ok, text) =
        run(generate(&output, &[]).env("CM_MUJOCO", format!("{nowhere}/libmujoco.so")));
    assert!(!ok && text.contains("libmujoco.so"), "{text}");
    if has_mujoco("mistakes_are_named") {
        say(&["--expert", "not-there.safetensors"], "not-there.safetensors");
        say(&["--noise=-1"], "noise");
        assert!(!output.exists());
        let (ok, text) = run(&mut generate(&output.with_extension("npz"), &[]));
        assert!(!ok && text.contains("must end in .cmdata"), "{text}");
    }
}

/// A dozen episodes in each maze, where `cm expert evaluate` runs fifty.
#[test]
fn the_shipped_expert_finds_its_way() {
    if !has_mujoco("the_shipped_expert_finds_its_way") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Each bound is two binomial standard errors or more below what fifty episodes show.
    for (task, cells, least) in [
        ("umaze", "round", 90),
        ("medium-play", "round", 90),
        ("large-play", "round", 90),
        ("umaze", "floor", 75),
        ("large-play", "floor", 75),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
        command.args(["expert", "evaluate", task, "--cells", cells, "--episodes", "12", "--out"]);
        let (ok, text) = run(command.arg(folder.path()));
        assert!(ok, "{text}");
        let percent = text.lines().find_map(|line| {
            line.split(" % of 12").next()?.split(": ").nth(1)?.parse::<u32>().ok()
        });
        assert!(percent.is_some_and(|percent| percent >= least), "{task}, {cells}: {text}");
    }
    for name in ["antmaze-umaze-v2.png", "antmaze-umaze-v2.gif", "antmaze-large-play-v2.gif"] {
        assert!(folder.path().join(name).metadata().unwrap().len() > 1000, "{name}");
    }
}

#[test]
fn the_experiment_is_reproduced_in_the_small_on_data_that_is_there() {
    if !has_mujoco("the_experiment_is_reproduced_in_the_small_on_data_that_is_there") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let reproduce = |further: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
        command.args(["reproduce", "antmaze", "--small", "--tasks", "umaze", "--methods", "gcbc"]);
        command.args(["--steps", "2", "--episodes", "1"]).args(further);
        command.arg("--data-folder").arg(scratch.path().join("data"));
        run(command.arg("--out").arg(scratch.path().join("out")))
    };
    let (ok, text) = reproduce(&["--list-data"]);
    let state = |text: &str| text.split_whitespace().nth(1).map(str::to_owned);
    assert!(ok && state(&text).as_deref() == Some("missing"), "{text}");
    let file = scratch.path().join("data/antmaze-umaze-v2-generated.cmdata");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
    command.args(["data", "generate", "antmaze-umaze", "--transitions", "1001", "--out"]);
    let (ok, text) = run(command.arg(&file));
    assert!(ok, "{text}");
    let (ok, text) = reproduce(&["--list-data"]);
    assert!(ok && state(&text).as_deref() == Some("there"), "{text}");
    let (ok, text) = reproduce(&[]);
    assert!(ok && text.contains("GCBC") && !text.contains("getting"), "{text}");
    let page = std::fs::read_to_string(scratch.path().join("out/index.html")).unwrap();
    assert!(page.contains("data generated here") && page.contains("(65.4)"));
}
