//! Several runs trained at once are the runs trained one by one, whatever happens to one of them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use cm_nn::DfdxBackend;
use cm_nn::testing::Replicated;
use cm_train::{
    Checkpoint, Device, Error, Event, Method, Replica, Report, Result, RunFolder, RunSettings,
    train, train_on,
};

/// Trains alone, to the end or until losses were recorded at `stop_after`.
fn alone(settings: &RunSettings, folder: &Path, stop_after: Option<u64>) -> Result<Report> {
    let (task, stop) = (settings.task.open()?, AtomicBool::new(false));
    train(Device::Cpu, settings, &task, &RunFolder::new(folder), &stop, |event| {
        if let Event::Recorded { step } = event
            && stop_after.is_some_and(|after| step >= after)
        {
            stop.store(true, Ordering::Relaxed);
        }
    })
}

/// Trains at once, in folders named by their seeds.
fn at_once(runs: &[RunSettings], scratch: &Path) -> Result<Vec<Result<Report>>> {
    let tasks = runs.iter().map(|run| run.task.open()).collect::<Result<Vec<_>>>()?;
    let folders = runs.iter().map(|run| RunFolder::new(scratch.join(run.seed.to_string())));
    let folders = folders.collect::<Vec<_>>();
    let replicas = runs.iter().zip(&tasks).zip(&folders);
    let replicas = replicas.map(|((settings, task), folder)| Replica { settings, task, folder });
    let make = |seeds: &[u64]| Replicated::new(seeds, DfdxBackend::new);
    train_on(make, &replicas.collect::<Vec<_>>(), &AtomicBool::new(false), |_, _| {})
}

fn contents(folder: &Path) -> Vec<Vec<u8>> {
    ["metrics.csv", "evaluations.csv", "checkpoint.bin", "model.safetensors", "best.safetensors"]
        .map(|name| std::fs::read(folder.join(name)).unwrap())
        .to_vec()
}

#[test]
fn replicas_are_the_runs_one_by_one() {
    let scratch = tempfile::tempdir().unwrap();
    for method in Method::ALL {
        let [together, single] =
            ["together", "single"].map(|name| scratch.path().join(method.key()).join(name));
        let runs = [3, 1, 7].map(|seed| RunSettings::tiny_plane(method, seed));
        for report in at_once(&runs, &together).unwrap() {
            assert!(report.unwrap().finished);
        }
        for run in &runs {
            let folder = single.join(run.seed.to_string());
            alone(run, &folder, None).unwrap();
            let same = contents(&folder) == contents(&together.join(run.seed.to_string()));
            assert!(same, "{method}, seed {}", run.seed);
        }
    }
}

#[test]
fn replicas_resume_one_by_one() {
    let scratch = tempfile::tempdir().unwrap();
    let [together, single] = ["together", "single"].map(|name| scratch.path().join(name));
    let runs = [0, 1, 2, 3].map(|seed| RunSettings::tiny_plane(Method::Gcbc, seed));
    // One has not begun, one was stopped between checkpoints, one later, one is finished.
    alone(&runs[1], &together.join("1"), Some(5)).unwrap();
    alone(&runs[2], &together.join("2"), Some(20)).unwrap();
    alone(&runs[3], &together.join("3"), None).unwrap();
    let reports = at_once(&runs, &together).unwrap();
    for (run, report) in runs.iter().zip(reports) {
        let report = report.unwrap();
        assert!(report.finished && report.step == 30);
        let folder = single.join(run.seed.to_string());
        alone(run, &folder, None).unwrap();
        assert!(contents(&folder) == contents(&together.join(run.seed.to_string())));
    }
}

