//! The README's way from trajectories of one's own to a distance and a picture, by the program
//! itself.

use std::path::Path;
use std::process::{Command, Output};

fn cm(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cm")).args(arguments).current_dir(folder).output().unwrap()
}

fn succeed(folder: &Path, arguments: &[&str]) -> String {
    let output = cm(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn fail(folder: &Path, arguments: &[&str]) -> String {
    let output = cm(folder, arguments);
    assert!(!output.status.success(), "{arguments:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    stderr
}

/// Walks round a circle in one direction, in pieces of a third of it.
fn circle() -> String {
    let mut text = "trajectory,observation_x,observation_y,action_x,action_y\n".to_owned();
    for trajectory in 0..60 {
        for step in 0..20 {
            let angle = trajectory as f32 * 0.7 + step as f32 * 0.105;
            let (y, x) = angle.sin_cos();
            text += &format!("{trajectory},{},{},{},{}\n", 100.0 + 10.0 * x, 10.0 * y, -y, x);
        }
    }
    text
}

#[test]
fn from_a_csv_file_to_a_distance_and_a_picture() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    std::fs::write(folder.join("walks.csv"), circle()).unwrap();

    let summary = succeed(folder, &["inspect", "walks.csv"]);
    assert!(summary.contains("60"), "{summary}");
    // The network is made small, for the test's sake.
    let small = [
        "train",
        "--data",
        "walks.csv",
        "--name",
        "walks",
        "--steps",
        "250",
        "--batch",
        "64",
        "--set",
        "method.cmd1.twin=false",
        "--set",
        "method.cmd1.quasimetric.network.hidden=[48,48]",
        "--set",
        "method.cmd1.quasimetric.features=64",
        "--set",
        "method.cmd1.distance_divisor=1.0",
    ];
    assert!(succeed(folder, &small).contains("step 250, done"));
    assert!(succeed(folder, &small).contains("step 250, done"), "running it again changes nothing");

    // A quarter turn with the direction of the walks is nearer than against it.
    let found = succeed(
        folder,
        &["distance", "runs/walks", "--from", "110,0", "--to", "100,10", "--both-ways", "--json"],
    );
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let (there, back) =
        (found[0]["distance"].as_f64().unwrap(), found[0]["back"].as_f64().unwrap());
    assert!(there > 0.0 && back > 1.2 * there, "{there} {back}");

    let plan = succeed(
        folder,
        &[
            "plan",
            "runs/walks",
            "--from",
            "110,0",
            "--to",
            "100,10",
            "--figure",
            "plan.png",
            "--json",
        ],
    );
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["arrived"], true, "{plan}");
    assert!(std::fs::read(folder.join("plan.png")).unwrap().starts_with(b"\x89PNG"));

    let plan = ["plan", "runs/walks", "--from", "110,0", "--to", "100,10", "--radius", "4"];
    let linked = succeed(folder, &[&plan[..], &["--link", "3"]].concat());
    assert!(linked.contains("arrived"), "{linked}");
    let stuck = fail(folder, &[&plan[..], &["--link", "1e-9"]].concat());
    assert!(stuck.contains("does not arrive"), "{stuck}");

    // As people type them: a minus, a place in the data.
    let words = ["distance", "runs/walks", "--from", "110,-0", "--to", "3:7"];
    assert!(succeed(folder, &words).contains("steps"));
    let same = succeed(folder, &["distance", "runs/walks", "--from", "3:7", "--to", "3:7"]);
    assert!(same.contains(": 0.0000 nats, about 0 steps"), "{same}");
    let actions = ["--action", "-1,0", "--goal-action", "0,1"];
    succeed(folder, &[&words[..], &actions[..]].concat());

    let checked = succeed(folder, &["check", "runs/walks", "--json"]);
    let checked: serde_json::Value = serde_json::from_str(&checked).unwrap();
    assert_eq!(checked["triangles"]["violated"], 0, "{checked}");
    assert_eq!(checked["trajectories"]["held_out"], 6);
    assert!(checked["rank_correlation"].as_f64().unwrap() > 0.5, "{checked}");
    assert!(folder.join("runs/walks/figures/check.png").exists());

    succeed(folder, &["distance", "runs/walks", "--to", "100,10", "--map", "figures/map.svg"]);
    assert!(std::fs::read_to_string(folder.join("figures/map.svg")).unwrap().contains("<svg"));
    succeed(folder, &["plot", "runs/walks", "--metric", "contrastive_loss", "--out", "loss.png"]);
    for what in
        ["runs/walks", "runs/walks/checkpoint.bin", "runs/walks/model.safetensors", "walks.csv"]
    {
        let value: serde_json::Value =
            serde_json::from_str(&succeed(folder, &["inspect", what, "--json"])).unwrap();
        assert!(value.is_object(), "{what}");
    }

    // What goes wrong is said in one line that names it.
    let wrong = [
        (
            vec!["distance", "runs/walks", "--from", "1,2,3", "--to", "100,10"],
            "--from: expected 2 numbers, found 3",
        ),
        (
            vec!["distance", "runs/walks", "--from", "99:0", "--to", "100,10"],
            "--from: expected a trajectory below 60, found 99",
        ),
        (
            vec!["distance", "runs/walks", "--from", "1:20", "--to", "100,10"],
            "expected a step below 20",
        ),
        (vec!["view", "runs/none"], "runs/none"),
        (vec!["distance", "runs/none", "--from", "1,2", "--to", "1,2"], "runs/none"),
        (vec!["eval", "runs/walks"], "no environment"),
        (
            vec!["plan", "runs/walks", "--from", "110,0", "--to", "100,10", "--radius", "0"],
            "radius",
        ),
        (vec!["plot", "runs/walks", "--metric", "nothing", "--out", "loss.png"], "nothing"),
        (vec!["train", "--data", "none.csv", "--name", "x"], "none.csv"),
        (vec!["train", "--data", "walks.csv", "--name", "../x"], "--name"),
        (
            vec![
                "train",
                "--data",
                "walks.csv",
                "--name",
                "walks",
                "--steps",
                "250",
                "--batch",
                "32",
            ],
            "other settings",
        ),
        (vec!["inspect", "nothing.csv"], "nothing.csv"),
        (vec!["inspect", "short.safetensors"], "short.safetensors"),
        (vec!["plot", "runs/none"], "runs/none"),
    ];
    let model = std::fs::read(folder.join("runs/walks/model.safetensors")).unwrap();
    std::fs::write(folder.join("short.safetensors"), &model[..20]).unwrap();
    for (arguments, part) in wrong {
        let message = fail(folder, &arguments);
        assert!(message.contains(part), "{arguments:?}: {message}");
        for cause in ["os error", "invalid header"] {
            let twice = message.lines().any(|line| line.matches(cause).count() > 1);
            assert!(!twice, "{arguments:?}: {message}");
        }
    }
}

#[test]
fn help_has_examples_and_completions_are_scripts() {
    let folder = tempfile::tempdir().unwrap();
    for command in
        ["train", "eval", "distance", "plan", "check", "view", "plot", "inspect", "completions"]
    {
        let help = succeed(folder.path(), &[command, "--help"]);
        assert!(help.contains("Example"), "{command}");
    }
    assert!(succeed(folder.path(), &["reproduce", "pointmaze", "--help"]).contains("Example"));
    assert!(succeed(folder.path(), &["completions", "bash"]).contains("_cm()"));
}

#[test]
fn the_experiment_is_reproduced_in_the_small() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    // Two methods, next to no training: the page, the figures and the table are what is looked at.
    let arguments = [
        "reproduce",
        "pointmaze",
        "--steps",
        "4",
        "--episodes",
        "3",
        "--methods",
        "gcbc",
        "--out",
        "out",
    ];
    let printed = succeed(folder, &arguments);
    assert!(printed.contains("GCBC") && printed.contains("index.html"), "{printed}");
    let page = std::fs::read_to_string(folder.join("out/index.html")).unwrap();
    assert!(
        page.contains("data:image/png;base64,") && !page.contains("http"),
        "nothing is loaded from anywhere"
    );
    for file in [
        "figures/data.png",
        "figures/success.png",
        "figures/success.svg",
        "results.csv",
        "gcbc-0/config.toml",
    ] {
        assert!(folder.join("out").join(file).exists(), "{file}");
    }
    assert!(succeed(folder, &[&arguments[..], &["--report-only"]].concat()).contains("index.html"));

    // Its policy on the road map of another method.
    let hidden = "method.cmd1.quasimetric.network.hidden=[8]";
    let train =
        ["train", "--env", "pointmaze", "--name", "metric", "--steps", "4", "--set", hidden];
    succeed(folder, &[&train[..], &["--episodes", "3"]].concat());
    let small = ["--plan-set", "rows=500", "--plan-set", "nodes=50", "--json"];
    let eval = ["eval", "runs/metric", "--last", "--episodes", "3", "--policy", "out/gcbc-0"];
    let found = succeed(folder, &[&eval[..], &["--plan"], &small[..]].concat());
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let own = succeed(folder, &["eval", "out/gcbc-0", "--last", "--episodes", "3", "--json"]);
    let own: serde_json::Value = serde_json::from_str(&own).unwrap();
    assert_eq!(found["mean_steps"], own["mean_steps"]);
    assert!(found["planned"].is_object(), "{found}");
    assert!(fail(folder, &eval).contains("--plan"));
    let none = ["eval", "runs/metric", "--plan", "--policy", "runs/none"];
    assert!(fail(folder, &none).contains("runs/none: expected the folder of a run"));
}

