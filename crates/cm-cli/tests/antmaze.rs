//! `cm data generate` and `cm expert` as a user runs them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use cm_replay::{Dataset, ReadOptions};

/// Fourteen episodes, the last one cut short, in two parts.
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
fn two_that_make_the_same_file_make_it_once() {
    if !has_mujoco("two_that_make_the_same_file_make_it_once") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data.cmdata");
    std::thread::scope(|scope| {
        let make = || run(&mut generate(&file, &["--threads", "1"]));
        for maker in [scope.spawn(make), scope.spawn(make)] {
            let (ok, text) = maker.join().unwrap();
            assert!(ok, "{text}");
        }
    });
    let names = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["data.cmdata", "data.png", "data.toml"]);
}

#[test]
fn data_is_the_same_for_a_seed_however_it_came_about() {
    if !has_mujoco("data_is_the_same_for_a_seed_however_it_came_about") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let one = folder.path().join("one/data.cmdata");
    let (ok, text) = run(&mut generate(&one, &["--threads", "1", "--d4rl-hdf5"]));
    assert!(ok && text.contains("14 episodes of 387 to 701 rows"), "{text}");
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
    for further in [
        ["--seed", "1"],
        ["--cells", "round"],
        ["--noise", "0.1"],
        ["--recipe", "clean"],
        ["--recipe", "d4rl-code"],
    ] {
        let (ok, text) = run(&mut generate(&two, &further));
        // Another recipe may have another expert, which is named too.
        let named = format!("`{}`", further[0].trim_matches('-'));
        let refused = text.contains("generated with other settings") && text.contains(&named);
        assert!(!ok && refused, "{text}");
    }
    assert_eq!(bytes(&one), bytes(&two));
}

