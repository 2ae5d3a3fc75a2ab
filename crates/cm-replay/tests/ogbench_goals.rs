//! Goals as OGBench draws them have exactly the probabilities of its rules.

mod chance;

use std::collections::HashMap;

use chance::{assert_unsurprising, data, surprise};
use cm_replay::{Batch, End, Goals, MixedGoals, Prefetcher, Sampler};

/// A trajectory of two rows has one step and no goal but itself.
const LENGTHS: [usize; 5] = [2, 1, 3, 12, 5];
const GAMMA: f64 = 0.8;

/// What a goal of each kind is, for step `i` of a trajectory whose last row but one is `f`.
struct Rules {
    /// Every row with a next one.
    valid: Vec<usize>,
}

impl Rules {
    fn new() -> Self {
        let data = data(&LENGTHS);
        let rows = (0..data.trajectories()).flat_map(|trajectory| {
            let rows = data.trajectory(trajectory);
            rows.start..rows.end - 1
        });
        Self { valid: rows.collect() }
    }

    fn current(&self, i: usize, j: usize) -> f64 {
        f64::from(u8::from(i == j))
    }

    fn random(&self, j: usize) -> f64 {
        f64::from(u8::from(self.valid.contains(&j))) / self.valid.len() as f64
    }

    /// `min(i + G, f)`, `G = 1, 2, ...` with probability `(1 - gamma) gamma^(G - 1)`.
    fn geometric(&self, i: usize, j: usize, f: usize) -> f64 {
        match j {
            _ if j > f || j < i || (j == i && i < f) => 0.0,
            _ if j == f => GAMMA.powi((f - i) as i32 - 1).min(1.0),
            _ => (1.0 - GAMMA) * GAMMA.powi((j - i) as i32 - 1),
        }
    }

    /// Rounded between `min(i + 1, f)` and `f`: the two ends have half the weight of the others.
    fn uniform(&self, i: usize, j: usize, f: usize) -> f64 {
        let first = (i + 1).min(f);
        match f - first {
            _ if j < first || j > f => 0.0,
            0 => 1.0,
            width if j == first || j == f => 0.5 / width as f64,
            width => 1.0 / width as f64,
        }
    }
}

/// Which of a batch's columns of steps.
type Column = fn(&Batch) -> &[usize];

