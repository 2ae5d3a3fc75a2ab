//! `cm reproduce ogbench` as a user runs it: data, runs, table, page; and what it refuses.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

fn cm(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
    // MuJoCo is found where this test finds it, which stands in the checkout.
    command.env("CM_DATA_DIR", cm_envs::cache_folder());
    finish(command.current_dir(folder).args(arguments))
}

fn finish(command: &mut Command) -> (bool, String) {
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

const MEDIUM: &str = "pointmaze-medium-navigate-v0";

#[test]
fn from_data_to_a_page_and_again_without_work() {
    if !has_mujoco("from_data_to_a_page_and_again_without_work") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let file = format!("data/{MEDIUM}-generated.cmdata");
    let made = ["data", "generate", MEDIUM, "--episodes", "10", "--out", &file];
    let (ok, text) = cm(folder.path(), &made);
    assert!(ok && text.contains("10 episodes, 10010 rows"), "{text}");
    assert!(text.contains("1 episodes, 1001 rows") && text.contains("-generated-val.cmdata"));

    let reproduce = |methods: &str, more: &[&str]| {
        let arguments = [
            "reproduce",
            "ogbench",
            "--tasks",
            MEDIUM,
            "--methods",
            methods,
            "--seeds",
            "2",
            "--steps",
            "4",
            "--evaluate-every",
            "2",
            "--episodes",
            "1",
            "--hidden",
            "16",
            "--batch",
            "8",
            "--data-folder",
            "data",
        ];
        cm(folder.path(), &[&arguments[..], more].concat())
    };
    let (ok, text) = reproduce("gcbc,qrl", &[]);
    assert!(ok && text.contains("GCBC") && text.contains("(82 ± 5)"), "{text}");
    let page = std::fs::read_to_string(at("runs/ogbench/index.html")).unwrap();
    assert!(page.contains("OGBench") && page.contains("each of the five tasks"));
    let evaluations = std::fs::read_to_string(at("runs/ogbench/evaluations.csv")).unwrap();
    let lines: Vec<_> = evaluations.lines().collect();
    assert!(lines[0].ends_with("task_1,task_2,task_3,task_4,task_5"), "{}", lines[0]);
    // Steps 2 and 4 of two methods and two seeds.
    assert_eq!(lines.len(), 1 + 2 * 4, "{evaluations}");
    assert!(lines[1].starts_with(&format!("{MEDIUM},gcbc,false,0,2,")), "{}", lines[1]);
    assert_eq!(lines[1].split(',').count(), 12);
    let table = std::fs::read_to_string(at("runs/ogbench/table.csv")).unwrap();
    assert!(table.contains(&format!("{MEDIUM},qrl,false,2,4,")), "{table}");

    // What is done is not done again.
    let checkpoint = at(&format!("runs/ogbench/{MEDIUM}-qrl-1/checkpoint.bin"));
    let before = std::fs::metadata(&checkpoint).unwrap().modified().unwrap();
    assert!(reproduce("gcbc,qrl", &[]).0);
    assert_eq!(std::fs::metadata(&checkpoint).unwrap().modified().unwrap(), before);

    // Road maps of the models that there are, for their own policies and for one of goals nearby.
    let small = ["--plan-set", "rows=300", "--plan-set", "nodes=30", "--nearby", "0.9"];
    let (ok, text) = reproduce("gcbc,qrl", &[&["--plan"], &small[..]].concat());
    assert!(ok && text.contains("QRL, planned for GCBC"), "{text}");
    assert_eq!(std::fs::metadata(&checkpoint).unwrap().modified().unwrap(), before);
    let evaluations = std::fs::read_to_string(at("runs/ogbench/evaluations.csv")).unwrap();
    for walk in ["true", "nearby"] {
        let of_qrl = format!("{MEDIUM},qrl,{walk},");
        let lines: Vec<_> = evaluations.lines().filter(|line| line.starts_with(&of_qrl)).collect();
        assert_eq!(lines.len(), 2, "{evaluations}");
        assert!(lines.iter().all(|line| line.contains(",4,") && line.split(',').count() == 12));
    }
    let walked = at(&format!("runs/ogbench/{MEDIUM}-qrl-1/nearby.csv"));
    let before = std::fs::metadata(&walked).unwrap().modified().unwrap();
    let (ok, text) = reproduce("gcbc,qrl", &[&["--plan"], &small[..]].concat());
    assert!(ok && !text.contains("by GCBC on its map"), "{text}");
    assert_eq!(std::fs::metadata(&walked).unwrap().modified().unwrap(), before);
    // A discount of its own needs a folder of its own.
    let (ok, text) = reproduce("gcbc,qrl", &["--plan", "--nearby", "0.8"]);
    assert!(!ok && text.contains("-nearby-0") && text.contains("other settings"), "{text}");

    // The file of another maze.
    let large = ["train", "--env", "pointmaze-large-navigate-v0", "--name", "x", "--data", &file];
    let (ok, text) = cm(folder.path(), &large);
    assert!(!ok && text.contains(&file), "{text}");
    assert!(text.contains("not data of pointmaze-large-navigate-v0"), "{text}");
    assert!(text.contains("in walls of the maze large"), "{text}");
}

#[test]
fn what_there_is_not_is_refused_with_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], wanted: &[&str]| {
        let (ok, text) = cm(folder.path(), arguments);
        assert!(!ok && wanted.iter().all(|part| text.contains(part)), "{text}");
    };
    let (tasks, methods) = ("pointmaze-huge-navigate", "qrl,ppo");
    refused(&["reproduce", "ogbench", "--tasks", tasks], &[tasks, "antmaze-giant-stitch-v0"]);
    refused(&["reproduce", "ogbench", "--methods", methods], &["ppo", "gcbc"]);
    let train = ["train", "--name", "x", "--env"];
    refused(&[&train[..], &[tasks]].concat(), &[tasks, MEDIUM]);
    refused(&[&train[..], &[MEDIUM]].concat(), &["needs --data FILE"]);
    refused(&["data", "generate", tasks], &[tasks, MEDIUM, "antmaze-umaze-v2"]);
    refused(&["data", "generate", MEDIUM, "--recipe", "clean"], &["--recipe", "--episodes"]);
    refused(&["data", "generate", "antmaze-umaze", "--npz"], &["--npz", "OGBench"]);
    // Whatever data its user has.
    let mut list = Command::new(env!("CARGO_BIN_EXE_cm"));
    list.args(["reproduce", "ogbench", "--list-data"]).env("CM_DATA_DIR", folder.path());
    let (ok, text) = finish(&mut list);
    assert!(ok && text.lines().filter(|line| line.contains("missing")).count() == 19, "{text}");
    let (ok, text) = cm(folder.path(), &["sweep", "plans", "ogbench"]);
    assert!(ok && text.contains(MEDIUM), "{text}");
}
