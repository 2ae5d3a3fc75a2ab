//! Tasks that fail by themselves: how often they are tried again, and what is said of them.

use crate::cluster::{changed, cluster, cm_with, configuration, log, plan, skip, until, wait};
use crate::sweeps::{status, succeed};

#[test]
fn what_fails_is_tried_again_as_often_as_the_plan_says() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    plan(folder, 30, 1, "[axes]\nmethod = [\"gcbc\"]\nseed = [0, 1, 2]");
    // A folder lies where a run's table should be: for ever, and until the second attempt.
    let table = |run: usize| folder.join(format!("out/gcbc-{run}/metrics.csv"));
    for run in [0, 1] {
        std::fs::create_dir_all(table(run)).unwrap();
    }
    succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    until(60, "it is not tried again", || log(folder, 1).contains("goes back").then_some(()));
    std::fs::remove_dir(table(1)).unwrap();
    let runs = wait(folder, &["done", "failed"]);
    let states = runs.iter().map(|run| run["state"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(states, ["failed", "done", "done"], "{runs:#?}");
    let again = |task| log(folder, task).matches("goes back to the queue").count();
    assert_eq!([again(0), again(1), again(2)], [1, 1, 0]);
    let error = runs[0]["error"].as_str().unwrap();
    assert!(error.contains("metrics.csv"), "{error}");
    let report = succeed(folder, &["sweep", "report", "plan.toml"]);
    assert!(report.contains("failed: gcbc-0: ") && report.contains("2 of 3"), "{report}");

    // Submitted again, with the obstacle gone: that one alone.
    std::fs::remove_dir(table(0)).unwrap();
    let printed = succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    assert!(printed.contains(": 1 runs in 1 tasks"), "{printed}");
    wait(folder, &["done"]);
}

/// A task that ends before `cm` begins leaves no word of its own.
#[test]
fn of_a_task_that_left_no_word_slurm_is_asked_with_and_without_accounting() {
    let Some(_cluster) = cluster() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let axes = "[axes]\nmethod = [\"gcbc\"]\nseed = [0]\n\n[slurm]\nsetup = [\"exit 3\"]";
    plan(folder, 30, 2, axes);
    succeed(folder, &["sweep", "plan.toml", "--on", "slurm"]);
    wait(folder, &["failed"]);
    let error = || status(folder, "plan.toml")[0]["error"].as_str().unwrap().to_owned();
    let has = std::fs::read_to_string(configuration()).unwrap().contains("slurmdbd");
    let without = if has {
        // The accounting hears of it a moment later.
        until(30, "sacct does not know it", || {
            error().contains("Slurm says FAILED (exit code 3:0)").then_some(())
        });
        let kind = "AccountingStorageType=accounting_storage/";
        let off = changed(folder, &format!("{kind}slurmdbd"), &format!("{kind}none"));
        let output = cm_with(&off, folder, &["sweep", "status", "plan.toml"]);
        String::from_utf8(output.stdout).unwrap()
    } else {
        skip("no sacct: `cargo xtask slurm up --accounting` has it");
        error()
    };
    assert!(without.contains("Slurm says FAILED (NonZeroExitCode, exit code 3:0)"), "{without}");
    assert!(without.contains("logs/0.log"), "{without}");
}