/// Counts `(step, chosen column)` and compares them with `probability(i, j, f)`.
fn assert_column(goals: Goals, column: Column, probability: impl Fn(usize, usize, usize) -> f64) {
    let data = data(&LENGTHS);
    let surprises = (0..12).map(|seed| {
        let sampler = Sampler::new(data.clone(), goals, seed).unwrap();
        let mut counts = HashMap::new();
        let mut batch = sampler.batch(1000);
        for step in 0..60 {
            sampler.fill(step, &mut batch).unwrap();
            for pair in batch.steps.iter().copied().zip(column(&batch).iter().copied()) {
                *counts.entry(pair).or_insert(0.0) += 1.0;
            }
        }
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        for trajectory in 0..data.trajectories() {
            let rows = data.trajectory(trajectory);
            for i in rows.start..rows.end - 1 {
                for j in 0..data.steps() {
                    let probability = probability(i, j, rows.end - 2) / data.transitions() as f64;
                    if probability > 0.0 {
                        found.push(counts.remove(&(i, j)).unwrap_or(0.0));
                        expected.push(probability);
                    }
                }
            }
        }
        assert!(counts.is_empty(), "drew what has no probability: {counts:?}");
        assert!((expected.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        surprise(&found, &expected)
    });
    assert_unsurprising(&surprises.collect::<Vec<_>>());
}

fn ogbench(current: f32, random: f32, actor: MixedGoals) -> Goals {
    let end = End::BeforeLast;
    Goals { end, current, random, actor: Some(actor), ..Goals::geometric(GAMMA) }
}

#[test]
fn value_goals_are_current_geometric_or_random() {
    let (rules, actor) = (Rules::new(), MixedGoals { random: 1.0, ..Default::default() });
    let goals = |current, random| ogbench(current, random, actor);
    assert_column(goals(0.0, 0.0), |batch| &batch.goal_steps, |i, j, f| rules.geometric(i, j, f));
    assert_column(goals(0.0, 1.0), |batch| &batch.goal_steps, |_, j, _| rules.random(j));
    assert_column(
        goals(0.25, 0.25),
        |batch| &batch.goal_steps,
        |i, j, f| {
            let own = 0.25 * rules.current(i, j);
            own + 0.25 * rules.random(j) + 0.5 * rules.geometric(i, j, f)
        },
    );
}

#[test]
fn actor_goals_are_uniform_ahead_or_random() {
    let rules = Rules::new();
    let goals = |uniform_future, random| {
        let actor = MixedGoals { uniform_future, random, current: 0.0 };
        ogbench(0.0, 0.0, actor)
    };
    let actor: Column = |batch| &batch.actor.steps;
    assert_column(goals(1.0, 0.0), actor, |i, j, f| rules.uniform(i, j, f));
    assert_column(goals(0.0, 1.0), actor, |_, j, _| rules.random(j));
    assert_column(goals(0.5, 0.5), actor, |i, j, f| {
        0.5 * rules.uniform(i, j, f) + 0.5 * rules.random(j)
    });
    assert_column(goals(0.0, 0.0), actor, |i, j, f| rules.geometric(i, j, f));
}

/// The value goals do not tell which goals the policy gets.
#[test]
fn value_and_actor_goals_are_independent() {
    let actor = MixedGoals { random: 0.5, uniform_future: 0.5, ..Default::default() };
    let goals = ogbench(0.5, 0.5, actor);
    let sampler = Sampler::new(data(&[40]), goals, 3).unwrap();
    let mut batch = sampler.batch(100_000);
    sampler.fill(0, &mut batch).unwrap();
    let is_own = |row: usize| batch.goal_steps[row] == batch.steps[row];
    let ahead = |row: usize| batch.actor.steps[row] > batch.steps[row];
    let mut counts = [[0.0; 2]; 2];
    for row in 0..batch.steps.len() {
        counts[usize::from(is_own(row))][usize::from(ahead(row))] += 1.0;
    }
    let odds: f64 = (counts[0][0] * counts[1][1]) / (counts[0][1] * counts[1][0]);
    assert!(odds.ln().abs() < 0.06, "{counts:?}");
}

/// HIQL's: low goals `k` ahead, targets on the way to the goal.
#[test]
fn subgoals_lie_on_the_way() {
    let actor = MixedGoals { uniform_future: 0.5, random: 0.5, ..Default::default() };
    let k = 3;
    let goals = Goals { subgoal_steps: k, ..ogbench(0.2, 0.3, actor) };
    let data = data(&LENGTHS);
    let sampler = Sampler::new(data.clone(), goals, 5).unwrap();
    assert_eq!(sampler.columns(), 5);
    let mut batch = sampler.batch(20_000);
    sampler.fill(9, &mut batch).unwrap();
    let mut seen = [0; 3];
    for row in 0..batch.steps.len() {
        let (step, goal) = (batch.steps[row], batch.actor.steps[row]);
        let end = *data.ends().iter().find(|&&end| end > step).unwrap();
        let start = data.ends().iter().rev().find(|&&end| end <= step).copied().unwrap_or(0);
        let low = (step + k as usize).min(end - 2);
        assert_eq!(batch.low.steps[row], low);
        let target = batch.high.steps[row];
        if goal > step && goal < end {
            // Of the trajectory or, by chance, random within it.
            assert!(target == low.min(goal) || target == low, "{step} {goal} {target}");
            seen[0] += usize::from(goal < low && target == goal);
            seen[1] += usize::from(goal < low && target == low);
        } else if !(start..end).contains(&goal) {
            assert_eq!(target, low);
            seen[2] += 1;
        }
        for goals in [&batch.actor, &batch.low, &batch.high] {
            assert_eq!(goals.observations[row], goals.steps[row] as f32);
        }
    }
    assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
}

#[test]
fn every_way_to_a_batch_gives_the_same_rows() {
    let actor = MixedGoals { uniform_future: 0.5, random: 0.5, ..Default::default() };
    let goals = Goals { subgoal_steps: 25, ..ogbench(0.2, 0.3, actor) };
    let data = data(&[200, 2, 70]);
    let sampler = Sampler::new(data.clone(), goals, 11).unwrap();
    let (mut whole, mut part) = (sampler.batch(3000), sampler.batch(45));
    sampler.fill(4, &mut whole).unwrap();
    sampler.fill(4, &mut part).unwrap();
    let mut columns = vec![vec![0; 45]; 5];
    let mut slices: Vec<_> = columns.iter_mut().map(Vec::as_mut_slice).collect();
    sampler.draw_rows(4, &mut slices);
    let wanted =
        [&part.steps, &part.goal_steps, &part.actor.steps, &part.low.steps, &part.high.steps];
    for (column, wanted) in columns.iter().zip(wanted) {
        assert_eq!(column, wanted);
    }
    assert_eq!(whole.actor.steps[..45], part.actor.steps);
    assert_eq!(whole.high.observations[..45], part.high.observations);

    // A prefetcher replaces buffers that have no room for all of it.
    let mut prefetcher = Prefetcher::new(&sampler, 45, 4, 1).unwrap();
    let mut batch = Batch::new(&data, 45);
    for step in 4..20 {
        prefetcher.next(&mut batch);
        sampler.fill(step, &mut part).unwrap();
        assert_eq!(batch, part);
        if step == 10 {
            batch = Batch::new(&data, 45);
        }
    }
}

#[test]
fn settings_files_hold_these_goals_and_refuse_nonsense() {
    let text = "\
gamma = 0.99
include_current = false
end = \"before-last\"
current = 0.2
uniform_future = 0.0
random = 0.3
subgoal_steps = 25

[actor]
current = 0.0
uniform_future = 1.0
random = 0.0
";
    // Written with the digits of the 32-bit numbers that they are.
    let goals: Goals = toml::from_str(text).unwrap();
    let actor = MixedGoals { uniform_future: 1.0, ..Default::default() };
    let wanted = Goals {
        end: End::BeforeLast,
        current: 0.2,
        random: 0.3,
        subgoal_steps: 25,
        actor: Some(actor),
        ..Goals::geometric(0.99)
    };
    assert_eq!(goals, wanted);
    assert_eq!(toml::from_str::<Goals>(&toml::to_string(&goals).unwrap()).unwrap(), goals);

    let refused = |goals: Goals, part: &str| {
        let message = Sampler::new(data(&[9]), goals, 0).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    };
    let bad = MixedGoals { random: 0.6, uniform_future: 0.6, current: 0.0 };
    refused(Goals { actor: Some(bad), ..wanted }, "together at most 1");
    refused(Goals { current: 0.8, ..wanted }, "together at most 1");
    refused(Goals { actor: None, ..wanted }, "goals.actor");
}
