//! Road maps of data: made, kept, refused, walked.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use cm_envs::Rollout;
use cm_train::{
    Device, Links, Method, Model, PlanSettings, RoadMap, RunFolder, RunSettings, Task, Walked,
    read_evaluations, train,
};

/// A run of a few steps in a small world.
fn run(folder: &Path, settings: &RunSettings) -> (RunFolder, Task) {
    let folder = RunFolder::new(folder);
    let task = settings.task.open().unwrap();
    train(Device::Cpu, settings, &task, &folder, &AtomicBool::new(false), |_| {}).unwrap();
    (folder, task)
}

fn trained(folder: &Path, method: Method, seed: u64) -> (Model, Task) {
    let (folder, task) = run(folder, &RunSettings::tiny_plane(method, seed));
    (Model::load(&folder, false).unwrap(), task)
}

const SMALL: PlanSettings =
    PlanSettings { nodes: 60, rows: 800, steps: 0, link: None, reach: None, seed: 0 };

#[test]
fn links_are_as_long_as_the_model_says_whichever_method_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    for method in [Method::Cmd1, Method::Cmd2, Method::Crl] {
        let (model, task) = trained(&scratch.path().join(method.key()), method, 0);
        let places = task.world().unwrap().places().unwrap()[..25].concat();
        let everywhere = Links { radius: 1e6, longest: 1e6 };
        let map = RoadMap::new(&model, &places, everywhere).unwrap();
        assert_eq!(map.links().len(), 25 * 24);
        for &(from, to, length) in map.links() {
            let place = |node: u32| &places[2 * node as usize..][..2];
            let wanted = model.distances(place(from), place(to)).unwrap()[0].max(0.0);
            assert!(
                (length - wanted).abs() <= 1e-4 * (1.0 + wanted),
                "{method}: {length} {wanted}"
            );
        }
    }
}

/// Forty rows with links of hardly any length lead nowhere, and all are nodes; nodes beyond them are
/// of a map made anew.
#[test]
fn a_map_in_pieces_is_made_of_more_rows() {
    let scratch = tempfile::tempdir().unwrap();
    let (model, task) = trained(&scratch.path().join("run"), Method::Qrl, 0);
    let few = PlanSettings { nodes: 1_000, rows: 40, link: Some(1e-3), ..SMALL };
    let map = RoadMap::of_data(&model, &task, &few).unwrap();
    let nodes = map.nodes().len() / 2;
    assert!(nodes > 40 && nodes <= 160, "{nodes}");
    assert!(map.is_of(&few));
}

#[test]
fn a_map_is_the_same_for_the_same_seed_and_is_read_back() {
    let scratch = tempfile::tempdir().unwrap();
    let (model, task) = trained(&scratch.path().join("run"), Method::Qrl, 0);
    let map = RoadMap::of_data(&model, &task, &SMALL).unwrap();
    assert_eq!(RoadMap::of_data(&model, &task, &SMALL).unwrap(), map);
    assert!(map.nodes().len() <= 2 * SMALL.nodes && !map.links().is_empty());
    assert!(map.is_of(&SMALL) && !map.is_of(&PlanSettings { seed: 1, ..SMALL }));
    let [link, reach] = map.lengths();
    assert!(link > 0.0 && link <= reach);
    // Against the way the data goes links are twenty times as long.
    assert!(map.links().iter().all(|&(from, to, length)| from != to && length <= 20.0 * reach));
    let file = scratch.path().join("a.roads");
    map.save(&file).unwrap();
    assert_eq!(RoadMap::load(&file, &model, &task).unwrap(), map);
    assert_eq!(RoadMap::read(&file, &model).unwrap(), map);
    // Plans over it go along its links.
    let place = |node: u32| &map.nodes()[2 * node as usize..][..2];
    let &(from, to, length) = &map.links()[0];
    let path = &map.paths(&model, place(from), place(to)).unwrap()[0];
    assert!(path.arrived && path.distances[0] <= length + 1e-4, "{path:?} {length}");
}

#[test]
fn what_is_not_the_map_of_this_model_and_its_data_is_refused_by_name() {
    let scratch = tempfile::tempdir().unwrap();
    let (model, task) = trained(&scratch.path().join("0"), Method::Cmd1, 0);
    let (other, other_task) = trained(&scratch.path().join("1"), Method::Cmd1, 1);
    let file = scratch.path().join("a.roads");
    RoadMap::of_data(&model, &task, &SMALL).unwrap().save(&file).unwrap();
    let refused = |model: &Model, task: &Task, wanted: &[&str]| {
        let message = RoadMap::load(&file, model, task).unwrap_err().to_string();
        assert!(message.contains("a.roads"), "{message}");
        assert!(wanted.iter().all(|part| message.contains(part)), "{message}");
    };
    let names = ["cmd1, seed 1, pointmaze, data 1", "cmd1, seed 0, pointmaze, data 0", "model"];
    refused(&other, &other_task, &names);
    refused(&model, &other_task, &["other data", "pointmaze, data 0", "rows"]);
    let whole = std::fs::read(&file).unwrap();
    for (place, wanted) in [(0, "a road map"), (7, "expected version"), (60, "checksum")] {
        let mut bytes = whole.clone();
        bytes[place] ^= 64;
        std::fs::write(&file, bytes).unwrap();
        refused(&model, &task, &[wanted]);
    }
    let places = RoadMap::new(&model, &[0.0; 4], Links { radius: 1.0, longest: 1.0 }).unwrap();
    assert!(places.save(&file).unwrap_err().to_string().contains("given places"));
    let (cloned, task) = trained(&scratch.path().join("2"), Method::Gcbc, 0);
    let message = RoadMap::of_data(&cloned, &task, &SMALL).unwrap_err().to_string();
    assert_eq!(message, "GCBC learns no distance between states");
}

