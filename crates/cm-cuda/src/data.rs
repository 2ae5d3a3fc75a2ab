//! A data set in the device's memory, from which a captured step gathers its own batches.

use cm_nn::{Backend, Result};

use crate::backend::CudaBackend;
use crate::compile::Module;
use crate::launch::{Argument, Use};
use crate::ops::arguments;
use crate::tensor::{CudaCell, CudaTensor};

/// What is gathered and what is done to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GatherSettings {
    /// Rows of a batch.
    pub batch: usize,
    /// Numbers of a state.
    pub state: usize,
    /// Numbers of an action.
    pub action: usize,
    /// Whether the next state is the state where the goal is the state itself.
    pub stay_at_goal: bool,
    /// Deviation of normal noise that is added to states and goals; none if 0.
    pub noise: f32,
    /// The stream of that noise: numbered as a matrix `[2 batch, state]`, states first.
    pub noise_stream: u32,
    /// How many goals a row has beside its own; they are states as they are in the data.
    pub further_goals: usize,
}

/// Row numbers that every row of a batch has: its state's and its goal's.
const COLUMNS: usize = 2;

/// States and actions of each replica, row by row, and the row numbers of the next steps.
///
/// The host writes row numbers for up to [`SLOTS`](Self::SLOTS) steps ahead; the captured step
/// takes those of the backend's own step.
pub struct DeviceData {
    backend: CudaBackend,
    settings: GatherSettings,
    rows: usize,
    states: CudaTensor,
    actions: CudaTensor,
    indices: CudaCell,
}

/// The matrices of a batch.
pub struct Gathered {
    /// States, `[batch, state]`.
    pub state: CudaTensor,
    /// Actions, `[batch, action]`.
    pub action: CudaTensor,
    /// The states after them, `[batch, state]`.
    pub next_state: CudaTensor,
    /// Goals, `[batch, state]`.
    pub goal: CudaTensor,
    /// The actions there, `[batch, action]`.
    pub goal_action: CudaTensor,
    /// Rows between state and goal, `[batch, 1]`.
    pub steps_to_goal: CudaTensor,
    /// The goals beside, `[batch, state]` each.
    pub further_goals: Vec<CudaTensor>,
}

impl DeviceData {
    /// Steps whose row numbers are on the device at a time.
    pub const SLOTS: usize = 8;

    /// Uploads the states and actions of each replica; one pair of matrices serves all replicas.
    /// Fails with [`Error::OutOfMemory`](crate::Error::OutOfMemory) or
    /// [`Error::TooLarge`](crate::Error::TooLarge) if they do not fit.
    pub fn new(
        backend: &CudaBackend,
        settings: &GatherSettings,
        data: &[(&[f32], &[f32])],
    ) -> Result<Self> {
        let settings = *settings;
        let [states, actions] = [
            backend.upload_all(settings.state, data.iter().map(|(states, _)| *states))?,
            backend.upload_all(settings.action, data.iter().map(|(_, actions)| *actions))?,
        ];
        let rows = data.iter().map(|(states, _)| states.len() / settings.state).max();
        let slots = [Self::SLOTS, (COLUMNS + settings.further_goals) * settings.batch];
        let zeros = vec![vec![0.0; slots[0] * slots[1]]; backend.seeds().len()];
        let indices = backend.cell(slots, zeros)?;
        let rows = rows.unwrap_or(0);
        Ok(Self { backend: backend.clone(), settings, rows, states, actions, indices })
    }

    /// Writes the row numbers of a replica for the steps whose remainders by
    /// [`SLOTS`](Self::SLOTS) are 0, 1, ...: for each step those of its states, then of its goals,
    /// then of each kind of further goals.
    pub fn write(&self, replica: usize, numbers: &[u32]) -> Result<()> {
        let bits: &[f32] = bytemuck::cast_slice(numbers);
        self.backend.write(replica, &[(&self.indices, bits)])
    }

    /// The batch of the backend's step.
    pub fn gather(&self) -> Result<Gathered> {
        let GatherSettings { batch, state, action, .. } = self.settings;
        let new = |columns: usize| self.backend.new_tensor([batch, columns]);
        let further = (0..self.settings.further_goals).map(|_| new(state));
        let gathered = Gathered {
            further_goals: further.collect::<Result<_, _>>()?,
            state: new(state)?,
            action: new(action)?,
            next_state: new(state)?,
            goal: new(state)?,
            goal_action: new(action)?,
            steps_to_goal: new(1)?,
        };
        let arguments = arguments![
            self.backend.seeds_argument(),
            self.backend.step_argument(Use::Read),
            self.states.read(),
            self.actions.read(),
            self.indices.tensor().read(),
            gathered.state.write(),
            gathered.action.write(),
            gathered.next_state.write(),
            gathered.goal.write(),
            gathered.goal_action.write(),
            gathered.steps_to_goal.write(),
            self.widths()
        ];
        let count = batch * (3 * state + 2 * action + 1);
        self.backend.each(Module::Data, "gather_batch", count as u32, arguments)?;
        for (goal, column) in gathered.further_goals.iter().zip(COLUMNS as u32..) {
            let arguments = arguments![
                self.backend.step_argument(Use::Read),
                self.states.read(),
                self.indices.tensor().read(),
                goal.write(),
                column,
                self.widths()
            ];
            self.backend.each(Module::Data, "gather_goals", (batch * state) as u32, arguments)?;
        }
        Ok(gathered)
    }

    /// `struct Widths` of the kernel.
    fn widths(&self) -> Argument {
        let GatherSettings {
            batch,
            state,
            action,
            stay_at_goal,
            noise,
            noise_stream,
            further_goals,
        } = self.settings;
        let columns = COLUMNS + further_goals;
        let stay = usize::from(stay_at_goal);
        let sizes = [self.rows, batch, state, action, Self::SLOTS, columns, stay];
        let mut members = sizes.map(|size| Argument::Unsigned(size as u32)).to_vec();
        members.extend([Argument::Unsigned(noise_stream), Argument::Float(noise)]);
        Argument::Struct(members, 36)
    }
}
