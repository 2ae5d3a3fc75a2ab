//! A body in simulation.

use std::sync::Arc;

use cm_random::{Stream, below_u64, normal_pair, unit_f64};
use rand_core::Rng;

use super::{Agent, Maze, mjcf};
use crate::Error;
use crate::mujoco::{Data, Model, Mujoco};

/// Steps of simulation with one action.
const FRAME_SKIP: usize = 5;
/// How far an action of 1 moves the point.
const STRIDE: f64 = 0.2;
/// Random actions before a posture is a goal's.
const SHAKES: usize = 5;

/// A point or an ant in a maze.
///
/// ```
/// use cm_envs::ogbench::{Agent, Body, Maze};
///
/// # let Ok(mujoco) = cm_envs::mujoco::Mujoco::find() else { return Ok(()) };
/// # /*
/// let mujoco = cm_envs::mujoco::Mujoco::find()?;
/// # */
/// let mut point = Body::new(&mujoco, Agent::Point, Maze::Medium)?;
/// point.step(&[1.0, 0.3], || 0)?;
/// assert!((point.observation()[0] - 0.2).abs() < 1e-12);
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Debug)]
pub struct Body {
    agent: Agent,
    maze: Maze,
    data: Data,
    /// Positions, then velocities.
    state: Vec<f64>,
    observation: Vec<f64>,
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// Where the step led, before any teleport: success is judged there.
    pub place: [f64; 2],
    /// Whether the body was then put elsewhere.
    pub teleported: bool,
}

impl Body {
    /// The model of `agent` in `maze`.
    pub fn model(mujoco: &Mujoco, agent: Agent, maze: Maze) -> Result<Arc<Model>, Error> {
        Model::from_xml(mujoco, &mjcf(agent, maze))
    }

    /// A body as its model describes it.
    pub fn new(mujoco: &Mujoco, agent: Agent, maze: Maze) -> Result<Self, Error> {
        Self::of_model(&Self::model(mujoco, agent, maze)?, agent, maze)
    }

    /// The same of a model that is there already.
    pub fn of_model(model: &Arc<Model>, agent: Agent, maze: Maze) -> Result<Self, Error> {
        for (what, expected, found) in [
            ("positions of the body", agent.positions(), model.positions()),
            ("velocities of the body", agent.velocities(), model.velocities()),
            ("controls of the body", agent.action_width(), model.controls()),
        ] {
            if expected != found {
                return Err(Error::Length { what: what.into(), expected, found });
            }
        }
        let data = Data::new(model)?;
        let state = vec![0.0; agent.positions() + agent.velocities()];
        let mut body = Self { agent, maze, data, state, observation: Vec::new() };
        body.read();
        body.observe();
        Ok(body)
    }

    /// Puts the body into a state, positions and then velocities, whatever went before.
    pub fn place(&mut self, state: &[f64]) -> Result<(), Error> {
        self.data.reset()?;
        self.data.set_state(state)?;
        self.read();
        self.observe();
        Ok(())
    }

    /// Puts the body at a place as a reset does, with everything else drawn: `U(-0.1, 0.1)` on
    /// every number of the position, the ant's quaternion as well and without normalising it, and
    /// velocities of `0.1 N(0, 1)`.
    pub fn reset(&mut self, place: [f64; 2], random: &mut Stream) -> Result<(), Error> {
        let mut state = self.drawn(random);
        state[..2].copy_from_slice(&place);
        self.place(&state)
    }

    /// The observation at a goal: from a reset at the origin, five random actions, then `place`.
    pub fn goal(&mut self, place: [f64; 2], random: &mut Stream) -> Result<Vec<f64>, Error> {
        let state = self.drawn(random);
        self.place(&state)?;
        for _ in 0..SHAKES {
            let mut action = vec![0.0; self.agent.action_width()];
            action.fill_with(|| 2.0 * unit_f64(random.next_u64()) - 1.0);
            self.simulate(&action)?;
        }
        self.put(place)?;
        self.observe();
        Ok(self.observation.clone())
    }

    /// Positions, then velocities, as they are: after a teleport, at the exit.
    pub fn state(&self) -> &[f64] {
        &self.state
    }

    /// What is seen. After a step that teleported it is what was there before.
    pub fn observation(&self) -> &[f64] {
        &self.observation
    }

    /// Where the body is in the plane.
    pub fn xy(&self) -> [f64; 2] {
        [self.state[0], self.state[1]]
    }

    /// Acts for 0.1 s. The point moves by 0.2 of the action, whatever its size; the ant's torques
    /// are those of actions clipped to `[-1, 1]`. `exit` chooses one of the three exits if the step
    /// ends in a teleport. What is not finite is refused.
    pub fn step(&mut self, action: &[f64], exit: impl FnOnce() -> usize) -> Result<Moved, Error> {
        self.simulate(action)?;
        self.observe();
        let place = self.xy();
        let teleports = self.maze.teleports().filter(|teleports| teleports.takes(place));
        if let Some(teleports) = teleports {
            let exits = &teleports.exits;
            self.put(exits[exit().min(exits.len() - 1)].center())?;
        }
        Ok(Moved { place, teleported: teleports.is_some() })
    }

    /// One of three exits.
    pub(super) fn draw_exit(random: &mut Stream) -> usize {
        below_u64(random.next_u64(), 3) as usize
    }

    fn drawn(&self, random: &mut Stream) -> Vec<f64> {
        let mut state = vec![0.0; self.state.len()];
        if self.agent == Agent::Ant {
            (state[2], state[3]) = (0.75, 1.0);
        }
        let (positions, velocities) = state.split_at_mut(self.agent.positions());
        for position in positions {
            *position += 0.2 * unit_f64(random.next_u64()) - 0.1;
        }
        for pair in velocities.chunks_mut(2) {
            let (first, second) = normal_pair(random.next_u32(), random.next_u32());
            for (velocity, normal) in pair.iter_mut().zip([first, second]) {
                *velocity = 0.1 * f64::from(normal);
            }
        }
        state
    }

    fn simulate(&mut self, action: &[f64]) -> Result<(), Error> {
        let (expected, found) = (self.agent.action_width(), action.len());
        if expected != found {
            return Err(Error::Length { what: "action".to_owned(), expected, found });
        }
        if action.iter().any(|number| !number.is_finite()) {
            let found = action.iter().map(|&number| number as f32).collect();
            return Err(Error::Action { found });
        }
        match self.agent {
            Agent::Point => {
                let (positions, velocities) = self.state.split_at_mut(2);
                for (position, number) in positions.iter_mut().zip(action) {
                    *position += STRIDE * number;
                }
                velocities.fill(0.0);
                self.data.overwrite_state(&self.state)?;
            }
            Agent::Ant => {
                let clipped: Vec<f64> = action.iter().map(|x| x.clamp(-1.0, 1.0)).collect();
                self.data.set_control(&clipped)?;
            }
        }
        self.data.step(FRAME_SKIP)?;
        self.read();
        match self.state.iter().find(|number| !number.is_finite()) {
            None => Ok(()),
            Some(&found) => Err(Error::NotFinite { what: "state of the body".into(), found }),
        }
    }

    /// Changes the place alone.
    fn put(&mut self, place: [f64; 2]) -> Result<(), Error> {
        self.state[..2].copy_from_slice(&place);
        self.data.set_state(&self.state)?;
        self.read();
        Ok(())
    }

    fn read(&mut self) {
        self.data.state(&mut self.state);
    }

    fn observe(&mut self) {
        self.observation.clear();
        self.observation.extend(&self.state[..self.agent.observation_width()]);
    }
}
