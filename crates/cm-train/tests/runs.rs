//! Runs: resuming equals never having stopped, every method trains, and nothing good is lost when
//! something goes wrong.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use cm_train::{
    Checkpoint, Device, Error, Event, Job, Method, Model, RunFolder, RunSettings, read_evaluations,
    read_metrics, run_jobs, train,
};

fn run(settings: &RunSettings, folder: &Path, stop_after: Option<u64>) -> Result<u64, Error> {
    let task = settings.task.open()?;
    let stop = AtomicBool::new(false);
    let report = train(Device::Cpu, settings, &task, &RunFolder::new(folder), &stop, |event| {
        if let Event::Recorded { step } = event
            && stop_after.is_some_and(|after| step >= after)
        {
            stop.store(true, Ordering::Relaxed);
        }
    })?;
    assert_eq!(report.finished, report.step == settings.steps);
    Ok(report.step)
}

fn contents(folder: &Path) -> Vec<Vec<u8>> {
    ["metrics.csv", "evaluations.csv", "checkpoint.bin", "model.safetensors", "best.safetensors"]
        .map(|name| std::fs::read(folder.join(name)).unwrap())
        .to_vec()
}

#[test]
fn resuming_equals_never_having_stopped() {
    let scratch = tempfile::tempdir().unwrap();
    for method in Method::ALL {
        let settings = RunSettings::tiny_plane(method, 0);
        let (whole, parts) = (
            scratch.path().join(format!("{method}-a")),
            scratch.path().join(format!("{method}-b")),
        );
        assert_eq!(run(&settings, &whole, None).unwrap(), 30);
        // Stopped between checkpoints, then as if killed after writing more than the checkpoint
        // knows of, then to the end.
        assert_eq!(run(&settings, &parts, Some(15)).unwrap(), 15);
        for name in ["metrics.csv", "evaluations.csv"] {
            let file = parts.join(name);
            let more = [std::fs::read(&file).unwrap(), b"99,1".to_vec()].concat();
            std::fs::write(&file, more).unwrap();
        }
        assert_eq!(run(&settings, &parts, Some(20)).unwrap(), 20);
        assert_eq!(run(&settings, &parts, None).unwrap(), 30);
        assert!(contents(&whole) == contents(&parts), "{method}");

        let folder = RunFolder::new(&whole);
        let metrics = read_metrics(&folder.metrics_file()).unwrap();
        assert_eq!(metrics.iter().map(|row| row.step).collect::<Vec<_>>(), [5, 10, 15, 20, 25, 30]);
        let evaluations = read_evaluations(&folder.evaluations_file()).unwrap();
        assert_eq!(evaluations.iter().map(|row| row.step).collect::<Vec<_>>(), [0, 15, 30]);
        assert_eq!(folder.settings().unwrap(), settings);
    }
}

#[test]
fn a_finished_run_can_be_made_longer_but_not_different() {
    let scratch = tempfile::tempdir().unwrap();
    let mut settings = RunSettings::tiny_plane(Method::Gcbc, 0);
    run(&settings, scratch.path(), None).unwrap();
    settings.steps = 40;
    assert_eq!(run(&settings, scratch.path(), None).unwrap(), 40);
    settings.batch = 17;
    let error = run(&settings, scratch.path(), None).unwrap_err();
    assert!(matches!(&error, Error::OtherRun { key, .. } if key == "batch"), "{error}");
    settings.batch = 16;
    settings.goals.gamma = 0.5;
    let message = run(&settings, scratch.path(), None).unwrap_err().to_string();
    assert!(message.contains("goals.gamma") && message.contains("config.toml"), "{message}");
}

