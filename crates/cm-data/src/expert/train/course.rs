//! What an ant in training is asked to do, and what it is paid for.

use std::f64::consts::PI;
use std::fmt;

use bincode::{Decode, Encode};
use cm_envs::ant_maze::{
    Ant, CellRule, Maze, Navigator, STATE, policy_input, standing, uprightness,
};
use cm_random::{Stream, below_u64, unit_f64};
use rand_core::Rng;

/// Where ants train, on an open floor or in a maze, and by which rules.
pub(super) struct Ground {
    maze: Option<(Maze, Navigator)>,
    rules: Rules,
}

/// What an ant in training is paid for, and when its episode is over.
///
/// The reward of a step is `0.1 (v + standing - effort mean(a^2))`, v being the velocity along the
/// direction that the ant is shown (but see `paid_to_goal`), in units per second, and a the action.
///
/// ```
/// use cm_data::expert::{Rules, TrainSettings};
///
/// // Goals up to ten units away, every other one wavering by up to two.
/// let settings = TrainSettings::d4rl("runs/goals");
/// let rules = Rules { hold: [60, 200], reach: 10.0, spread: 2.0, ..settings.rules };
/// assert!(TrainSettings { rules, ..settings }.rules.reach.is_finite());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Paid for every step.
    pub standing: f64,
    /// Charged for the mean square of an action; below 0 it is paid.
    pub effort: f64,
    /// Whether a fall ends an episode.
    pub falls_end: bool,
    /// Steps after which an episode is over.
    pub longest: u32,
    /// The fewest and the most steps for which a direction or a goal stands on the open floor. With
    /// directions that stand for a whole episode ants learn to run straight, not to turn.
    pub hold: [u32; 2],
    /// The largest distance of goals on the open floor, in units; infinite for directions that do
    /// not depend on where the ant is.
    pub reach: f64,
    /// How far every other goal seems beside where it is, anew in each step: uniform up to this in
    /// x and y, as waypoints are in D4RL's recipe.
    pub spread: f64,
    /// Whether a step is paid for by the velocity towards where the goal is, not towards where it
    /// seems to be.
    pub paid_to_goal: bool,
}

impl fmt::Display for Rules {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            standing,
            effort,
            falls_end,
            longest,
            hold: [fewest, most],
            reach,
            spread,
            paid_to_goal,
        } = self;
        let falls = if *falls_end { "a fall ends them" } else { "falls do not end them" };
        write!(
            formatter,
            "reward with {standing} for standing and {effort} off for effort, \
             episodes of {longest} steps, {falls}, a new direction after {fewest} to {most}, \
             goals within {reach}, up to {spread} beside{}",
            if *paid_to_goal { ", paid for the way to them" } else { "" }
        )
    }
}

/// One ant's episode: where it is, and which way it should go.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(super) struct Course {
    pub(super) state: [f64; STATE],
    /// Where to walk, a unit vector.
    pub(super) direction: [f64; 2],
    /// Steps for which the direction or the goal still stands: on the floor always, in a maze for
    /// a spell off the way.
    hold: u32,
    age: u32,
    /// Where to walk to. In a maze, how far beside the centres of cells the way leads; on the
    /// floor, how far the goal seems beside where it is.
    goal: [f64; 2],
    beside: [f64; 2],
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) reward: f32,
    /// Units per second along the direction that is paid for.
    pub(super) velocity: f64,
    /// Whether the ant fell in this step.
    pub(super) fell: bool,
    pub(super) end: Option<End>,
}

/// Why an episode is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The ant fell or jumped where that ends an episode, or broke the simulation.
    Fell,
    /// Its time was up.
    TimedOut,
}

impl Ground {
    pub(super) fn new(maze: Option<Maze>, rules: Rules) -> Self {
        Self { maze: maze.map(|maze| (maze, Navigator::new(maze))), rules }
    }

