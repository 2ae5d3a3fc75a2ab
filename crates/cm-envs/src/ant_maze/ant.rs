//! The ant's body.

use std::sync::Arc;

use cm_random::{Stream, normal_pair, unit_f64};
use rand_core::Rng;

use super::Maze;
use super::description::mjcf;
use crate::Error;
use crate::mujoco::{Data, Model, Mujoco};

/// Numbers in a state: 15 of position, 14 of velocity.
pub const STATE: usize = 29;
/// Numbers in an action.
pub const ACTION: usize = 8;

/// Numbers of position in a state.
const POSITIONS: usize = 15;
/// Steps of simulation with one action.
const FRAME_SKIP: usize = 5;
/// The torque that an action of 1 stands for.
const TORQUE: f64 = 30.0;

/// An ant in simulation.
///
/// ```
/// use cm_envs::ant_maze::{ACTION, Ant, Maze, standing};
/// use cm_random::Philox;
///
/// # let Ok(mujoco) = cm_envs::mujoco::Mujoco::find() else { return Ok(()) };
/// # /*
/// let mujoco = cm_envs::mujoco::Mujoco::find()?;
/// # */
/// let mut ant = Ant::new(&Ant::model(&mujoco, Some(Maze::Umaze))?)?;
/// ant.place(&standing(&mut Philox::new(1).stream(0, 0)))?;
/// ant.step(&[0.5; ACTION])?;
/// assert!(ant.state()[2] > 0.25 && ant.uprightness() > 0.9);
/// # Ok::<(), cm_envs::Error>(())
/// ```
#[derive(Debug)]
pub struct Ant {
    data: Data,
    state: [f64; STATE],
}

impl Ant {
    /// The model of the ant in `maze`, or on an open floor.
    pub fn model(mujoco: &Mujoco, maze: Option<Maze>) -> Result<Arc<Model>, Error> {
        Model::from_xml(mujoco, &mjcf(maze))
    }

    /// An ant of `model` as the model describes it.
    pub fn new(model: &Arc<Model>) -> Result<Self, Error> {
        let widths = (model.positions() + model.velocities(), model.controls());
        for (what, expected, found) in
            [("state of the ant", STATE, widths.0), ("control of the ant", ACTION, widths.1)]
        {
            if expected != found {
                return Err(Error::Length { what: what.into(), expected, found });
            }
        }
        let data = Data::new(model)?;
        let mut state = [0.0; STATE];
        data.state(&mut state);
        Ok(Self { data, state })
    }

    /// Puts the ant into `state`, whatever went before.
    pub fn place(&mut self, state: &[f64; STATE]) -> Result<(), Error> {
        self.data.reset()?;
        self.data.set_state(state)?;
        self.data.state(&mut self.state);
        Ok(())
    }

    /// Position, then velocity.
    pub fn state(&self) -> &[f64; STATE] {
        &self.state
    }

    /// Where the torso is in the plane.
    pub fn xy(&self) -> [f64; 2] {
        [self.state[0], self.state[1]]
    }

    /// How upright the ant is; see [`uprightness`].
    pub fn uprightness(&self) -> f64 {
        uprightness([self.state[4], self.state[5]])
    }

    /// Acts for 0.1 s. Actions are clipped to `[-1, 1]`; what is not a number is refused.
    pub fn step(&mut self, action: &[f32]) -> Result<(), Error> {
        let Ok(action) = <&[f32; ACTION]>::try_from(action) else {
            let what = "action".to_owned();
            return Err(Error::Length { what, expected: ACTION, found: action.len() });
        };
        if action.iter().any(|torque| torque.is_nan()) {
            return Err(Error::Action { found: action.to_vec() });
        }
        self.data.set_control(&action.map(|torque| TORQUE * f64::from(torque.clamp(-1.0, 1.0))))?;
        self.data.step(FRAME_SKIP)?;
        self.data.state(&mut self.state);
        match self.state.iter().find(|number| !number.is_finite()) {
            None => Ok(()),
            Some(&found) => Err(Error::NotFinite { what: "state of the ant".into(), found }),
        }
    }
}

/// A state to begin an episode in, at the origin: standing, plus `U(-0.1, 0.1)` on every number of
/// the position, with velocities of `0.1 N(0, 1)`.
pub fn standing(random: &mut Stream) -> [f64; STATE] {
    let mut state = [0.0; STATE];
    (state[2], state[3]) = (0.75, 1.0);
    for position in &mut state[..POSITIONS] {
        *position += 0.2 * unit_f64(random.next_u64()) - 0.1;
    }
    for pair in state[POSITIONS..].chunks_mut(2) {
        let (first, second) = normal_pair(random.next_u32(), random.next_u32());
        pair[0] = 0.1 * f64::from(first);
        pair[1] = 0.1 * f64::from(second);
    }
    // MuJoCo has stopped to do this by itself.
    let norm = state[3..7].iter().map(|number| number * number).sum::<f64>().sqrt();
    state[3..7].iter_mut().for_each(|number| *number /= norm);
    state
}

/// How upright an ant is whose quaternion has these numbers x and y (the state's 4 and 5): the
/// vertical part of its own upward direction, from 1 to -1. Below 0 it lies on its back.
pub fn uprightness([x, y]: [f64; 2]) -> f64 {
    1.0 - 2.0 * (x * x + y * y)
}
