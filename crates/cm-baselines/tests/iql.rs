//! IQL finds the expectile's fixed point, which tends to the optimum.

mod common;

use cm_baselines::{Iql, IqlSettings};
use cm_nn::{AdamSettings, DfdxBackend};
use cm_policy::PolicySettings;
use common::{World, check_repeats_and_resumes, network};

const DISCOUNT: f64 = 0.8;

fn settings(expectile: f32) -> IqlSettings {
    let adam = AdamSettings { learning_rate: 3e-3, ..Default::default() };
    IqlSettings {
        network: network(64),
        discount: DISCOUNT as f32,
        expectile,
        target_decay: 0.95,
        value_adam: adam,
        critic_adam: adam,
        policy: PolicySettings { network: network(64), ..Default::default() },
        policy_adam: adam,
        ..IqlSettings::antmaze()
    }
}

/// The solution of `V = expectile over actions of Q`, `Q = -1 + discount V'` for two equally
/// frequent actions, where the expectile of `a >= b` is `expectile a + (1 - expectile) b`.
fn fixed_point(world: &World, expectile: f64) -> Vec<Vec<f64>> {
    let n = world.states();
    let mut values = vec![vec![0.0; n]; n];
    for _ in 0..200 {
        for (s, g) in world.pairs() {
            let q = world.next[s].map(|next| match next == g {
                true => -1.0,
                false => -1.0 + DISCOUNT * values[next][g],
            });
            values[s][g] = expectile * q[0].max(q[1]) + (1.0 - expectile) * q[0].min(q[1]);
        }
    }
    values
}

fn solve(expectile: f32) -> f64 {
    let backend = DfdxBackend::new(1);
    let world = World { strides: &[0.5], ..World::corridor(6) };
    let learner = Iql::new(&backend, &settings(expectile), &world.dimensions()).unwrap();
    world.train(&backend, &learner, 1500);

    let pairs = world.pairs();
    let (states, goals): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    let (state, goal) = (world.one_hot(&backend, &states), world.one_hot(&backend, &goals));
    let learned = learner.value(&state, &goal).unwrap().to_vec().unwrap();
    let exact = fixed_point(&world, f64::from(expectile));
    let (mut worst, mut from_optimum) = (0.0_f64, 0.0_f64);
    for (&(s, g), learned) in pairs.iter().zip(learned) {
        let optimum = -(1.0 - DISCOUNT.powi(world.distance(s, g) as i32)) / (1.0 - DISCOUNT);
        worst = worst.max((f64::from(learned) - exact[s][g]).abs());
        from_optimum = from_optimum.max((f64::from(learned) - optimum).abs());
    }
    let mistakes = world.policy_mistakes(&backend, &learner);
    assert!(worst < 0.05, "{worst}");
    assert!(mistakes.is_empty(), "{mistakes:?}");
    from_optimum
}

#[test]
fn values_are_the_fixed_point_of_the_expectile() {
    let from_optimum = solve(0.8);
    assert!(from_optimum > 0.2, "an expectile of 0.8 is not the optimum: {from_optimum}");
}

#[test]
fn values_tend_to_the_optimum_as_the_expectile_tends_to_one() {
    let from_optimum = solve(0.98);
    assert!(from_optimum < 0.15, "{from_optimum}");
}

#[test]
fn repeats_and_resumes() {
    check_repeats_and_resumes(|backend| {
        Iql::new(backend, &settings(0.9), &World::corridor(5).dimensions()).unwrap()
    });
}
