//! Whole runs on the GPU: stopped and gone on with, several at once, from device to device.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use cm_cuda::testing;
use cm_train::{
    Device, Event, Method, Model, PlanSettings, Precision, Replica, Result, RunFolder, RunSettings,
    read_metrics, train,
};

const GPU: Device = Device::Cuda { ordinal: 0, precision: Precision::Tf32 };
const EXACT: Device = Device::Cuda { ordinal: 0, precision: Precision::Highest };

/// Trains to the end, or until losses were recorded at `stop_after`.
fn run(device: Device, settings: &RunSettings, folder: &Path, stop_after: Option<u64>) {
    let (task, stop) = (settings.task.open().unwrap(), AtomicBool::new(false));
    let report = train(device, settings, &task, &RunFolder::new(folder), &stop, |event| {
        if let Event::Recorded { step } = event
            && stop_after.is_some_and(|after| step >= after)
        {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let report = report.unwrap();
    assert_eq!(report.finished, stop_after.is_none());
}

fn contents(folder: &Path) -> Vec<Vec<u8>> {
    let names = ["metrics.csv", "evaluations.csv", "checkpoint.bin", "model.safetensors"];
    let all = names.into_iter().chain(["best.safetensors", "devices.csv"]);
    all.map(|name| std::fs::read(folder.join(name)).unwrap()).collect()
}

#[test]
fn stopping_and_going_on_is_never_having_stopped() {
    if testing::device().is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    for method in Method::ALL {
        let [whole, parts] =
            ["whole", "parts"].map(|name| scratch.path().join(method.key()).join(name));
        let settings = RunSettings::tiny_plane(method, 3);
        run(GPU, &settings, &whole, None);
        // Between two checkpoints, and again later.
        run(GPU, &settings, &parts, Some(5));
        run(GPU, &settings, &parts, Some(20));
        run(GPU, &settings, &parts, None);
        assert!(contents(&whole) == contents(&parts), "{method}");
    }
}

#[test]
fn replicas_are_the_runs_one_by_one() {
    if testing::device().is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    for method in Method::ALL {
        let [together, single] =
            ["together", "single"].map(|name| scratch.path().join(method.key()).join(name));
        let runs = [3, 1, 7].map(|seed| RunSettings::tiny_plane(method, seed));
        let tasks = runs.each_ref().map(|run| run.task.open().unwrap());
        let folders = runs.each_ref().map(|run| together.join(run.seed.to_string()));
        let folders = folders.map(RunFolder::new);
        let replicas = [0, 1, 2].map(|at| {
            let (settings, task, folder) = (&runs[at], &tasks[at], &folders[at]);
            Replica { settings, task, folder }
        });
        let reports = GPU.train(&replicas, &AtomicBool::new(false), |_, _| {}).unwrap();
        assert!(reports.into_iter().all(|report| report.unwrap().finished));
        for (settings, folder) in runs.iter().zip(&folders) {
            let alone = single.join(settings.seed.to_string());
            run(GPU, settings, &alone, None);
            assert!(contents(&alone) == contents(folder.path()), "{method} {}", settings.seed);
        }
    }
}

#[test]
fn a_run_goes_from_the_cpu_to_the_gpu_and_back() {
    if testing::device().is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    for method in Method::ALL {
        let [cpu, both] = ["cpu", "both"].map(|name| scratch.path().join(method.key()).join(name));
        let settings = RunSettings::tiny_plane(method, 5);
        run(Device::Cpu, &settings, &cpu, None);
        run(Device::Cpu, &settings, &both, Some(10));
        run(EXACT, &settings, &both, Some(20));
        run(Device::Cpu, &settings, &both, None);
        let losses = |folder: &Path| -> Result<Vec<_>> {
            let rows = read_metrics(&RunFolder::new(folder).metrics_file())?;
            Ok(rows.iter().map(|row| (row.step, row.values.clone())).collect())
        };
        let (wanted, found) = (losses(&cpu).unwrap(), losses(&both).unwrap());
        assert_eq!(wanted.len(), found.len(), "{method}");
        for ((step, wanted), (_, found)) in wanted.iter().zip(&found) {
            for ((name, wanted), (_, found)) in wanted.iter().zip(found) {
                let is_close = (wanted - found).abs() <= 1e-2 * (wanted.abs() + 0.1);
                assert!(is_close, "{method}, step {step}: {name} is {found}, not {wanted}");
            }
        }
        let devices = RunFolder::new(&both).devices().unwrap();
        let names = devices.iter().map(|(step, name)| (*step, name.as_str())).collect::<Vec<_>>();
        assert_eq!(names, [(0, "cpu"), (10, "cuda:0,highest"), (20, "cpu")], "{method}");
    }
}

/// What a loss says of training that goes well, after many steps and in every seed.
#[test]
fn long_training_does_not_diverge() {
    if testing::device().is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    // On the CPU these are about 1.2 and 1 throughout.
    for (method, loss, most) in
        [(Method::Cmd1, "contrastive_loss", 2.5), (Method::Cmd2, "constraint", 25.0)]
    {
        let runs = [0, 1, 2, 3, 4, 5, 6, 7].map(|seed| RunSettings {
            seed,
            steps: 20_000,
            evaluate_every: 0,
            checkpoint_every: 20_000,
            ..RunSettings::plane(method)
        });
        let tasks = runs.each_ref().map(|run| run.task.open().unwrap());
        let folders = runs.each_ref().map(|run| {
            RunFolder::new(scratch.path().join(format!("{}-{}", method.key(), run.seed)))
        });
        let replicas = [0, 1, 2, 3, 4, 5, 6, 7].map(|at| {
            let (settings, task, folder) = (&runs[at], &tasks[at], &folders[at]);
            Replica { settings, task, folder }
        });
        let reports = GPU.train(&replicas, &AtomicBool::new(false), |_, _| {}).unwrap();
        assert!(reports.into_iter().all(|report| report.unwrap().finished));
        for (seed, folder) in folders.iter().enumerate() {
            for row in read_metrics(&folder.metrics_file()).unwrap().iter().skip(10) {
                let found = row.values.iter().find(|(name, _)| name == loss).unwrap().1;
                let step = row.step;
                assert!(found < most, "{method}, seed {seed}: {loss} is {found} at step {step}");
            }
        }
    }
}

/// Close to the CPU's, up to rows that are as far from the nodes up to the last digits.
#[test]
fn road_maps_are_those_of_the_cpu() {
    if testing::device().is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let plan = PlanSettings { nodes: 60, rows: 2_000, ..PlanSettings::default() };
    for method in [Method::Cmd1, Method::Cmd2, Method::Qrl, Method::Tmd, Method::Crl] {
        let folder = scratch.path().join(method.key());
        let settings = RunSettings::tiny_plane(method, 3);
        run(Device::Cpu, &settings, &folder, None);
        let model = Model::load(&RunFolder::new(&folder), false).unwrap();
        let task = settings.task.open().unwrap();
        let [cpu, gpu, again] =
            [Device::Cpu, GPU, GPU].map(|on| on.road_map(&model, &task, &plan).unwrap());
        assert_eq!(gpu, again, "{method}");
        let close = |a: f32, b: f32| (a - b).abs() <= 0.02 * a.abs().max(b.abs());
        let [one, other] = [&cpu, &gpu].map(|map| map.trust().unwrap());
        assert!((one.correlation - other.correlation).abs() < 1e-3, "{method}: {one}; {other}");
        let [from, to] = [cpu.lengths(), gpu.lengths()];
        assert!(close(from[0], to[0]) && close(from[1], to[1]), "{method}: {from:?}, {to:?}");
        let [from, to] = [&cpu, &gpu].map(|map| (map.nodes().len() as f32, map.links().len()));
        assert!(close(from.0, to.0), "{method}: {from:?}, {to:?}");
        assert!(from.1.abs_diff(to.1) <= from.1 / 5, "{method}: {from:?}, {to:?}");
    }
}

#[test]
fn runs_on_the_gpu_walk_the_same_maps_again() {
    if testing::device().is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let folders = ["one", "other"].map(|name| scratch.path().join(name));
    let plan = PlanSettings { nodes: 60, rows: 2_000, ..PlanSettings::default() };
    let settings = RunSettings { plan: Some(plan), ..RunSettings::tiny_plane(Method::Cmd1, 3) };
    let [one, other] = folders.map(|folder| {
        run(GPU, &settings, &folder, None);
        ["planned.csv", "model.roads"].map(|name| std::fs::read(folder.join(name)).unwrap())
    });
    assert!(one == other);
}
