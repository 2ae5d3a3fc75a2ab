//! Goals come with exactly the probabilities they should have.

mod chance;

use std::collections::HashMap;

use chance::{assert_unsurprising, data, surprise};
use cm_random::{Philox, unit_f64};
use cm_replay::{Batch, BatchMut, End, Error, Goals, Sampler, TruncatedGeometric};
use proptest::prelude::*;
use rand_core::Rng;

/// `weight(j - first)` for each of `count` offsets, normalised.
fn normalised(count: usize, weight: impl Fn(usize) -> f64) -> Vec<f64> {
    let weights: Vec<f64> = (0..count).map(weight).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

#[test]
fn truncated_geometric_draws_have_their_probabilities() {
    for (gamma, horizon) in [(0.5, 1), (0.5, 2), (0.3, 10), (0.9, 7), (0.99, 1000), (0.999, 50)] {
        let offsets = TruncatedGeometric::new(gamma, horizon).unwrap();
        let exact = normalised(horizon as usize, |offset| f64::powi(gamma, offset as i32));
        for (offset, probability) in (1..).zip(&exact) {
            assert!((offsets.probability(offset) / probability - 1.0).abs() < 1e-12);
        }
        let surprises: Vec<f64> = (0..20)
            .map(|seed| {
                let mut stream = Philox::new(seed).stream(0, 0);
                let mut counts = vec![0.0; horizon as usize];
                for _ in 0..20_000 {
                    let offset = offsets.offset_at(unit_f64(stream.next_u64()));
                    counts[offset as usize - 1] += 1.0;
                }
                surprise(&counts, &exact)
            })
            .collect();
        assert_unsurprising(&surprises);
    }
}

proptest! {
    /// Inversion: the offset of `u` is where the cumulative distribution passes `u`.
    #[test]
    fn inversion_is_exact_for_any_horizon(
        log_miss in -12.0_f64..-0.05,
        log_horizon in 0.0_f64..17.0,
        u in 0.0_f64..1.0,
    ) {
        let gamma = 1.0 - 10_f64.powf(log_miss);
        let horizon = 10_f64.powf(log_horizon) as u64;
        let offset = TruncatedGeometric::new(gamma, horizon).unwrap().offset_at(u);
        prop_assert!((1..=horizon).contains(&offset));
        let cumulative = |k: u64| {
            let log = gamma.ln();
            (k as f64 * log).exp_m1() / (horizon as f64 * log).exp_m1()
        };
        prop_assert!(cumulative(offset - 1) <= u * (1.0 + 1e-9) + 1e-15);
        prop_assert!(cumulative(offset) >= u * (1.0 - 1e-9) - 1e-15 || offset == horizon);
    }
}

#[test]
fn refuses_settings_that_mean_nothing() {
    for gamma in [0.0, 1.0, -0.5, 2.0, f64::NAN] {
        assert!(matches!(TruncatedGeometric::new(gamma, 3), Err(Error::Parameter { .. })));
        assert!(Sampler::new(data(&[3]), Goals::geometric(gamma), 0).is_err());
    }
    assert!(TruncatedGeometric::new(0.5, 0).is_err());
    for (uniform_future, random) in [(-0.1, 0.0), (0.6, 0.6), (f32::NAN, 0.0), (0.0, 1.1)] {
        let goals = Goals { uniform_future, random, ..Goals::geometric(0.9) };
        let error = Sampler::new(data(&[3]), goals, 0).unwrap_err();
        assert!(error.to_string().contains("together at most 1"), "{error}");
    }
}

/// How often each (step, goal) pair is drawn.
fn pairs(sampler: &Sampler, draws: usize) -> HashMap<(usize, usize), f64> {
    let mut batch = Batch::new(sampler.data(), 1000);
    let mut counts = HashMap::new();
    for step in 0..draws as u64 / 1000 {
        sampler.fill(step, &mut batch).unwrap();
        for (&step, &goal) in batch.steps.iter().zip(&batch.goal_steps) {
            *counts.entry((step, goal)).or_insert(0.0) += 1.0;
        }
    }
    counts
}

/// `probability(i, j, last)` of a goal `j` for every step `i` with a next one, against what is
/// drawn.
fn assert_pairs(lengths: &[usize], goals: Goals, probability: impl Fn(usize, usize, usize) -> f64) {
    let data = data(lengths);
    let surprises: Vec<f64> = (0..12)
        .map(|seed| {
            let sampler = Sampler::new(data.clone(), goals, seed).unwrap();
            let mut counts = pairs(&sampler, 60_000);
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            for trajectory in 0..data.trajectories() {
                let rows = data.trajectory(trajectory);
                for step in rows.start..rows.end - 1 {
                    for goal in 0..data.steps() {
                        let probability =
                            probability(step, goal, rows.end - 1) / data.transitions() as f64;
                        if probability > 0.0 {
                            found.push(counts.remove(&(step, goal)).unwrap_or(0.0));
                            expected.push(probability);
                        }
                    }
                }
            }
            assert!(counts.is_empty(), "drew what has no probability: {counts:?}");
            assert!((expected.iter().sum::<f64>() - 1.0).abs() < 1e-6);
            surprise(&found, &expected)
        })
        .collect();
    assert_unsurprising(&surprises);
}

const LENGTHS: [usize; 7] = [1, 2, 1, 1, 3, 30, 1];

#[test]
fn geometric_goals_lie_ahead_in_the_same_trajectory() {
    for gamma in [0.5_f64, 0.9, 0.99] {
        assert_pairs(&LENGTHS, Goals::geometric(gamma), |step, goal, last| {
            if goal <= step || goal > last {
                return 0.0;
            }
            normalised(last - step, |offset| gamma.powi(offset as i32))[goal - step - 1]
        });
    }
}

#[test]
fn geometric_goals_can_start_at_the_step_itself() {
    let gamma = 0.8_f64;
    let goals = |end| Goals { include_current: true, end, ..Goals::geometric(gamma) };
    assert_pairs(&LENGTHS, goals(End::Truncate), |step, goal, last| {
        if goal < step || goal > last {
            return 0.0;
        }
        normalised(last - step + 1, |offset| gamma.powi(offset as i32))[goal - step]
    });
    assert_pairs(&LENGTHS, goals(End::Clip), |step, goal, last| match goal {
        _ if goal < step || goal > last => 0.0,
        // All the weight from the last step on.
        _ if goal == last => gamma.powi((goal - step) as i32),
        _ => (1.0 - gamma) * gamma.powi((goal - step) as i32),
    });
}

/// The offset has its weight whatever the trajectories' lengths, and every step that has a goal so
/// far ahead the same share of it.
#[test]
fn balanced_goals_are_as_far_ahead_as_without_ends() {
    let lengths = [1, 12, 1, 20, 16, 2, 20];
    for (gamma, include_current) in [(0.5_f64, false), (0.9, false), (0.9, true), (0.99, true)] {
        let first = usize::from(!include_current);
        let steps = |lag: usize| {
            lengths.iter().map(|length: &usize| length.saturating_sub(lag.max(1))).sum::<usize>()
        };
        let weight = |at: usize| {
            let rare = (10.0 * steps(first + at) as f64 / steps(1) as f64).min(1.0);
            gamma.powi((first + at) as i32) * rare
        };
        let lags = normalised(20 - first, weight);
        let goals = Goals { end: End::Balance, include_current, ..Goals::geometric(gamma) };
        assert_pairs(&lengths, goals, |step, goal, last| {
            if goal < step + first || goal > last {
                return 0.0;
            }
            let lag = goal - step;
            lags[lag - first] * steps(1) as f64 / steps(lag) as f64
        });
    }
}

#[test]
fn goals_mix_by_probability() {
    let goals = Goals { uniform_future: 0.3, random: 0.2, ..Goals::geometric(0.9) };
    let rows: usize = LENGTHS.iter().sum();
    assert_pairs(&LENGTHS, goals, |step, goal, last| {
        let future = f64::from(u8::from(goal > step && goal <= last));
        let offset = goal.saturating_sub(step + 1);
        let geometric = normalised(last - step, |offset| 0.9_f64.powi(offset as i32));
        let geometric = geometric.get(offset).unwrap_or(&0.0);
        f64::from(0.2_f32) / rows as f64
            + future * (f64::from(0.3_f32) / (last - step) as f64 + 0.5 * geometric)
    });
}

#[test]
fn long_trajectories_give_their_far_goals_too() {
    let length = 3000;
    let gamma = 0.999_f64;
    let sampler = Sampler::new(data(&[length]), Goals::geometric(gamma), 4).unwrap();
    let mut counts = vec![0.0; length];
    for ((step, goal), count) in pairs(&sampler, 400_000) {
        counts[goal - step] += count;
    }
    let mut expected = vec![0.0; length];
    for step in 0..length - 1 {
        let offsets = TruncatedGeometric::new(gamma, (length - 1 - step) as u64).unwrap();
        for (offset, expected) in expected.iter_mut().enumerate() {
            *expected += offsets.probability(offset as u64) / (length - 1) as f64;
        }
    }
    assert!(surprise(&counts[1..], &expected[1..]).abs() < 4.5);
    assert!(counts[2000..].iter().sum::<f64>() > 1000.0);
}

#[test]
fn a_selection_is_all_that_is_drawn() {
    let data = data(&[4, 5, 6, 1, 3]);
    let goals = Goals { random: 0.5, ..Goals::geometric(0.9) };
    let sampler = Sampler::of_trajectories(data.clone(), &[3, 1], goals, 0).unwrap();
    assert_eq!(sampler.transitions(), 4);
    let counts = pairs(&sampler, 20_000);
    let steps: std::collections::BTreeSet<usize> = counts.keys().map(|pair| pair.0).collect();
    let goals: std::collections::BTreeSet<usize> = counts.keys().map(|pair| pair.1).collect();
    assert_eq!(steps.into_iter().collect::<Vec<_>>(), [4, 5, 6, 7]);
    assert_eq!(goals.into_iter().collect::<Vec<_>>(), [4, 5, 6, 7, 8, 15]);

    let error = Sampler::of_trajectories(data.clone(), &[3], goals_only(), 0).unwrap_err();
    assert!(matches!(error, Error::NoTransitions { trajectories: 1 }));
    let error = Sampler::of_trajectories(data, &[9], goals_only(), 0).unwrap_err();
    assert!(error.to_string().contains("no trajectory 9, there are 5"), "{error}");
}

fn goals_only() -> Goals {
    Goals::geometric(0.9)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Over any cut into trajectories: what a batch holds is what its steps say, goals stay in the
    /// trajectory, every transition occurs.
    #[test]
    fn batches_hold_what_their_steps_say(
        lengths in prop::collection::vec(1_usize..20, 1..30),
        seed: u64,
        step: u64,
    ) {
        let data = data(&lengths);
        prop_assume!(data.transitions() > 0);
        let sampler = Sampler::new(data.clone(), Goals::geometric(0.9), seed).unwrap();
        let mut batch = Batch::new(&data, 60 * data.transitions());
        sampler.fill(step, &mut batch).unwrap();
        let mut drawn = vec![false; data.steps()];
        for row in 0..batch.steps.len() {
            let (step, goal) = (batch.steps[row], batch.goal_steps[row]);
            let end = *data.ends().iter().find(|&&end| end > step).unwrap();
            prop_assert!(step < goal && goal < end);
            prop_assert_eq!(batch.observations[row], step as f32);
            prop_assert_eq!(batch.actions[row], step as f32);
            prop_assert_eq!(batch.next_observations[row], step as f32 + 1.0);
            prop_assert_eq!(batch.goals[row], goal as f32);
            prop_assert_eq!(batch.goal_actions[row], goal as f32);
            drawn[step] = true;
        }
        // Each of the transitions is missed with probability e^-60.
        prop_assert_eq!(drawn.iter().filter(|drawn| **drawn).count(), data.transitions());
    }

    #[test]
    fn a_row_depends_on_nothing_but_data_seed_step_and_row(
        seed: u64,
        step: u64,
        threads in 1_usize..5,
        rows in 1_usize..5000,
    ) {
        let data = data(&[50, 1, 700, 3]);
        let goals = Goals { uniform_future: 0.2, random: 0.3, ..Goals::geometric(0.99) };
        let sampler = Sampler::new(data.clone(), goals, seed).unwrap();
        let mut whole = Batch::new(&data, 5000);
        sampler.fill(step, &mut whole).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut part = Batch::new(&data, rows);
        pool.install(|| sampler.fill(step, &mut part)).unwrap();
        prop_assert_eq!(&part.steps, &whole.steps[..rows]);
        prop_assert_eq!(&part.goal_steps, &whole.goal_steps[..rows]);
        prop_assert_eq!(&part.goals, &whole.goals[..rows]);
    }
}

#[test]
fn unwanted_buffers_may_be_empty_and_wrong_ones_are_refused() {
    let data = data(&[10, 10]);
    let sampler = Sampler::new(data.clone(), Goals::geometric(0.9), 1).unwrap();
    let mut whole = Batch::new(&data, 2000);
    sampler.fill(5, &mut whole).unwrap();
    let (mut steps, mut goal_steps, mut goals) = (vec![0; 2000], vec![0; 2000], vec![0.0; 2000]);
    let buffers = BatchMut {
        steps: &mut steps,
        goal_steps: &mut goal_steps,
        goals: &mut goals,
        ..BatchMut::default()
    };
    sampler.fill_buffers(5, buffers).unwrap();
    assert_eq!((steps, goals), (whole.steps.clone(), whole.goals.clone()));

    whole.actions.pop();
    let message = sampler.fill(5, &mut whole).unwrap_err().to_string();
    assert_eq!(message, "the buffer `actions` holds 1999 numbers, expected 2000");
}

/// Numbers another backend is held to, worked out from the documentation of `Sampler` in a few
/// lines of Python.
#[test]
fn draws_these_very_steps() {
    let data = data(&[1000; 10]);
    let goals = Goals { uniform_future: 0.2, random: 0.2, ..Goals::geometric(0.99) };
    let sampler = Sampler::new(data.clone(), goals, 7).unwrap();
    let mut batch = Batch::new(&data, 6);
    sampler.fill(3, &mut batch).unwrap();
    assert_eq!(batch.steps, [1237, 4598, 9179, 5891, 5395, 4349]);
    assert_eq!(batch.goal_steps, [1329, 4808, 9221, 5898, 6161, 4410]);
}

#[test]
fn settings_files_hold_goals() {
    let plane = Goals { include_current: true, end: End::Clip, ..Goals::geometric(0.8) };
    let text = "\
gamma = 0.8
include_current = true
end = \"clip\"
uniform_future = 0.0
random = 0.0
";
    assert_eq!(toml::to_string(&plane).unwrap(), text);
    assert_eq!(toml::from_str::<Goals>(text).unwrap(), plane);
    assert_eq!(toml::from_str::<Goals>("").unwrap(), Goals::geometric(0.99));
    let truncated = toml::from_str::<Goals>("gamma = 0.5\nend = \"truncate\"").unwrap();
    assert_eq!(truncated, Goals::geometric(0.5));
    let error = toml::from_str::<Goals>("discount = 0.5").unwrap_err().to_string();
    assert!(error.contains("discount") && error.contains("gamma"), "{error}");
}