    /// A fresh episode: standing, facing anywhere, anywhere in the maze.
    pub(super) fn begin(&self, random: &mut Stream) -> Course {
        let mut state = standing(random);
        let yaw = uniform(random, -PI, PI);
        let quaternion = [(yaw / 2.0).cos(), state[4], state[5], (yaw / 2.0).sin()];
        let norm = quaternion.iter().map(|x| x * x).sum::<f64>().sqrt();
        state[3..7].copy_from_slice(&quaternion.map(|x| x / norm));
        if let Some((maze, _)) = &self.maze {
            let center = free_cell(*maze, random);
            (state[0], state[1]) =
                (center[0] + uniform(random, -1.0, 1.0), center[1] + uniform(random, -1.0, 1.0));
        }
        let mut course = Course {
            state,
            direction: [1.0, 0.0],
            hold: 0,
            age: 0,
            goal: [0.0; 2],
            beside: [0.0; 2],
        };
        self.send(&mut course, random);
        self.direct(&mut course, random);
        course
    }

    /// What the policy sees.
    pub(super) fn input(course: &Course) -> [f32; STATE] {
        policy_input(&course.state, course.direction)
    }

    /// Walks one step with `action`, which `ant`, in the course's state, carries out clipped. An
    /// ended course has to be begun anew.
    pub(super) fn step(
        &self,
        ant: &mut Ant,
        course: &mut Course,
        action: &[f32],
        random: &mut Stream,
    ) -> Step {
        let before = course.state;
        if ant.step(action).is_err() {
            return Step { reward: 0.0, velocity: 0.0, fell: true, end: Some(End::Fell) };
        }
        course.state = *ant.state();
        course.age += 1;
        let moved = [course.state[0] - before[0], course.state[1] - before[1]];
        let paid = self.paid(course, [before[0], before[1]]);
        let velocity = 10.0 * (moved[0] * paid[0] + moved[1] * paid[1]);
        let effort = action.iter().map(|a| f64::from(a.clamp(-1.0, 1.0)).powi(2)).sum::<f64>();
        let Rules { standing, effort: price, falls_end, longest, .. } = self.rules;
        let reward = 0.1 * (velocity + standing - price * effort / action.len() as f64);
        let fell = has_fallen(&course.state) && !has_fallen(&before);
        let end = if falls_end && fell {
            Some(End::Fell)
        } else if course.age >= longest {
            Some(End::TimedOut)
        } else {
            self.direct(course, random);
            None
        };
        Step { reward: reward as f32, velocity, fell, end }
    }

    /// The direction in which a step from `place` is paid for.
    fn paid(&self, course: &Course, place: [f64; 2]) -> [f64; 2] {
        if self.rules.paid_to_goal { towards(place, course.goal) } else { course.direction }
    }

    /// A new goal somewhere in the maze.
    fn send(&self, course: &mut Course, random: &mut Stream) {
        if let Some((maze, _)) = &self.maze {
            course.goal = free_cell(*maze, random).map(|x| x + uniform(random, -1.0, 1.5));
            course.beside = [0.0; 2].map(|_: f64| uniform(random, -0.5, 1.0));
        }
    }

    /// The direction for the next step.
    fn direct(&self, course: &mut Course, random: &mut Stream) {
        course.hold = course.hold.saturating_sub(1);
        let Some((_, navigator)) = &self.maze else {
            self.direct_on_floor(course, random);
            return;
        };
        if course.hold > 0 {
            return;
        }
        // Now and then the ant is sent off its way, to learn to walk along and away from walls.
        if unit_f64(random.next_u64()) < 0.01 {
            course.direction = anywhere(random);
            course.hold = 15 + below_u64(random.next_u64(), 35) as u32;
            return;
        }
        let place = [course.state[0], course.state[1]];
        if cm_envs::ant_maze::is_near(place, course.goal) {
            self.send(course, random);
        }
        let there = CellRule::Round.cell(course.goal);
        let next = navigator.next(CellRule::Round.cell(place), there);
        let waypoint = if next == there {
            course.goal
        } else {
            let center = next.center();
            [center[0] + course.beside[0], center[1] + course.beside[1]]
        };
        course.direction = towards(place, waypoint);
    }

