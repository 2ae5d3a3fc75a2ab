//! QRL finds shortest ways.

mod common;

use cm_baselines::{
    DualOptimiser, HeadSettings, MetricSettings, Qrl, QrlSettings, TransitionSettings,
};
use cm_nn::{AdamSettings, DfdxBackend, MlpSettings};
use cm_policy::{
    ActorSettings, BehaviourCloning, Extraction, FeatureSettings, PolicyGoals, PolicySettings,
};
use common::{World, check_repeats_and_resumes, network};

fn settings() -> QrlSettings {
    let adam = |learning_rate| AdamSettings { learning_rate, ..Default::default() };
    QrlSettings {
        features: FeatureSettings::Raw,
        metric: MetricSettings {
            head: HeadSettings::Iqe { groups: 8 },
            features: 64,
            network: network(64),
        },
        transition: TransitionSettings::ActionInput,
        margin: 0.0025,
        dual_optimiser: DualOptimiser::Adam(adam(0.03)),
        adam: adam(3e-3),
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

/// The learned distances as ratios to the lengths of shortest ways.
fn ratios(world: &World, qrl: &Qrl<DfdxBackend>, backend: &DfdxBackend) -> Vec<f32> {
    let pairs = world.pairs();
    let (states, goals): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    let (states, goals) = (world.one_hot(backend, &states), world.one_hot(backend, &goals));
    let learned = qrl.state_distance(&states, &goals).unwrap().to_vec().unwrap();
    let exact = pairs.iter().map(|&(s, g)| world.distance(s, g) as f32);
    learned.iter().zip(exact).map(|(learned, exact)| learned / exact).collect()
}

fn solve(settings: QrlSettings, steps: usize) {
    let backend = DfdxBackend::new(1);
    let world = World::one_way(8);
    let qrl = Qrl::new(&backend, 1, &settings, &world.dimensions()).unwrap();
    world.train(&backend, &qrl, steps);
    let ratios = ratios(&world, &qrl, &backend);
    let mistakes = world.policy_mistakes(&backend, &qrl);
    println!("{ratios:.2?}\n{mistakes:?}");
    assert!(ratios.iter().all(|ratio| (0.9..1.1).contains(ratio)), "{ratios:.2?}");
    assert!(mistakes.is_empty(), "{mistakes:?}");
}

#[test]
fn finds_shortest_ways_with_actions_as_input() {
    solve(settings(), 1500);
}

#[test]
fn finds_shortest_ways_with_a_latent_transition() {
    let transition = TransitionSettings::Latent {
        size: 16,
        encoder: MlpSettings { hidden: vec![], ..Default::default() },
        residual: network(64),
    };
    let head = HeadSettings::Max;
    let metric = MetricSettings { head, ..settings().metric };
    solve(QrlSettings { transition, metric, ..settings() }, 1500);
}

#[test]
fn repeats_and_resumes() {
    check_repeats_and_resumes(|backend, seed| {
        Qrl::new(backend, seed, &settings(), &World::ring(5).dimensions()).unwrap()
    });
}
