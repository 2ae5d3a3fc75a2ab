//! Parts of the cluster that go away: nodes, slots that others need more, the controller.

use std::process::{Command, Stdio};

use crate::cluster::{
    Afterwards, begun, changed, cluster, cm_with, configuration, job, plan, slurm, until, wait,
    xtask,
};
use crate::sweeps::{fail, models, status, succeed};

const FOUR: &str = "[axes]\nmethod = [\"gcbc\", \"crl\"]\nseed = [0, 1]";

#[test]
fn a_node_that_stays_away_leaves_its_tasks_to_the_other() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    plan(folder, 12_000, 0, FOUR);
    succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    let running = begun(folder, 4);
    let there = |run: &serde_json::Value| run["place"].as_str().unwrap().starts_with("node2");
    let lost: Vec<_> = running.iter().filter(|run| there(run)).collect();
    assert!(!lost.is_empty(), "{running:#?}");
    let _node = Afterwards("start-node node2");
    xtask("kill-node node2 --tasks");
    wait(folder, &["done"]);
    for run in lost {
        let name = run["name"].as_str().unwrap();
        let note = folder.join(format!("out/.sweep/runs/{name}.json"));
        let note = std::fs::read_to_string(note).unwrap();
        assert!(note.contains("node1, task"), "{note}");
    }
    succeed(folder, &["sweep", "plan.toml", "--out", "whole"]);
    assert!(models(folder, "whole") == models(folder, "out"), "the same bytes as undisturbed");
}

#[test]
fn tasks_that_are_preempted_go_on_afterwards() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    plan(folder, 12_000, 0, FOUR);
    let array = job(&succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]));
    begun(folder, 4);
    let mut urgent = Command::new("sbatch");
    urgent.args(["--partition=urgent", "--nodes=2", "--exclusive", "--wait", "--output=/dev/null"]);
    let output = urgent.arg("--wrap=sleep 1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tasks = slurm(&format!("scontrol --oneliner show job {array}"));
    let tasks = String::from_utf8(tasks.stdout).unwrap();
    assert_eq!(tasks.matches("Restarts=1 ").count(), 4, "{tasks}");
    wait(folder, &["done"]);
    succeed(folder, &["sweep", "plan.toml", "--out", "whole"]);
    assert!(models(folder, "whole") == models(folder, "out"), "the same bytes as undisturbed");
}

#[test]
fn a_controller_that_ends_while_status_asks_loses_nothing() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    plan(folder, 12_000, 0, FOUR);
    succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    begun(folder, 4);
    // What the controller knows is on its disk after a few seconds. Then it hangs, so that `status`
    // waits for it, and then it is gone.
    std::thread::sleep(std::time::Duration::from_secs(7));
    let file = configuration().with_file_name("slurmctld.pid");
    let controller = std::fs::read_to_string(file).unwrap();
    assert!(slurm(&format!("kill -STOP {}", controller.trim())).status.success());
    let controller = Afterwards("start-controller");
    let mut asking = Command::new(env!("CARGO_BIN_EXE_cm"));
    asking.args(["sweep", "status", "plan.toml"]).current_dir(folder);
    let asking = asking.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    xtask("kill-controller");
    let output = asking.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("4 runs: "), "{text}{said}");
    assert!(said.contains("Slurm does not answer, so this is what the files say"), "{said}");
    for arguments in [["sweep", "plan.toml"].as_slice(), &["sweep", "cancel", "plan.toml"]] {
        let message = fail(folder, arguments);
        assert!(message.contains("squeue") || message.contains("is not known"), "{message}");
    }
    drop(controller);
    until(60, "the controller does not answer", || slurm("squeue").status.success().then_some(()));
    wait(folder, &["done"]);
    succeed(folder, &["sweep", "plan.toml", "--out", "whole"]);
    assert!(models(folder, "whole") == models(folder, "out"), "the same bytes as undisturbed");
}

#[test]
fn without_an_answer_status_says_what_the_files_say() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    plan(folder, 30, 2, "[axes]\nmethod = [\"gcbc\"]\nseed = [0, 1]");
    succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    wait(folder, &["done"]);
    // A controller that is not there, as commands see it.
    let gone = changed(folder, "SlurmctldPort=26817", "SlurmctldPort=9");
    let output = cm_with(&gone, folder, &["sweep", "status", "plan.toml"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && text.contains("2 runs: 2 done"), "{text}{said}");
    assert!(said.contains("Slurm does not answer"), "{said}");
    // Nothing is started while it is not known what Slurm trains.
    plan(folder, 60, 2, "[axes]\nmethod = [\"gcbc\"]\nseed = [0, 1]");
    let output = cm_with(&gone, folder, &["sweep", "plan.toml"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("is not known"), "{said}");
    assert!(status(folder, "plan.toml").iter().all(|run| run["step"] == 30));
}