/// Both files hold the same, rewards mark one goal, and the description says how it was made.
fn check_contents(output: &Path) {
    let data = Dataset::load(output).unwrap();
    let extras = ["rewards", "infos/goal", "infos/qpos", "infos/qvel"].map(str::to_owned).to_vec();
    let options = ReadOptions { extras, ..ReadOptions::default() };
    let d4rl = cm_replay::read(output.with_extension("hdf5"), &options).unwrap();
    assert_eq!(d4rl, data);

    let (places, rewards) = (data.observations(), &data.extras()["rewards"]);
    let rewarded: Vec<usize> =
        (0..data.steps()).filter(|&row| rewards.row(row)[0] == 1.0).collect();
    assert!(rewarded.len() > 20, "{}", rewarded.len());
    // All within a circle of radius 0.5, somewhere in the region of the goals.
    let next = |row: usize| [places.row(row + 1)[0], places.row(row + 1)[1]];
    for axis in 0..2 {
        let numbers = rewarded.iter().map(|&row| next(row)[axis]);
        let (low, high) =
            numbers.fold((f32::MAX, f32::MIN), |(low, high), x| (low.min(x), high.max(x)));
        assert!(high - low <= 1.0 && low > [-0.5, 7.5][axis] && high < [3.5, 11.5][axis]);
    }
    for end in data.ends() {
        assert_eq!(rewards.row(end - 1)[0], 0.0);
    }
    let described = std::fs::read_to_string(output.with_extension("toml")).unwrap();
    for part in [
        "task = \"antmaze-umaze-v2\"",
        "recipe = \"d4rl\"",
        "cells = \"floor\"",
        "noise = 0.2",
        "mujoco = ",
        "success_rate = ",
        "rows_on_back = ",
        "speed_upright = ",
        "outside_targets = [",
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
    say(&["--recipe", "dirty"], "d4rl, d4rl-code, clean");
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
fn the_clean_expert_finds_its_way() {
    if !has_mujoco("the_clean_expert_finds_its_way") {
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
        command.args(["expert", "evaluate", task, "--recipe", "clean", "--cells", cells]);
        command.args(["--episodes", "12", "--out"]);
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

/// `cm reproduce antmaze` on umaze with a tiny budget, data and results in `scratch`.
fn reproduce(scratch: &Path, further: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
    command.args(["reproduce", "antmaze", "--tasks", "umaze", "--episodes", "1"]).args(further);
    command.arg("--data-folder").arg(scratch.join("data"));
    run(command.arg("--out").arg(scratch.join("out")))
}

/// One episode of umaze's data at the place where the experiment looks for D4RL's.
fn generate_episode(scratch: &Path, further: &[&str]) -> PathBuf {
    let file = scratch.join("data/antmaze-umaze-v2-generated.cmdata");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
    command.args(["data", "generate", "antmaze-umaze", "--transitions", "701"]);
    let (ok, text) = run(command.args(further).arg("--out").arg(&file));
    assert!(ok, "{text}");
    file
}

#[test]
fn the_experiment_is_reproduced_in_the_small_on_data_that_is_there() {
    if !has_mujoco("the_experiment_is_reproduced_in_the_small_on_data_that_is_there") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let small = ["--small", "--methods", "gcbc", "--steps", "2"];
    let reproduce = |further: &[&str]| reproduce(scratch.path(), &[&small, further].concat());
    let (ok, text) = reproduce(&["--list-data"]);
    let state = |text: &str| text.split_whitespace().nth(1).map(str::to_owned);
    assert!(ok && state(&text).as_deref() == Some("missing"), "{text}");
    generate_episode(scratch.path(), &[]);
    let (ok, text) = reproduce(&["--list-data"]);
    assert!(ok && state(&text).as_deref() == Some("there"), "{text}");
    let (ok, text) = reproduce(&[]);
    assert!(ok && text.contains("GCBC") && !text.contains("getting"), "{text}");
    assert!(text.contains("trained on data that is regenerated, equivalent to D4RL's"), "{text}");
    let page = std::fs::read_to_string(scratch.path().join("out/index.html")).unwrap();
    for part in
        ["regenerated, equivalent", "(65.4)", "href=\"#data\"", "id=\"data\"", "recipe d4rl"]
    {
        assert!(page.contains(part), "{part}");
    }
}

/// Four seeds' worth of a table in the small: stopped and gone on with, best and last, as CSV.
#[test]
fn a_table_goes_on_where_it_was_and_shows_best_and_last_with_errors() {
    if !has_mujoco("a_table_goes_on_where_it_was_and_shows_best_and_last_with_errors") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    generate_episode(scratch.path(), &[]);
    // The preset's own networks, but narrow ones for a test.
    let budget = ["--preset", "half", "--hidden", "16,16", "--batch", "8", "--evaluate-every", "2"];
    let cell = |folder: &str, steps: &str| {
        let base = scratch.path().join(folder);
        let data = scratch.path().join("data");
        let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
        command.args(["reproduce", "antmaze", "--tasks", "umaze", "--episodes", "1"]).args(budget);
        command.args(["--methods", "cmd1,gcbc", "--seeds", "2", "--steps", steps]);
        let (ok, text) = run(command.arg("--data-folder").arg(data).arg("--out").arg(&base));
        assert!(ok, "{text}");
        let read = |name: &str| std::fs::read_to_string(base.join(name)).unwrap();
        (text, read("table.csv"), read("evaluations.csv"), read("runs.csv"))
    };
    cell("pieces", "2");
    let pieces = cell("pieces", "4");
    let whole = cell("whole", "4");
    assert_eq!((&pieces.1, &pieces.2, &pieces.3), (&whole.1, &whole.2, &whole.3));
    let (text, table, evaluations, runs) = whole;
    assert!(text.contains("Best over training") && text.contains("At the end of training"));
    assert!(text.contains(" ± "), "{text}");
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(
        lines[0],
        "task,method,planned,seeds,steps,best,best_error,last,last_error,paper,paper_error"
    );
    let cmd1 = "antmaze-umaze-v2,cmd1,false,2,4,";
    assert!(lines[1].starts_with(cmd1) && lines[1].ends_with(",90.30,4.20"), "{table}");
    // Two methods, two seeds, evaluated after two steps and after four.
    assert_eq!(evaluations.lines().count(), 1 + 2 * 2 * 2, "{evaluations}");
    let header = runs.lines().next().unwrap();
    for key in ["batch", "steps", "task.ant-maze.file", "method.cmd1.adam.learning_rate"] {
        assert!(header.split(',').any(|column| column == key), "{key} in {header}");
    }
    assert_eq!(runs.lines().count(), 1 + 2 * 2);
    // GCBC has no distance to hold against the ways through the maze.
    let distances = std::fs::read_to_string(scratch.path().join("whole/distances.csv")).unwrap();
    let distances: Vec<_> = distances.lines().collect();
    assert_eq!((distances.len(), distances[0]), (3, "task,method,seed,rank_correlation"));
    for (seed, line) in distances[1..].iter().enumerate() {
        let correlation = line.strip_prefix(&format!("antmaze-umaze-v2,cmd1,{seed},")).unwrap();
        assert!(correlation.parse::<f64>().unwrap().abs() <= 1.0, "{line}");
    }
    let picture = scratch.path().join("whole/figures/antmaze-umaze-v2-distances.svg");
    assert!(picture.metadata().unwrap().len() > 1000);
}

#[test]
fn data_of_another_recipe_or_task_is_refused_by_name() {
    if !has_mujoco("data_of_another_recipe_or_task_is_refused_by_name") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let file = generate_episode(scratch.path(), &["--recipe", "clean"]);
    let small = ["--small", "--methods", "gcbc", "--steps", "2"];
    let (ok, text) = reproduce(scratch.path(), &small);
    let name = file.file_name().unwrap().to_str().unwrap();
    let refused = "holds data of recipe `clean`, expected `d4rl`";
    assert!(!ok && text.contains(name) && text.contains(refused), "{text}");
    let mut train = Command::new(env!("CARGO_BIN_EXE_cm"));
    train.args(["train", "--env", "antmaze-large-play-v2", "--name", "a", "--data"]).arg(&file);
    let (ok, text) = run(train.arg("--runs").arg(scratch.path().join("runs")));
    let refused = "it holds data of `antmaze-umaze-v2`, expected `antmaze-large-play-v2`";
    assert!(!ok && text.contains(name) && text.contains(refused), "{text}");
    assert!(!scratch.path().join("runs").exists());
    std::fs::remove_file(file.with_extension("toml")).unwrap();
    let (ok, text) = reproduce(scratch.path(), &small);
    assert!(!ok && text.contains(name) && text.contains("nothing says how it was made"), "{text}");
    assert!(!scratch.path().join("out").exists());
}

#[test]
fn data_of_another_walking_policy_is_used_only_where_it_is_named() {
    if !has_mujoco("data_of_another_walking_policy_is_used_only_where_it_is_named") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let expert = concat!(env!("CARGO_MANIFEST_DIR"), "/../cm-data/expert/ant_expert.safetensors");
    generate_episode(scratch.path(), &["--expert", expert]);
    let small = ["--small", "--methods", "gcbc", "--steps", "2"];
    let (ok, text) = reproduce(scratch.path(), &small);
    assert!(!ok && text.contains("holds data of walking policy `"), "{text}");
    assert!(!scratch.path().join("out").exists());
    let (ok, text) = reproduce(scratch.path(), &[&small[..], &["--expert", expert]].concat());
    assert!(ok && text.contains("ant_expert.safetensors"), "{text}");
    let downloaded = ["--data", "downloaded", "--expert", expert];
    let (ok, text) = reproduce(scratch.path(), &downloaded);
    assert!(!ok && text.contains("--expert: nobody walks"), "{text}");
}
