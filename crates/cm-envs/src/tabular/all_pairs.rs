//! Successor distances of all pairs, goals in parallel.

use rayon::prelude::*;

use super::occupancy;
use super::pairs::AllPairs;
use super::reach::Predecessors;
use super::solver::GoalProblem;
use crate::Error;

/// One factorisation serves all goals of a chain; beyond this number of states per successor it
/// costs more than one iteration per goal (measured, `cargo bench --bench tabular`).
const STATES_PER_SUCCESSOR: usize = 1000;

/// An occupancy below this may have lost precision to underflow on the way.
const UNDERFLOW: f64 = 1e-280;

/// The distances of a controlled process, each goal solved by itself.
pub(crate) fn goal_by_goal(problem: GoalProblem<'_>) -> Result<AllPairs, Error> {
    let states = problem.transitions.states();
    let predecessors = Predecessors::new(problem.transitions, problem.actions);
    let mut distances = vec![0.0; states * states];
    distances
        .par_chunks_exact_mut(states)
        .enumerate()
        .try_for_each(|(goal, distances)| fill(problem, &predecessors, goal, distances))?;
    Ok(AllPairs::new(states, distances))
}

/// The distances of a chain, by factorisation where that is faster.
pub(crate) fn of_chain(problem: GoalProblem<'_>) -> Result<AllPairs, Error> {
    let states = problem.transitions.states();
    if states.saturating_mul(states) > STATES_PER_SUCCESSOR * problem.transitions.len() {
        return goal_by_goal(problem);
    }
    by_factorisation(problem)
}

/// The distances of a chain from its occupancy, `log p(g | g) - log p(g | s)` (Eq. 5).
fn by_factorisation(problem: GoalProblem<'_>) -> Result<AllPairs, Error> {
    let states = problem.transitions.states();
    let predecessors = Predecessors::new(problem.transitions, problem.actions);
    let mut values = occupancy::all_pairs(problem.transitions, problem.discount).into_values();
    values.par_chunks_exact_mut(states).enumerate().try_for_each(|(goal, values)| {
        let lost = |(&value, hops): (&f64, &Option<u32>)| value < UNDERFLOW && hops.is_some();
        if values.iter().any(|&value| value < UNDERFLOW) {
            let hops = predecessors.reaching(goal).hops;
            if values.iter().zip(&hops).any(lost) {
                return fill(problem, &predecessors, goal, values);
            }
        }
        let at_goal = values[goal];
        for value in values {
            *value = (at_goal / *value).ln();
        }
        Ok(())
    })?;
    Ok(AllPairs::new(states, values))
}

fn fill(
    problem: GoalProblem<'_>,
    predecessors: &Predecessors,
    goal: usize,
    distances: &mut [f64],
) -> Result<(), Error> {
    let values = problem.solve(&predecessors.reaching(goal))?;
    for (distance, value) in distances.iter_mut().zip(values) {
        *distance = value.distance();
    }
    Ok(())
}