/// Where no node reaches the goal the policy goes straight, step by step as without a map.
#[test]
fn without_a_way_the_policy_goes_straight_and_it_is_counted() {
    let scratch = tempfile::tempdir().unwrap();
    let (model, task) = trained(&scratch.path().join("run"), Method::Cmd1, 0);
    let nowhere = PlanSettings { link: Some(1e-6), reach: Some(1e-6), ..SMALL };
    let map = RoadMap::of_data(&model, &task, &nowhere).unwrap();
    let plan = Rollout { episodes: 12, seed: 3, paths: 12 };
    let world = task.world().unwrap();
    let straight = model.evaluate(world, &plan).unwrap();
    let walked = model.evaluate_on(&map, world, &plan).unwrap();
    let on_the_way = straight.outcomes.iter().filter(|outcome| outcome.steps > 0).count();
    assert_eq!(walked.walked.unwrap().no_way, on_the_way);
    assert_eq!(walked.outcomes, straight.outcomes);
    // Over the shorter half of all pairs that are near in space there are ways. The policy, hardly
    // trained, gets nowhere on them, so that others are looked for; the same map gives the same.
    let all = RoadMap::new(&model, map.nodes(), Links { radius: 1e6, longest: 1e6 }).unwrap();
    let mut lengths: Vec<f32> = all.links().iter().map(|link| link.2).collect();
    lengths.sort_by(f32::total_cmp);
    let links = Links { radius: 25.0, longest: lengths[lengths.len() / 2] };
    let map = RoadMap::new(&model, map.nodes(), links).unwrap();
    let walked = model.evaluate_on(&map, world, &plan).unwrap();
    let Walked { no_way, replanned } = walked.walked.unwrap();
    assert!(no_way == 0 && replanned > 0, "{no_way} {replanned}");
    assert_eq!(model.evaluate_on(&map, world, &plan).unwrap(), walked);
}

#[test]
fn a_run_is_evaluated_on_maps_and_may_be_given_a_plan_later() {
    let scratch = tempfile::tempdir().unwrap();
    let plain = RunSettings::tiny_plane(Method::Cmd2, 0);
    let planned = RunSettings { plan: Some(SMALL), ..plain.clone() };
    let (folder, task) = run(&scratch.path().join("planned"), &planned);
    let text = planned.to_toml();
    assert!(text.contains("[plan]") && RunSettings::from_toml(&text).unwrap() == planned);
    let steps = |folder: &RunFolder| {
        let rows = read_evaluations(&folder.planned_file()).unwrap();
        rows.iter().map(|row| row.step).collect::<Vec<_>>()
    };
    assert_eq!(steps(&folder), [0, 15, 30]);
    let model = Model::load(&folder, false).unwrap();
    let kept = RoadMap::load(&folder.map_file(false), &model, &task).unwrap();
    assert_eq!(kept, RoadMap::of_data(&model, &task, &SMALL).unwrap());
    let best = Model::load(&folder, true).unwrap();
    RoadMap::load(&folder.map_file(true), &best, &task).unwrap();

    // The same run without, and with a plan when it is done.
    let (later, _) = run(&scratch.path().join("later"), &plain);
    assert!(!later.planned_file().exists() && !later.map_file(false).exists());
    let same = |file: fn(&RunFolder) -> std::path::PathBuf| {
        assert_eq!(std::fs::read(file(&later)).unwrap(), std::fs::read(file(&folder)).unwrap());
    };
    same(RunFolder::evaluations_file);
    run(&scratch.path().join("later"), &planned);
    assert_eq!(steps(&later), [30]);
    same(RunFolder::evaluations_file);
    same(|folder| folder.map_file(false));
    // And again: nothing is left to do.
    run(&scratch.path().join("later"), &planned);
    assert_eq!(steps(&later), [30]);
    // A method without a distance has no maps.
    let cloned = RunSettings { plan: Some(SMALL), ..RunSettings::tiny_plane(Method::Gcbc, 0) };
    let (folder, _) = run(&scratch.path().join("cloned"), &cloned);
    assert!(!folder.planned_file().exists());
}
