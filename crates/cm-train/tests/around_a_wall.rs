//! A policy that always goes straight at what it is sent to stands before a wall; on a road map it
//! goes around. Nothing is learned: the weights are written down.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use cm_baselines::QrlSettings;
use cm_envs::{Env, Rollout};
use cm_learner::FeatureSettings;
use cm_nn::{Activation, Matrix, MlpSettings, QuasimetricSettings, Snapshot};
use cm_policy::PolicyKind;
use cm_random::{Stream, unit_f32};
use cm_replay::{Dataset, Matrix as Rows};
use cm_train::{
    DataTask, Device, HeldOut, Method, MethodSettings, Model, PlanSettings, ReadOut, RoadMap,
    RunFolder, RunSettings, Task, train,
};
use rand_core::Rng;

/// How far a step goes, and how near a goal is reached.
const STEP: f32 = 0.5;
/// The wall: from 4 to 6, below 14.
const WALL: ([f32; 2], f32) = ([4.0, 6.0], 14.0);

/// Two lanes, left and right of a wall that leaves a gap above.
#[derive(Debug)]
struct Wall;

struct Episode {
    at: [f32; 2],
    goal: [f32; 2],
}

impl Env for Wall {
    type Episode = Episode;

    fn name(&self) -> &str {
        "wall"
    }

    fn observation_width(&self) -> usize {
        2
    }

    fn action_width(&self) -> usize {
        2
    }

    fn goal_columns(&self) -> Range<usize> {
        0..2
    }

    fn horizon(&self) -> usize {
        200
    }

    fn begin(&self, mut random: Stream) -> Result<Episode, cm_envs::Error> {
        let mut height = || 1.0 + 3.0 * unit_f32(random.next_u32());
        let (here, there) = ([2.0, height()], [8.0, height()]);
        let (at, goal) = match random.next_u32().is_multiple_of(2) {
            true => (here, there),
            false => (there, here),
        };
        Ok(Episode { at, goal })
    }

    fn observe(&self, episode: &mut Episode, observation: &mut [f32]) {
        observation.copy_from_slice(&episode.at);
    }

    fn goal(&self, episode: &Episode, goal: &mut [f32]) {
        goal.copy_from_slice(&episode.goal);
    }

    /// What leads into the wall slides along it.
    fn step(&self, episode: &mut Episode, action: &[f32]) -> Result<(), cm_envs::Error> {
        let [x, y] = episode.at;
        let [to_x, to_y] = [x + STEP * action[0], y + STEP * action[1]];
        let ([left, right], top) = WALL;
        let free = |[x, y]: [f32; 2]| x < left || x > right || y > top;
        let ways = [[to_x, to_y], [x, to_y], [to_x, y]];
        episode.at = ways.into_iter().find(|&to| free(to)).unwrap_or([x, y]);
        Ok(())
    }

    fn succeeded(&self, episode: &Episode) -> bool {
        between(episode.at, episode.goal) <= STEP
    }

    fn position(&self, episode: &Episode) -> [f32; 2] {
        episode.at
    }
}

fn between(a: [f32; 2], b: [f32; 2]) -> f32 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