/// Data that can teach little is learned from without a panic, or refused by name.
#[test]
fn poor_data_is_told_of() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let head = "trajectory,observation_x,observation_y,action_x\n";
    let rows = |count: usize, length: usize, row: &dyn Fn(usize, usize) -> String| {
        let rows = (0..count).flat_map(|walk| (0..length).map(move |step| (walk, step)));
        head.to_owned() + &rows.map(|(walk, step)| row(walk, step)).collect::<String>()
    };
    let quick = ["--steps", "3", "--batch", "8"];
    let train = |name: &str| -> Vec<String> {
        let words = ["train", "--data", &format!("{name}.csv"), "--name", name];
        words.iter().chain(&quick).map(|&word| word.to_owned()).collect()
    };
    let good: [(&str, String); 3] = [
        ("few", rows(2, 9, &|walk, step| format!("{walk},{step},{walk},1\n"))),
        ("constant", rows(6, 9, &|walk, step| format!("{walk},{step},5,0\n"))),
        ("still", rows(6, 9, &|walk, _| format!("{walk},1,1,0\n"))),
    ];
    for (name, text) in good {
        std::fs::write(folder.join(format!("{name}.csv")), text).unwrap();
        let words = train(name);
        succeed(folder, &words.iter().map(String::as_str).collect::<Vec<_>>());
        let run = format!("runs/{name}");
        let zero = succeed(folder, &["distance", &run, "--from", "1,1", "--to", "1,1"]);
        assert!(zero.contains(": 0.0000"), "{name}: {zero}");
    }
    let unchecked = fail(folder, &["check", "runs/few"]);
    assert!(unchecked.contains("held_out") && unchecked.contains("2 trajectories"), "{unchecked}");
    succeed(folder, &["check", "runs/constant"]);
    let bad = [
        ("nan", rows(6, 9, &|walk, step| format!("{walk},{step},nan,0\n")), "nan.csv"),
        (
            "one",
            rows(1, 1, &|_, _| "0,1,1,0\n".to_owned()),
            "one.csv: expected a trajectory of two",
        ),
        ("empty", head.to_owned(), "empty.csv"),
        ("nothing", String::new(), "nothing.csv: no array `trajectory`; the file has: none"),
    ];
    for (name, text, part) in bad {
        std::fs::write(folder.join(format!("{name}.csv")), text).unwrap();
        let words = train(name);
        let message = fail(folder, &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(message.contains(part), "{name}: {message}");
        assert_eq!(message.trim_end().lines().count(), 1, "{name}: {message}");
        assert!(!folder.join("runs").join(name).exists(), "{name} left a folder");
    }
}
