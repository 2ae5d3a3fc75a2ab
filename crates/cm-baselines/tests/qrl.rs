//! QRL finds shortest ways.

mod common;

use cm_baselines::{Qrl, QrlSettings, TransitionSettings};
use cm_learner::DualOptimiser;
use cm_learner::{Dimensions, FeatureSettings, Learner, StateDistance};
use cm_nn::{AdamSettings, DfdxBackend, Head, MlpSettings, QuasimetricSettings, Var};
use cm_policy::{ActorSettings, BehaviourCloning, Extraction, PolicyGoals, PolicySettings};
use common::{World, check_repeats_and_resumes, network};

fn settings(learning_rate: f32) -> QrlSettings {
    let adam = |learning_rate| AdamSettings { learning_rate, ..Default::default() };
    QrlSettings {
        features: FeatureSettings::Raw,
        quasimetric: QuasimetricSettings {
            features: 64,
            network: network(64),
            ..Default::default()
        },
        transition_weight: 0.1,
        margin: 0.0025,
        dual_optimiser: DualOptimiser::Adam(adam(0.03)),
        adam: adam(learning_rate),
        actor: ActorSettings {
            policy: PolicySettings { network: network(64), ..Default::default() },
            adam: adam(3e-3),
            extraction: Extraction::DistanceMinimisation { bc_coef: 0.1 },
            behaviour_cloning: BehaviourCloning::Mse,
            mixup: None,
            goals: PolicyGoals::Permuted,
            sampled: false,
        },
        ..QrlSettings::plane()
    }
}

fn latent(settings: QrlSettings) -> QrlSettings {
    let linear = MlpSettings { hidden: vec![], ..Default::default() };
    QrlSettings {
        transition: TransitionSettings::Latent {
            size: 16,
            encoder: linear.clone(),
            residual: network(64),
        },
        quasimetric: QuasimetricSettings {
            head: Head::Max,
            features: 64,
            separate: false,
            network: linear,
        },
        ..settings
    }
}

/// Trains first with large, then with small steps and compares with the lengths of shortest ways.
fn solve(world: World, settings: impl Fn(f32) -> QrlSettings) {
    let backend = DfdxBackend::new(1);
    let world = World { strides: &[0.5, 1.0], ..world };
    let make = |rate| Qrl::new(&backend, &settings(rate), &world.dimensions()).unwrap();
    let (coarse, fine) = (make(0.01), make(0.001));
    world.train(&backend, &coarse, 800);
    fine.restore(0, &coarse.snapshot(0).unwrap()).unwrap();
    world.train(&backend, &fine, 400);

    let pairs = world.pairs();
    let (states, goals): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    let (state, goal) = (world.one_hot(&backend, &states), world.one_hot(&backend, &goals));
    let learned = fine.state_distance(&state, &goal).unwrap().to_vec().unwrap();
    for (&(s, g), learned) in pairs.iter().zip(learned) {
        // The margin lets a transition be about 1.05 long.
        let ratio = learned / world.distance(s, g) as f32;
        assert!((0.95..1.15).contains(&ratio), "from {s} to {g}: {ratio} of the shortest way");
    }
    let mistakes = world.policy_mistakes(&backend, &fine);
    assert!(mistakes.is_empty(), "{mistakes:?}");
}

#[test]
fn finds_shortest_ways_with_actions_as_input() {
    solve(World::one_way(4), settings);
}

#[test]
fn finds_shortest_ways_with_a_latent_transition() {
    solve(World::slide(6), |learning_rate| latent(settings(learning_rate)));
}

#[test]
fn repeats_and_resumes() {
    let dimensions = World::corridor(5).dimensions();
    check_repeats_and_resumes(|backend| Qrl::new(backend, &settings(0.01), &dimensions).unwrap());
    check_repeats_and_resumes(|backend| {
        let sgd = DualOptimiser::Sgd { learning_rate: 0.01 };
        let settings = QrlSettings { dual_optimiser: sgd, ..latent(settings(0.01)) };
        Qrl::new(backend, &settings, &dimensions).unwrap()
    });
}

#[test]
fn distances_with_fixed_weights_are_the_same_for_every_transition() {
    let backend = DfdxBackend::new(3);
    let dimensions = Dimensions::new(2, 2, 0..2).unwrap();
    let residual = network(16);
    let features =
        QrlSettings { transition: TransitionSettings::Features { residual }, ..settings(1e-3) };
    let normed = MlpSettings { layer_norm: true, ..network(16) };
    for settings in [settings(1e-3), latent(settings(1e-3)), features] {
        let qrl = Qrl::new(&backend, &settings, &dimensions).unwrap();
        let fixed = qrl.fixed().unwrap().unwrap();
        let states = [0.5, -1.0, 2.0, 0.25];
        let wanted = qrl.points(&Var::new(&backend, [2, 2], states.to_vec()).unwrap()).unwrap();
        let mut points = Vec::new();
        states.chunks(2).for_each(|state| fixed.point(state, &mut points).unwrap());
        let close = |a: f32, b: f32| (a - b).abs() <= 1e-5;
        assert!(points.iter().zip(wanted.to_vec().unwrap()).all(|(&a, b)| close(a, b)));
        let (from, to) = points.split_at(fixed.columns());
        let pairs = qrl.pairs(&wanted, &wanted).unwrap().to_vec().unwrap();
        assert!(close(fixed.distance(from, to).unwrap(), pairs[1]));
        assert_eq!(fixed.distance(from, from).unwrap(), 0.0);
        // Points and states of other sizes.
        let message = fixed.distance(from, &to[1..]).unwrap_err().to_string();
        assert!(message.contains("fixed distance"), "{message}");
        assert!(fixed.point(&[0.0; 99], &mut points).is_err());
        // Layer norms have no such form.
        let quasimetric = QuasimetricSettings { network: normed.clone(), ..settings.quasimetric };
        let settings = QrlSettings { quasimetric, ..settings };
        assert!(Qrl::new(&backend, &settings, &dimensions).unwrap().fixed().unwrap().is_none());
    }
}