    fn direct_on_floor(&self, course: &mut Course, random: &mut Stream) {
        let Rules { hold: [fewest, most], reach, spread, .. } = self.rules;
        let place = [course.state[0], course.state[1]];
        if course.hold == 0 {
            course.direction = anywhere(random);
            course.hold = fewest + below_u64(random.next_u64(), (most - fewest + 1).into()) as u32;
            if reach.is_finite() {
                let distance = uniform(random, 0.0, reach);
                course.goal = [0, 1].map(|axis| place[axis] + distance * course.direction[axis]);
                let goal_moves = random.next_u32().is_multiple_of(2);
                course.beside = [if goal_moves { spread } else { 0.0 }; 2];
            }
        }
        if reach.is_finite() {
            let seen = [0, 1]
                .map(|axis| course.goal[axis] + uniform(random, 0.0, 1.0) * course.beside[axis]);
            course.direction = towards(place, seen);
        }
    }
}

fn towards(place: [f64; 2], waypoint: [f64; 2]) -> [f64; 2] {
    let (x, y) = (waypoint[0] - place[0], waypoint[1] - place[1]);
    let length = x.hypot(y).max(1e-6);
    [x / length, y / length]
}

fn has_fallen(state: &[f64; STATE]) -> bool {
    !(0.2..=1.2).contains(&state[2]) || uprightness([state[4], state[5]]) < 0.1
}

fn anywhere(random: &mut Stream) -> [f64; 2] {
    let (sine, cosine) = uniform(random, -PI, PI).sin_cos();
    [cosine, sine]
}

fn free_cell(maze: Maze, random: &mut Stream) -> [f64; 2] {
    let cells = maze.free_cells();
    cells[below_u64(random.next_u64(), cells.len() as u64) as usize].center()
}

fn uniform(random: &mut Stream, low: f64, high: f64) -> f64 {
    low + (high - low) * unit_f64(random.next_u64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expert::TrainSettings;
    use cm_random::Philox;

    fn floor(hold: [u32; 2], reach: f64, spread: f64) -> Ground {
        let rules = TrainSettings::d4rl("unused").rules;
        Ground::new(None, Rules { hold, reach, spread, ..rules })
    }

    #[test]
    fn a_direction_stands_for_as_long_as_it_is_told() {
        let mut random = Philox::new(1).stream(0, 0);
        let ground = floor([5, 7], f64::INFINITY, 0.0);
        let mut course = ground.begin(&mut random);
        let mut held = Vec::new();
        for _ in 0..200 {
            let (before, mut steps) = (course.direction, 0);
            while course.direction == before {
                ground.direct(&mut course, &mut random);
                steps += 1;
            }
            held.push(steps);
        }
        held.sort_unstable();
        held.dedup();
        assert_eq!(held, [5, 6, 7]);
    }

    #[test]
    fn goals_are_within_reach_and_seem_to_waver_if_they_should() {
        let mut random = Philox::new(2).stream(0, 0);
        let (mut still, mut wavering) = (0, 0);
        let ground = floor([9, 9], 4.0, 2.0);
        let to_goal = Ground::new(None, Rules { paid_to_goal: true, ..ground.rules });
        let mut course = ground.begin(&mut random);
        for _ in 0..100 {
            let place = [course.state[0], course.state[1]];
            let goal = course.goal;
            assert!((goal[0] - place[0]).hypot(goal[1] - place[1]) <= 4.0);
            course.state[0] += 20.0; // From far away goals waver by little.
            let mut seen = Vec::new();
            for _ in 1..9 {
                ground.direct(&mut course, &mut random);
                seen.push(course.direction);
                let [x, y] = course.direction;
                let place = [course.state[0], course.state[1]];
                let straight = towards(place, goal);
                assert!((x.hypot(y) - 1.0).abs() < 1e-12);
                assert!(x * straight[0] + y * straight[1] > 0.95);
                // Paid for is what the ant is shown, or the way to where the goal is.
                assert_eq!(ground.paid(&course, place), [x, y]);
                assert_eq!(to_goal.paid(&course, place), straight);
            }
            assert_eq!(course.goal, goal);
            let same = seen.iter().all(|direction| *direction == seen[0]);
            *(if same { &mut still } else { &mut wavering }) += 1;
            ground.direct(&mut course, &mut random);
            assert_ne!(course.goal, goal);
        }
        assert!(still > 25 && wavering > 25, "{still} {wavering}");
    }
}
