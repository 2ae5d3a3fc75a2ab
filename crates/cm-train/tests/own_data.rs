//! Runs on data of one's own: what is held out, what is stored with the model, how it goes on.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use cm_envs::walks::Course;
use cm_train::{
    Device, HeldOut, Method, Model, Places, ReadOut, Report, RunFolder, RunSettings, Task, check,
    train,
};

/// Settings of a short training on a ring in `folder`.
fn settings(folder: &Path, method: Method) -> RunSettings {
    let file = folder.join("ring.csv");
    std::fs::write(&file, Course::Ring.collect(60, 40, 3).unwrap().to_csv()).unwrap();
    let held_out = HeldOut { every: 20, ..RunSettings::own_data(method, file.clone()).held_out };
    let mut settings = RunSettings {
        batch: 64,
        log_every: 10,
        checkpoint_every: 20,
        held_out,
        ..RunSettings::own_data(method, file)
    };
    settings.method.set_hidden(&[32]);
    settings
}

fn run(settings: &RunSettings, task: &Task, folder: &RunFolder) -> Report {
    train(Device::Cpu, settings, task, folder, &AtomicBool::new(false), |_| {}).unwrap()
}

#[test]
fn a_run_that_was_made_longer_is_the_longer_run() {
    let scratch = tempfile::tempdir().unwrap();
    let whole = RunSettings { steps: 80, ..settings(scratch.path(), Method::Cmd1) };
    let half = RunSettings { steps: 40, ..whole.clone() };
    let task = whole.task.open().unwrap();
    let folders = ["once", "twice"].map(|name| RunFolder::new(scratch.path().join(name)));
    let report = run(&whole, &task, &folders[0]);
    assert!(report.finished && report.best.is_none() && report.held_out.is_some());
    run(&half, &task, &folders[1]);
    assert_eq!(run(&whole, &task, &folders[1]).held_out, report.held_out);
    let names = ["metrics.csv", "validation.csv", "model.safetensors", "best.safetensors"];
    for name in names.into_iter().chain(["checkpoint.bin", "config.toml"]) {
        let [once, twice] =
            folders.each_ref().map(|folder| std::fs::read(folder.path().join(name)).unwrap());
        assert!(once == twice, "{name}");
    }
    // Nothing is held out by heart: the loss of both kinds is written down at every look.
    let looks = std::fs::read_to_string(folders[0].validations_file()).unwrap();
    assert_eq!(looks.lines().count(), 5, "{looks}");
}

#[test]
fn training_ends_when_held_out_trajectories_gain_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let mut settings = RunSettings { steps: 200, ..settings(scratch.path(), Method::Cmd1) };
    // No loss falls by so much.
    (settings.held_out.patience, settings.held_out.least) = (2, 50.0);
    let task = settings.task.open().unwrap();
    let folder = RunFolder::new(scratch.path().join("run"));
    let report = run(&settings, &task, &folder);
    assert!(report.finished && report.early, "{report:?}");
    assert_eq!((report.step, report.held_out.unwrap().0), (60, 20));
    // Again: it is over.
    let again = run(&settings, &task, &folder);
    assert_eq!((again.step, again.early), (60, true));
}

/// A short training of every method: the read-out is what it says, exactly 0 from a state to itself,
/// and without violated triangles where it is a quasimetric.
#[test]
fn every_method_is_read_out_and_checked() {
    let scratch = tempfile::tempdir().unwrap();
    for method in [Method::Cmd1, Method::Cmd2, Method::Qrl, Method::Crl] {
        let settings = RunSettings { steps: 40, ..settings(scratch.path(), method) };
        let task = settings.task.open().unwrap();
        let folder = RunFolder::new(scratch.path().join(method.key()));
        run(&settings, &task, &folder);
        let model = Model::load(&folder, true).unwrap();
        let wanted = match method {
            Method::Crl => ReadOut::DataActions,
            _ => ReadOut::Composed,
        };
        assert_eq!(model.read_out(), wanted, "{method}");
        let here = [3.0, 4.0];
        if model.is_quasimetric() {
            assert_eq!(model.distances(&here, &here).unwrap(), [0.0], "{method}");
        }
        let found = check(&model, &task).unwrap();
        assert_eq!(found.trajectories, [54, 6]);
        assert!(found.triangles[0] == 1_000_000);
        assert_eq!(found.triangles[1] == 0, model.is_quasimetric(), "{method}: {found:?}");
        assert_eq!(model.violations().is_some(), !model.is_quasimetric());
        assert!(model.calibration().is_some() && found.calibrated.unwrap() > 0.5, "{method}");
        assert!(found.goal_action.is_some() && found.rank_correlation.is_finite());

        // Many states at once are the same distances.
        let states = [10.0, 0.0, 0.0, 10.0, -10.0, 0.0, 0.0, -10.0];
        let places = Places::new(&model, states.to_vec()).unwrap();
        let close = |a: Vec<f32>, b: Vec<f32>| {
            a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-4 * (1.0 + b.abs()))
        };
        let goal = [9.0, 4.4];
        let to = (places.to(&model, &goal).unwrap(), model.distances_to(&states, &goal).unwrap());
        assert!(close(to.0, to.1), "{method}");
        let from =
            (places.from(&model, &goal).unwrap(), model.distances_from(&goal, &states).unwrap());
        assert!(close(from.0, from.1), "{method}");
    }
}

/// The way is that of the walks, whatever the metric has learned.
#[test]
fn paths_go_with_the_data() {
    let scratch = tempfile::tempdir().unwrap();
    let settings = RunSettings { steps: 40, ..settings(scratch.path(), Method::Cmd1) };
    let task = settings.task.open().unwrap();
    let folder = RunFolder::new(scratch.path().join("run"));
    run(&settings, &task, &folder);
    let model = Model::load(&folder, true).unwrap();
    let path = model.path(&[0.0, 10.0], &[10.0, 0.0]).unwrap();
    assert!(path.arrived && path.distances.is_sorted_by(|a, b| a >= b), "{path:?}");
    // Three quarters of a turn, and never back by more than the noise of an observation.
    let angles: Vec<f32> = path.states.iter().map(|state| state[1].atan2(state[0])).collect();
    let turn = |pair: &[f32]| (pair[1] - pair[0] + 0.3).rem_euclid(std::f32::consts::TAU) - 0.3;
    let turns: Vec<f32> = angles.windows(2).map(turn).collect();
    assert!(turns.iter().all(|turn| (-0.1..3.0).contains(turn)), "{turns:?}");
    assert!((turns.iter().sum::<f32>() - 4.712).abs() < 0.05, "{turns:?}");
}
