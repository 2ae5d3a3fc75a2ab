//! What sites differ in, without their machines: GPUs that seeds share, file systems without locks.

use std::path::Path;
use std::process::Command;

use crate::sweeps::{TINY, fail, succeed};

/// A folder of programs that stand for Slurm's: they write down what they are called with.
fn fake_slurm(folder: &Path) -> std::path::PathBuf {
    let programs = folder.join("programs");
    std::fs::create_dir_all(&programs).unwrap();
    let sbatch = "#!/bin/sh\nfor word; do echo \"$word\"; done >> \"$0.called\"\necho 17\n";
    for (name, text) in [("sbatch", sbatch), ("squeue", "#!/bin/sh\n")] {
        let file = programs.join(name);
        std::fs::write(&file, text).unwrap();
        assert!(Command::new("chmod").arg("+x").arg(&file).status().unwrap().success());
    }
    programs
}

#[test]
fn seeds_that_share_a_gpu_are_one_task() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let text = TINY.replace("steps = 30", "steps = 30\ndevice = \"cuda\"");
    let axes = "[axes]\nmethod = [\"gcbc\", \"cmd1\"]\nseed = { from = 0, count = 5 }";
    let slurm = "[slurm]\npack = 4\naccount = \"lab\"\ntime = \"4:00:00\"";
    std::fs::write(folder.join("plan.toml"), format!("{text}{axes}\n\n{slurm}\n")).unwrap();
    let programs = fake_slurm(folder);
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
    command.args(["sweep", "plan.toml", "--on", "slurm", "--partition", "gpu"]);
    let output = command.current_dir(folder).env("PATH", path).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && printed.contains("10 runs in 4 tasks"), "{printed}{said}");

    let called = std::fs::read_to_string(programs.join("sbatch.called")).unwrap();
    let words: Vec<_> = called.lines().collect();
    let wanted = ["--array=0-3", "--gpus=1", "--partition=gpu", "--account=lab", "--time=4:00:00"];
    for word in wanted.into_iter().chain(["--requeue", "--dependency=afterany:17"]) {
        assert!(words.contains(&word), "{word}: {called}");
    }
    let tasks = folder.join("out/.sweep/submission-1/tasks.json");
    let tasks: serde_json::Value = serde_json::from_slice(&std::fs::read(tasks).unwrap()).unwrap();
    let seeds = |method: &str, seeds: &[u32]| -> serde_json::Value {
        seeds.iter().map(|seed| format!("{method}-{seed}")).collect()
    };
    let mut found = tasks["runs"].as_array().unwrap().clone();
    found.sort_by_key(ToString::to_string);
    let wanted = [
        seeds("cmd1", &[0, 1, 2, 3]),
        seeds("cmd1", &[4]),
        seeds("gcbc", &[0, 1, 2, 3]),
        seeds("gcbc", &[4]),
    ];
    assert_eq!(found, wanted);
}

/// A plan that is shipped is readable, and trainable by its name.
#[test]
fn plans_that_are_shipped_are_printed_and_found_by_name() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let listed = succeed(folder, &["sweep", "plans"]);
    for name in listed.lines().map(|line| line.split(' ').next().unwrap()) {
        let text = succeed(folder, &["sweep", "plans", name]);
        std::fs::write(folder.join("plan.toml"), &text).unwrap();
        let by_name = succeed(folder, &["sweep", "status", name]);
        assert_eq!(by_name, succeed(folder, &["sweep", "status", "plan.toml"]));
        assert!(by_name.contains("not begun"), "{by_name}");
    }
    assert!(listed.contains("pointmaze") && listed.contains("antmaze"), "{listed}");
    assert!(fail(folder, &["sweep", "plans", "chess"]).contains("found `chess`"));
    let said = fail(folder, &["sweep", "status", "chess"]);
    assert!(said.contains("chess: could not be read") && said.contains("pointmaze"), "{said}");
}

/// `flock` is replaced by one that answers as on a drive without locks.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_without_locks_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    std::fs::write(folder.join("plan.toml"), format!("{TINY}[axes]\nseed = [0]\n")).unwrap();
    for error in ["ENOLCK", "ENOSYS", "EOPNOTSUPP"] {
        let text = format!(
            "#include <errno.h>\nint flock(int file, int how) {{ errno = {error}; return -1; }}\n"
        );
        std::fs::write(folder.join("flock.c"), text).unwrap();
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-o", "flock.so", "flock.c"])
            .current_dir(folder)
            .output();
        if !compiled.is_ok_and(|output| output.status.success()) {
            eprintln!("SKIPPED: there is no C compiler");
            return;
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_cm"));
        command.args(["sweep", "plan.toml"]).current_dir(folder);
        let output = command.env("LD_PRELOAD", folder.join("flock.so")).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("has no locks"), "{error}: {said}");
        assert!(said.contains("lock service") && !folder.join("out/default-0").exists(), "{said}");
    }
}
