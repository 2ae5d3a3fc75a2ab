//! Sweeps on a real Slurm, the one of `cargo xtask slurm up`; skipped, with the reason, where there
//! is none. `CM_REQUIRE_SLURM=1` makes that a failure.

mod cluster;
mod failures;
mod outages;
#[path = "../sweeps/mod.rs"]
mod sweeps;

use cluster::{Disk, begun, cluster, job, log, plan, slurm, until, wait, xtask};
use sweeps::{fail, models, status, succeed};

#[test]
fn what_is_killed_in_the_middle_ends_as_if_it_had_not_been() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let axes = "[axes]\nmethod = [\"gcbc\", \"crl\", \"cmd1\"]\nseed = { from = 0, count = 8 }";
    plan(folder, 400, 2, axes);
    succeed(folder, &["sweep", "plan.toml", "--out", "whole"]);

    let array = job(&succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]));
    let message = fail(folder, &["sweep", "plan.toml", "--on", "local"]);
    assert!(message.contains("with Slurm"), "{message}");
    let again = succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    assert!(again.contains("nothing is missing of 24 runs"), "{again}");

    // Some have begun: their processes are killed, and a node's daemon.
    let running = begun(folder, 2);
    let place = running[0]["place"].as_str().unwrap();
    let task = place.split("task ").nth(1).unwrap();
    assert!(slurm(&format!("scancel --signal=KILL {task}")).status.success());
    xtask("kill-node node2");
    std::thread::sleep(std::time::Duration::from_secs(2));
    xtask("start-node node2");

    // Slurm takes tasks of a node that failed back by itself; a task that was killed by hand is
    // over, and submitted again as what is missing.
    wait(folder, &["done", "stopped", "failed"]);
    let missing = status(folder, "plan.toml").iter().filter(|run| run["state"] != "done").count();
    if missing > 0 {
        let second = succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
        assert!(second.contains(&format!(": {missing} runs in {missing} tasks")), "{second}");
        assert_ne!(job(&second), array);
    }
    wait(folder, &["done"]);
    assert!(models(folder, "whole") == models(folder, "out"), "the same bytes as undisturbed");
    until(60, "no report was written", || folder.join("out/index.html").exists().then_some(()));
}

#[test]
fn a_task_whose_time_is_over_goes_back_to_the_queue_and_on() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    // Slurm looks at limits once in half a minute, so the warning comes early or late.
    let slurm = "[slurm]\ntime = \"1:00\"\nwarning = 55";
    plan(folder, 60_000, 2, &format!("[axes]\nmethod = [\"gcbc\"]\nseed = [0]\n\n{slurm}"));
    succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    until(150, "it does not go back", || log(folder, 0).contains("goes back").then_some(()));
    let runs = status(folder, "plan.toml");
    let before = runs[0]["step"].as_u64().unwrap();
    assert!(before > 0 && runs[0]["state"] != "failed", "{runs:#?}");
    until(150, "it does not go on", || {
        (status(folder, "plan.toml")[0]["step"].as_u64()? > before).then_some(())
    });
    succeed(folder, &["sweep", "cancel", "plan.toml"]);
    let runs = wait(folder, &["stopped"]);
    assert!(runs[0]["step"].as_u64().unwrap() > before, "{runs:#?}");
}

#[test]
fn what_slurm_refuses_is_said_in_its_words_and_leaves_nothing() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    plan(folder, 30, 2, "[axes]\nmethod = [\"gcbc\"]\nseed = [0]");
    let nowhere = ["sweep", "plan.toml", "--on", "slurm", "--partition", "nowhere"];
    let message = fail(folder, &nowhere);
    assert!(message.contains("sbatch failed") && message.contains("partition"), "{message}");
    assert!(!folder.join("out/.sweep/submission-1").exists());
    assert_eq!(status(folder, "plan.toml")[0]["state"], "not begun");
}

#[test]
fn a_full_disk_fails_its_runs_which_go_on_when_there_is_room() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    plan(folder, 200, 0, "[axes]\nmethod = [\"gcbc\"]\nseed = [0]");
    let Some(disk) = Disk::new(&folder.join("out")) else {
        cluster::skip("a small disk cannot be mounted here");
        return;
    };
    succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    let runs = wait(folder, &["failed"]);
    let error = runs[0]["error"].as_str().unwrap();
    assert!(error.contains("No space left"), "{error}");
    disk.grow();
    succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    wait(folder, &["done"]);
    succeed(folder, &["sweep", "plan.toml", "--out", "whole"]);
    assert!(models(folder, "whole") == models(folder, "out"));
}
