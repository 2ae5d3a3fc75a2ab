//! How D4RL's collector sends an ant that can walk in any direction through a maze.

use cm_random::{Stream, normal_pair, unit_f64};
use rand_core::Rng;

use super::{ACTION, CellRule, Maze, Navigator, Recipe, STATE};
use crate::Error;

/// Shows a walking policy the way to a goal, and adds noise to what it does.
///
/// The policy sees the ant's state without its place (27 numbers) and the unit vector to a
/// waypoint. The waypoint is the goal if that is in the next cell; else it is that cell's centre,
/// and under [`CellRule::Floor`] beside it as the [`Recipe`] says, drawn anew in every step.
#[derive(Clone, Debug)]
pub struct Guide {
    cells: CellRule,
    noise: f32,
    waypoint_noise: f64,
    navigator: Navigator,
}

impl Guide {
    /// The standard deviation of D4RL's noise.
    pub const NOISE: f32 = 0.2;

    /// A guide through `maze`; `noise` is the standard deviation of what is added to actions.
    pub fn new(maze: Maze, recipe: Recipe, cells: CellRule, noise: f32) -> Result<Self, Error> {
        if !(noise >= 0.0 && noise.is_finite()) {
            return Err(Error::Value { what: "noise".into(), found: f64::from(noise) });
        }
        let waypoint_noise = recipe.waypoint_noise();
        Ok(Self { cells, noise, waypoint_noise, navigator: Navigator::new(maze) })
    }

    /// An action in `[-1, 1]` on the way to `goal`. `policy` fills in an action, given 27 numbers
    /// of the state and the direction, with random numbers to draw it by.
    pub fn act(
        &self,
        state: &[f64; STATE],
        goal: [f64; 2],
        random: &mut Stream,
        policy: impl Fn(&[f32; STATE], &mut Stream, &mut [f32; ACTION]),
    ) -> [f32; ACTION] {
        let place = [state[0], state[1]];
        let waypoint = self.waypoint(place, goal, random);
        let mut action = [0.0; ACTION];
        let input = policy_input(state, [waypoint[0] - place[0], waypoint[1] - place[1]]);
        policy(&input, random, &mut action);
        for pair in action.chunks_exact_mut(2) {
            let (first, second) = normal_pair(random.next_u32(), random.next_u32());
            pair[0] = (pair[0] + self.noise * first).clamp(-1.0, 1.0);
            pair[1] = (pair[1] + self.noise * second).clamp(-1.0, 1.0);
        }
        action
    }

    fn waypoint(&self, place: [f64; 2], goal: [f64; 2], random: &mut Stream) -> [f64; 2] {
        let there = self.cells.cell(goal);
        let next = self.navigator.next(self.cells.cell(place), there);
        match self.cells {
            _ if next == there => goal,
            CellRule::Floor => next
                .center()
                .map(|middle| middle + self.waypoint_noise * unit_f64(random.next_u64())),
            CellRule::Round => next.center(),
        }
    }
}

/// What a walking policy sees: the state without its place, and `direction` at length 1.
pub fn policy_input(state: &[f64; STATE], direction: [f64; 2]) -> [f32; STATE] {
    let length = direction[0].hypot(direction[1]).max(1e-6);
    let mut input = [0.0; STATE];
    for (input, &number) in input.iter_mut().zip(&state[2..]) {
        *input = number as f32;
    }
    input[STATE - 2..].copy_from_slice(&direction.map(|number| (number / length) as f32));
    input
}