#[test]
fn runs_side_by_side_are_the_runs_one_by_one() {
    let scratch = tempfile::tempdir().unwrap();
    let job = |name: &str, seed| {
        let settings = RunSettings { seed, ..RunSettings::tiny_plane(Method::Crl, 0) };
        Job { folder: scratch.path().join(name), settings }
    };
    let mut broken = job("broken", 1);
    broken.settings.goals.gamma = 2.0;
    let jobs = [job("a", 1), broken, job("b", 2)];
    let results = run_jobs(Device::Cpu, &jobs, 3, &AtomicBool::new(false), |_, _| {}).unwrap();
    let succeeded: Vec<_> = results.iter().flatten().map(Result::is_ok).collect();
    assert_eq!(succeeded, [true, false, true]);
    run(&jobs[2].settings, &scratch.path().join("alone"), None).unwrap();
    assert!(contents(&scratch.path().join("b")) == contents(&scratch.path().join("alone")));
    assert!(contents(&scratch.path().join("a")) != contents(&scratch.path().join("b")));
}

#[test]
fn divergence_stops_the_run_and_keeps_the_last_good_checkpoint() {
    let scratch = tempfile::tempdir().unwrap();
    let mut settings = RunSettings::tiny_plane(Method::Gcbc, 0);
    run(&settings, scratch.path(), None).unwrap();
    let good = std::fs::read(scratch.path().join("checkpoint.bin")).unwrap();

    // A learning rate that no network survives, in a folder that takes it for its own.
    settings.steps = 60;
    let cm_train::MethodSettings::Gcbc(gcbc) = &mut settings.method else { unreachable!() };
    (gcbc.adam.learning_rate, gcbc.adam.clip) = (1e38, None);
    std::fs::write(scratch.path().join("config.toml"), settings.to_toml()).unwrap();
    let error = run(&settings, scratch.path(), None).unwrap_err();
    assert!(matches!(error, Error::Diverged { .. }), "{error}");
    assert!(error.to_string().contains("the checkpoint of step 30 is kept"), "{error}");
    assert!(std::fs::read(scratch.path().join("checkpoint.bin")).unwrap() == good);
}

#[test]
fn damaged_checkpoints_are_refused_whatever_the_damage() {
    let scratch = tempfile::tempdir().unwrap();
    run(&RunSettings::tiny_plane(Method::Gcbc, 0), scratch.path(), None).unwrap();
    let file = scratch.path().join("checkpoint.bin");
    let good = std::fs::read(&file).unwrap();
    let refuse = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        Checkpoint::load(&file).unwrap_err().to_string()
    };
    for cut in [0, 7, 23, 24, good.len() / 2, good.len() - 1] {
        assert!(refuse(&good[..cut]).contains("checkpoint.bin"));
    }
    for at in (0..good.len()).step_by(good.len() / 50) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        refuse(&bytes);
    }
    let mut newer = good.clone();
    newer[7] += 1;
    assert!(refuse(&newer).contains("expected version 1, found 2"));
    assert!(refuse(&[good.as_slice(), &[0]].concat()).contains("expected"));

    std::fs::write(&file, &good).unwrap();
    std::fs::write(scratch.path().join("metrics.csv"), "step\n").unwrap();
    let message = run(&RunSettings::tiny_plane(Method::Gcbc, 0), scratch.path(), None)
        .unwrap_err()
        .to_string();
    assert!(message.contains("metrics.csv") && message.contains("cut short"), "{message}");
}