/// Walks around the wall, there and back, in lanes beside each other.
fn data() -> Dataset {
    let (mut states, mut actions, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for walk in 0..40 {
        let lane = 0.1 * (walk / 2 % 10) as f32;
        let above = WALL.1 + 0.5 + lane;
        let mut corners = vec![[2.0 + lane, 0.5], [2.0 + lane, above]];
        corners.extend([[8.0 - lane, above], [8.0 - lane, 0.5]]);
        if walk % 2 == 1 {
            corners.reverse();
        }
        let mut at = corners[0];
        states.extend(at);
        for corner in &corners[1..] {
            while between(at, *corner) > 1e-3 {
                let far = between(at, *corner);
                let part = (STEP / far).min(1.0);
                let moved = [0, 1].map(|side| part * (corner[side] - at[side]));
                actions.extend(moved.map(|moved| moved / STEP));
                at = [at[0] + moved[0], at[1] + moved[1]];
                states.extend(at);
            }
        }
        actions.extend([0.0; 2]);
        ends.push(states.len() / 2);
    }
    let rows = |numbers: Vec<f32>| Rows::from_vec(numbers.len() / 2, 2, numbers).unwrap();
    Dataset::new(rows(states), rows(actions), ends).unwrap()
}

/// A model whose distance is Euclid's and whose policy goes straight at its goal.
fn straight_ahead(folder: &Path) -> (Model, Task) {
    let file = folder.join("walks.cmdata");
    data().save(&file).unwrap();
    let linear = MlpSettings { hidden: Vec::new(), ..Default::default() };
    let mut qrl = QrlSettings {
        features: FeatureSettings::Raw,
        quasimetric: QuasimetricSettings { features: 4, network: linear, ..Default::default() },
        ..QrlSettings::plane()
    };
    let policy = &mut qrl.actor.policy;
    (policy.kind, policy.features) = (PolicyKind::UnitVector, FeatureSettings::Raw);
    policy.network = MlpSettings {
        hidden: vec![4],
        activation: Activation::Relu,
        layer_norm: false,
        ..Default::default()
    };
    let settings = RunSettings {
        steps: 1,
        batch: 16,
        read_out: ReadOut::NoAction,
        held_out: HeldOut { share: 0.1, ..HeldOut::default() },
        task: DataTask { file: file.clone(), goal: None, scale: false }.into(),
        method: MethodSettings::Qrl(qrl),
        ..RunSettings::own_data(Method::Qrl, file)
    };
    let (run, task) = (RunFolder::new(folder.join("run")), settings.task.open().unwrap());
    train(Device::Cpu, &settings, &task, &run, &AtomicBool::new(false), |_| {}).unwrap();

    let file = run.model_file();
    let mut weights = Snapshot::load_safetensors(&file).unwrap();
    let zeros = weights.iter().map(|(name, matrix)| {
        (name.to_owned(), Matrix { shape: matrix.shape, values: vec![0.0; matrix.values.len()] })
    });
    let zeros: Vec<_> = zeros.filter(|(name, _)| !name.starts_with("scaling/")).collect();
    weights.extend(zeros);
    let mut set = |name: &str, shape: [usize; 2], ones: &[(usize, usize, f32)]| {
        let known = weights.get(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(known.shape, shape, "{name}");
        let mut values = vec![0.0; shape[0] * shape[1]];
        ones.iter().for_each(|&(row, column, one)| values[row * shape[1] + column] = one);
        weights.extend([(name.to_owned(), Matrix { shape, values })]);
    };
    // The first half of the features is compared by Euclid's distance. The network sees a state and
    // an action.
    set("quasimetric/encoder/linear_0/w", [4, 4], &[(0, 0, 1.0), (1, 1, 1.0)]);
    // Goal less state, its positive and its negative part.
    let parts = |side: usize| {
        let (state, goal, unit) = (side, 2 + side, 2 * side);
        [(goal, unit, 1.0), (state, unit, -1.0), (goal, unit + 1, -1.0), (state, unit + 1, 1.0)]
    };
    set("policy/mlp/linear_0/w", [4, 4], &[parts(0), parts(1)].concat());
    let joined = [(0, 0, 1.0), (1, 0, -1.0), (2, 1, 1.0), (3, 1, -1.0)];
    set("policy/mean/w", [4, 2], &joined);
    weights.save_safetensors(&file).unwrap();
    (Model::load(&run, false).unwrap(), task)
}

#[test]
fn going_straight_fails_and_walking_the_map_succeeds() {
    let scratch = tempfile::tempdir().unwrap();
    let (model, task) = straight_ahead(scratch.path());
    let distance = model.distances(&[1.0, 2.0], &[4.0, 6.0]).unwrap()[0];
    assert!((distance - 5.0).abs() < 1e-4, "{distance}");
    // Less far than it is through the wall.
    let settings = PlanSettings { reach: Some(3.0), ..PlanSettings::default() };
    let map = RoadMap::of_data(&model, &task, &settings).unwrap();
    let plan = Rollout { episodes: 20, seed: 0, paths: 20 };
    let straight = model.evaluate(&Wall, &plan).unwrap();
    assert_eq!(straight.success, 0.0);
    // All came to the wall, and none around it.
    for outcome in &straight.outcomes {
        let (start, end) = (outcome.path[0], outcome.path[outcome.path.len() - 1]);
        assert!((start[0] - end[0]).abs() > 1.4 && end[1] < WALL.1, "{start:?} {end:?}");
    }
    let walked = model.evaluate_on(&map, &Wall, &plan).unwrap();
    assert_eq!(walked.success, 1.0, "{:?}", walked.walked);
    assert_eq!(walked.walked.unwrap().no_way, 0);
    for outcome in &walked.outcomes {
        assert!(outcome.path.iter().any(|at| (4.0..6.0).contains(&at[0]) && at[1] > WALL.1));
    }
    assert_eq!(model.evaluate_on(&map, &Wall, &plan).unwrap(), walked);
}

/// Euclid's distance goes through the wall, and walks around it take far longer than it says: those
/// that were held out show it, so that the policy is not sent as far as it would be.
#[test]
fn a_distance_that_does_not_see_the_wall_is_trusted_less_far() {
    let scratch = tempfile::tempdir().unwrap();
    let (model, task) = straight_ahead(scratch.path());
    let map = RoadMap::of_data(&model, &task, &PlanSettings::default()).unwrap();
    let trust = map.trust().unwrap();
    let [link, reach] = map.lengths();
    assert_eq!((trust.trajectories, trust.unseen, trust.reach), (4, true, reach));
    // Links are of five steps, which nothing contradicts.
    let steps = trust.steps(link).unwrap().about;
    assert!((link - 2.5).abs() < 0.1 && (4.0..7.5).contains(&steps), "{link} {steps}");
    // The policy would be sent fifteen steps ahead.
    assert!((trust.wanted - 15.0 * STEP).abs() < 0.1, "{}", trust.wanted);
    assert!(reach < 0.9 * trust.wanted && reach >= link, "{trust}");
    // Nobody contradicts what a user asks for.
    let settings = PlanSettings { reach: Some(7.0), ..PlanSettings::default() };
    let map = RoadMap::of_data(&model, &task, &settings).unwrap();
    assert_eq!((map.lengths()[1], map.trust().unwrap().wanted), (7.0, 7.0));
}
