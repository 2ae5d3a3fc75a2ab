//! Q-learning finds optimal values and actions.

mod common;

use cm_baselines::{QLearning, QLearningSettings, Reward};
use cm_nn::{AdamSettings, DfdxBackend, Var};
use cm_policy::{ActorSettings, Extraction, PolicySettings};
use common::{World, check_repeats_and_resumes, network};

fn settings(reward: Reward) -> QLearningSettings {
    let adam = AdamSettings { learning_rate: 3e-3, ..Default::default() };
    let original = QLearningSettings::original();
    QLearningSettings {
        network: network(64),
        reward,
        discount: 0.8,
        adam,
        actor: ActorSettings {
            policy: PolicySettings { network: network(64), ..Default::default() },
            adam,
            // Keeps the policy from the flat ends of tanh until the critic is right.
            extraction: Extraction::DistanceMinimisation { bc_coef: 0.1 },
            ..original.actor
        },
        ..original
    }
}

fn solve(reward: Reward, value: impl Fn(i32) -> f32) {
    let backend = DfdxBackend::new(1);
    let world = World { strides: &[0.3, 0.6, 1.0], ..World::corridor(6) };
    let learner = QLearning::new(&backend, &settings(reward), &world.dimensions()).unwrap();
    world.train(&backend, &learner, 1500);

    let pairs = world.pairs();
    let (states, goals): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    let (state, goal) = (world.one_hot(&backend, &states), world.one_hot(&backend, &goals));
    let mut worst: f32 = 0.0;
    for choice in [0, 1] {
        let action = Var::full(&backend, [pairs.len(), 1], [-1.0, 1.0][choice]).unwrap();
        let learned = learner.action_value(&state, &action, &goal).unwrap().to_vec().unwrap();
        for (&(s, g), learned) in pairs.iter().zip(learned) {
            let steps = 1 + world.distance(world.next[s][choice], g) as i32;
            worst = worst.max((learned - value(steps)).abs());
        }
    }
    let mistakes = world.policy_mistakes(&backend, &learner);
    assert!(worst < 0.15, "{worst}");
    assert!(mistakes.is_empty(), "{mistakes:?}");
}

#[test]
fn a_cost_per_step_gives_discounted_hitting_times() {
    solve(Reward::StepCost, |steps| -(1.0 - 0.8_f32.powi(steps)) / 0.2);
}

#[test]
fn a_reward_at_the_goal_gives_its_discounted_time() {
    solve(Reward::Success, |steps| 0.8_f32.powi(steps - 1));
}

#[test]
fn repeats_and_resumes() {
    check_repeats_and_resumes(|backend| {
        let settings = QLearningSettings { other_goals: true, ..settings(Reward::StepCost) };
        QLearning::new(backend, &settings, &World::corridor(5).dimensions()).unwrap()
    });
}