#[test]
fn a_model_gives_distances_that_are_a_quasimetric_and_refuses_other_widths() {
    let scratch = tempfile::tempdir().unwrap();
    for method in Method::ALL.into_iter().filter(|method| method.is_quasimetric()) {
        let folder = scratch.path().join(method.key());
        run(&RunSettings::tiny_plane(method, 0), &folder, None).unwrap();
        let model = Model::load(&RunFolder::new(&folder), true).unwrap();
        let states: Vec<f32> = (0..60).map(|at| ((at * 37) % 41) as f32 - 20.0).collect();
        assert!(model.distances(&states, &states).unwrap().iter().all(|&d| d == 0.0));
        let d = |a: usize, b: usize| {
            model.distances(&states[2 * a..2 * a + 2], &states[2 * b..2 * b + 2]).unwrap()[0]
        };
        for (a, b, c) in (0..28).map(|at| (at, at + 1, (at * 7 + 3) % 30)) {
            assert!(d(a, c) >= 0.0 && d(a, c) <= (d(a, b) + d(b, c)) * (1.0 + 1e-5), "{method}");
        }
        let all = model.distances_from(&states[..2], &states).unwrap();
        assert_eq!(all[5], d(0, 5));
        assert!(model.distances(&states[..3], &states[..3]).is_err());
        assert!(model.distances(&states[..2], &states[..4]).is_err());
    }
    let folder = scratch.path().join("gcbc");
    run(&RunSettings::tiny_plane(Method::Gcbc, 0), &folder, None).unwrap();
    let model = Model::load(&RunFolder::new(&folder), true).unwrap();
    let error = model.distances(&[0.0, 0.0], &[1.0, 1.0]).unwrap_err();
    assert_eq!(error.to_string(), "GCBC learns no distance between states");
}

#[test]
fn a_stop_before_the_first_step_leaves_a_checkpoint_of_step_0() {
    let scratch = tempfile::tempdir().unwrap();
    let settings = RunSettings::tiny_plane(Method::Gcbc, 0);
    let task = settings.task.open().unwrap();
    let events = Cell::new(0);
    let stop = AtomicBool::new(true);
    let folder = RunFolder::new(scratch.path());
    let report =
        train(Device::Cpu, &settings, &task, &folder, &stop, |_| events.set(events.get() + 1))
            .unwrap();
    assert_eq!((report.step, report.finished), (0, false));
    assert_eq!(Checkpoint::load(&folder.checkpoint_file()).unwrap().step, 0);
    assert!(events.get() > 0);
}

#[test]
fn a_stop_during_an_evaluation_leaves_it_to_the_next_run() {
    let scratch = tempfile::tempdir().unwrap();
    let settings =
        RunSettings { checkpoint_every: 1000, ..RunSettings::tiny_plane(Method::Gcbc, 0) };
    let task = settings.task.open().unwrap();
    let folder = RunFolder::new(scratch.path().join("stopped"));
    let stop = AtomicBool::new(false);
    // The first evaluation is written down when the second one is due.
    let watch = |event| {
        if let Event::Evaluated { .. } = event {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let report = train(Device::Cpu, &settings, &task, &folder, &stop, watch).unwrap();
    assert_eq!((report.step, report.finished), (settings.evaluate_every, false));
    assert_eq!(cm_train::read_evaluations(&folder.evaluations_file()).unwrap().len(), 1);
    run(&settings, folder.path(), None).unwrap();
    run(&settings, &scratch.path().join("straight"), None).unwrap();
    assert!(contents(folder.path()) == contents(&scratch.path().join("straight")));
}

#[test]
fn a_stop_keeps_the_jobs_after_it_from_beginning() {
    let scratch = tempfile::tempdir().unwrap();
    let job = |name: &str| Job {
        folder: scratch.path().join(name),
        settings: RunSettings::tiny_plane(Method::Gcbc, 0),
    };
    let jobs = [job("a"), job("b")];
    let stop = AtomicBool::new(false);
    let results =
        run_jobs(Device::Cpu, &jobs, 1, &stop, |_, _| stop.store(true, Ordering::Relaxed)).unwrap();
    assert!(results[0].is_some() && results[1].is_none());
    assert!(!jobs[1].folder.exists());
}

#[test]
fn two_processes_cannot_train_in_one_folder() {
    let scratch = tempfile::tempdir().unwrap();
    let lock = std::fs::File::create(scratch.path().join(".lock")).unwrap();
    lock.lock().unwrap();
    let settings = RunSettings::tiny_plane(Method::Gcbc, 0);
    let message = run(&settings, scratch.path(), None).unwrap_err().to_string();
    assert!(message.contains("another process is training"), "{message}");
    drop(lock);
    run(&settings, scratch.path(), None).unwrap();
}
