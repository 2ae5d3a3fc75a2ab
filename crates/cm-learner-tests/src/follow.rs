//! The same losses as on the CPU, step by step.

use cm_learner::{Batch, BatchValues, Dimensions, GoalKinds};
use cm_nn::testing::Suite;
use cm_nn::{Backend, DfdxBackend, Result, Var};
use cm_random::{Philox, normal_pair};

use crate::{Make, learners};

/// Sizes that divide nothing.
const ROWS: usize = 33;
const STEPS: u64 = 20;
/// How much further apart losses may be after some steps than single results, since every step
/// builds on those before.
const GROWTH: f64 = 300.0;

/// Every method in every preset, in captured steps on the same batches: its metrics stay within the
/// suite's tolerance, grown over the steps, of those of the CPU backend with the same seed.
pub fn follows_the_cpu<B: Backend>(suite: &Suite<B>) -> Result<()> {
    for ((name, make), (_, on_cpu)) in learners::<B>().into_iter().zip(learners()) {
        let found = train(&suite.make(5), &make)?;
        let wanted = train(&DfdxBackend::new(5), &on_cpu)?;
        for (step, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            for ((metric, found), (_, wanted)) in found.iter().zip(wanted) {
                let (found, wanted) = (f64::from(*found), f64::from(*wanted));
                let allowed = suite.tolerance.values * GROWTH * (wanted.abs() + 0.1);
                let place = format!("{name}, step {step}: {metric}");
                assert!((found - wanted).abs() <= allowed, "{place} is {found}, not {wanted}");
            }
        }
    }
    Ok(())
}

/// The metrics of every step.
fn train<B: Backend>(backend: &B, make: &Make<B>) -> Result<Vec<Vec<(&'static str, f32)>>> {
    let dimensions = Dimensions::new(3, 2, 0..2)?;
    let learner = make(backend, &dimensions)?;
    let batch = Batch::with_goals(backend, ROWS, &dimensions, GoalKinds::Hierarchy)?;
    let mut step = backend.capture(|| learner.step(&batch.load()?));
    let steps = (0..STEPS).map(|number| {
        write(&batch, number)?;
        let metrics = step.run()?;
        let values = Var::read(&metrics.iter().map(|(_, metric)| metric).collect::<Vec<_>>())?;
        let values = values.iter().map(|values| values.replica(0)[0]);
        Ok(metrics.iter().map(|(name, _)| *name).zip(values).collect())
    });
    steps.collect()
}

/// Walks of up to five steps, drawn under the number of the step.
fn write<B: Backend>(batch: &Batch<B>, step: u64) -> Result<()> {
    let normals = |stream: u32, count: usize| {
        let draw = |index: u32| normal_pair_of(step, stream, index);
        (0..count as u32).map(draw).collect::<Vec<f32>>()
    };
    let (state, moves) = (normals(0x300, 3 * ROWS), normals(0x301, 3 * ROWS));
    let steps_to_goal = (0..ROWS).map(|row| ((row as u64 + step) % 5) as f32).collect::<Vec<_>>();
    let ahead = |steps: &dyn Fn(usize) -> f32| {
        let moved = state.iter().zip(&moves).enumerate();
        moved.map(|(at, (x, move_))| x + 0.3 * steps(at / 3) * move_).collect::<Vec<_>>()
    };
    let action = |stream| normals(stream, 2 * ROWS).iter().map(|x| x.tanh()).collect::<Vec<_>>();
    batch.write(
        0,
        &BatchValues {
            state: &state,
            action: &action(0x302),
            next_state: &ahead(&|_| 1.0),
            goal: &ahead(&|row| steps_to_goal[row]),
            goal_action: &action(0x303),
            steps_to_goal: &steps_to_goal,
            actor_goals: &[&ahead(&|row| (row % 4) as f32), &ahead(&|_| 2.0), &ahead(&|_| 1.5)],
        },
    )
}

fn normal_pair_of(step: u64, stream: u32, index: u32) -> f32 {
    let words = Philox::new(17).block(step, stream, index);
    normal_pair(words[0], words[1]).0
}
