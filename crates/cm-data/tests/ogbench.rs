//! Data of OGBench's mazes: the same for the same seed, resumed where it was cut off, in OGBench's
//! own form too.

use std::path::Path;

use cm_data::{OgSettings, ensure_task, generate_ogbench, silent};
use cm_envs::mujoco::Mujoco;
use cm_envs::ogbench::OgTask;
use cm_replay::{Dataset, ReadOptions, read};

fn task(name: &str) -> OgTask {
    name.parse().unwrap()
}

fn has_mujoco() -> bool {
    match Mujoco::find() {
        Ok(_) => true,
        Err(reason) if std::env::var_os("CM_REQUIRE_MUJOCO").is_none() => {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn small(name: &str) -> OgSettings {
    OgSettings { episodes: 20, ..OgSettings::new(task(name)) }
}

#[test]
fn data_is_the_same_on_any_number_of_threads_and_resumed() {
    if !has_mujoco() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let settings = small("pointmaze-teleport-stitch-v0");
    let made = generate_ogbench(&settings, &at("a.cmdata"), &silent).unwrap();
    let (validation, figures) = made.validation.unwrap();
    assert_eq!(validation, at("a-val.cmdata"));
    assert_eq!((made.training.1.unwrap().episodes, figures.unwrap().episodes), (20, 2));
    let one = OgSettings { threads: 1, ..settings.clone() };
    generate_ogbench(&one, &at("b.cmdata"), &silent).unwrap();
    let [a, b] = ["a.cmdata", "b.cmdata"].map(|name| Dataset::load(at(name)).unwrap());
    assert_eq!(a, b);
    assert_eq!((a.trajectories(), a.steps(), a.transitions()), (20, 20 * 201, 20 * 200));
    assert_ne!(a.observations().row(0), Dataset::load(&validation).unwrap().observations().row(0));

    // Cut off: a part is gone, and so is the file.
    let parts = at("c.parts");
    std::fs::create_dir(&parts).unwrap();
    let again = generate_ogbench(&settings, &at("a.cmdata"), &silent).unwrap();
    assert_eq!(again.training.1, None);
    generate_ogbench(&settings, &at("c.cmdata"), &silent).unwrap();
    assert_eq!(Dataset::load(at("c.cmdata")).unwrap(), a);
    assert!(!parts.exists());

    let message = |settings: &OgSettings, file: &Path| {
        generate_ogbench(settings, file, &silent).unwrap_err().to_string()
    };
    let other = OgSettings { seed: 1, ..settings.clone() };
    let refused = message(&other, &at("a.cmdata"));
    assert!(refused.contains("a.cmdata") && refused.contains("`seed`"), "{refused}");
    let none = OgSettings { episodes: 0, ..settings.clone() };
    assert!(message(&none, &at("d.cmdata")).contains("episodes"));
    assert!(message(&settings, &at("d.npz")).contains(".cmdata"));
    let wrong = ensure_task(&at("a.cmdata"), "pointmaze-large-stitch-v0");
    assert!(wrong.unwrap_err().to_string().contains("pointmaze-teleport-stitch-v0"));
    ensure_task(&at("a.cmdata"), &settings.task.name()).unwrap();
}

#[test]
fn npz_files_are_read_back_and_ants_walk() {
    if !has_mujoco() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ant.cmdata");
    let settings = OgSettings { npz: true, episodes: 10, ..small("antmaze-medium-stitch-v0") };
    let made = generate_ogbench(&settings, &file, &silent).unwrap();
    let figures = made.training.1.unwrap();
    assert!(figures.arrived.unwrap() > 0.2 && figures.stride > 0.1, "{figures}");
    assert!(figures.on_back.unwrap() < 0.2, "{figures}");
    let data = Dataset::load(&file).unwrap();
    assert_eq!(made.npz.len(), 2);
    let options = ReadOptions { extras: vec!["qpos".into(), "qvel".into()], ..Default::default() };
    let back = read(&made.npz[0], &options).unwrap();
    assert_eq!(back.observations(), data.observations());
    assert_eq!(back.actions(), data.actions());
    assert_eq!((back.ends(), back.extras().len()), (data.ends(), 2));
    assert_eq!(back.extras()["qpos"], data.extras()["qpos"]);
}