#[test]
fn a_replica_that_diverges_does_not_end_the_others() {
    let scratch = tempfile::tempdir().unwrap();
    let [together, single] = ["together", "single"].map(|name| scratch.path().join(name));
    let runs = [0, 1, 2].map(|seed| RunSettings::tiny_plane(Method::Gcbc, seed));
    for run in &runs {
        alone(run, &together.join(run.seed.to_string()), Some(10)).unwrap();
    }
    // Weights that no loss survives.
    let file = RunFolder::new(together.join("1")).checkpoint_file();
    let mut broken = Checkpoint::load(&file).unwrap();
    let enormous = broken.parameters.clone().into_iter().map(|(name, mut matrix)| {
        matrix.values.fill(1e30);
        (name, matrix)
    });
    broken.parameters = enormous.collect();
    broken.save(&file).unwrap();
    let bytes = std::fs::read(&file).unwrap();

    let reports = at_once(&runs, &together).unwrap();
    let diverged = reports[1].as_ref().unwrap_err();
    assert!(matches!(diverged, Error::Diverged { .. }), "{diverged}");
    assert!(diverged.to_string().contains("the checkpoint of step 10 is kept"), "{diverged}");
    assert!(std::fs::read(&file).unwrap() == bytes);
    for index in [0, 2] {
        assert!(reports[index].as_ref().unwrap().finished);
        let folder = single.join(index.to_string());
        alone(&runs[index], &folder, None).unwrap();
        assert!(contents(&folder) == contents(&together.join(index.to_string())));
    }
}

#[test]
fn a_folder_that_is_taken_does_not_keep_the_others_from_training() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(scratch.path().join("1")).unwrap();
    let lock = std::fs::File::create(scratch.path().join("1/.lock")).unwrap();
    lock.lock().unwrap();
    let reports =
        at_once(&[0, 1, 2].map(|seed| RunSettings::tiny_plane(Method::Gcbc, seed)), scratch.path());
    let reports = reports.unwrap();
    assert!(matches!(reports[1], Err(Error::Busy { .. })));
    for (index, seed) in [(0, 0), (2, 2)] {
        assert!(reports[index].as_ref().unwrap().finished, "seed {seed}");
        assert!(scratch.path().join(format!("{seed}/model.safetensors")).exists());
    }
}

#[test]
fn runs_that_do_not_belong_together_are_refused_by_name() {
    let scratch = tempfile::tempdir().unwrap();
    let refused = |change: &dyn Fn(&mut RunSettings)| {
        let mut runs = [0, 1].map(|seed| RunSettings::tiny_plane(Method::Gcbc, seed));
        change(&mut runs[1]);
        at_once(&runs, scratch.path()).unwrap_err().to_string()
    };
    assert!(refused(&|run| run.batch = 8).starts_with("batch: "));
    assert!(refused(&|run| run.steps = 31).starts_with("steps: "));
    assert!(
        refused(&|run| run.method = RunSettings::tiny_plane(Method::Crl, 1).method)
            .starts_with("method")
    );
    assert!(at_once(&[], scratch.path()).is_err());

    // The CPU's own backend has no replicas, and says so.
    let runs = [0, 1].map(|seed| RunSettings::tiny_plane(Method::Gcbc, seed));
    let (task, folders) = (
        runs[0].task.open().unwrap(),
        ["a", "b"].map(|name| RunFolder::new(scratch.path().join(name))),
    );
    let replicas =
        [0, 1].map(|at| Replica { settings: &runs[at], task: &task, folder: &folders[at] });
    let error = Device::Cpu.train(&replicas, &AtomicBool::new(false), |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("one seed at a time"), "{error}");
}

#[test]
fn settings_are_refused_by_their_whole_key() {
    let scratch = tempfile::tempdir().unwrap();
    let refused =
        |settings: &RunSettings| alone(settings, scratch.path(), None).unwrap_err().to_string();
    let mut settings = RunSettings::tiny_plane(Method::Cmd2, 0);
    let cm_train::MethodSettings::Cmd2(cmd2) = &mut settings.method else { unreachable!() };
    cmd2.contrastive.divisor = 0.0;
    assert!(
        refused(&settings).contains("`method.cmd2.contrastive.divisor`"),
        "{}",
        refused(&settings)
    );
    let mut settings = RunSettings::tiny_plane(Method::Qrl, 0);
    let cm_train::MethodSettings::Qrl(qrl) = &mut settings.method else { unreachable!() };
    qrl.actor.policy.network.hidden = vec![4, 0];
    assert!(refused(&settings).contains("`method.qrl.actor.policy.network.hidden`"));
}
