//! What every method learns from.

use cm_nn::{Backend, Var};

use crate::{ActorGoals, Dimensions, Error, GoalKinds, Result};

/// Rows `(s_i, a_i, s'_i, g_i, a'_i)`: a step of a trajectory, the state after it, and a later
/// state of the same trajectory with its action. What the losses see of a [`Batch`].
pub struct Transitions<B: Backend> {
    /// States `s`, `[n, state]`.
    pub state: Var<B>,
    /// Actions `a`, `[n, action]`.
    pub action: Var<B>,
    /// States one step later, `[n, state]`.
    pub next_state: Var<B>,
    /// Future states `g` of the same trajectories, `[n, state]`.
    pub goal: Var<B>,
    /// Actions `a'` taken there, `[n, action]`.
    pub goal_action: Var<B>,
    /// How many steps lie between `s` and `g`, `[n, 1]`; 0 only where `g` is the very row of `s`.
    pub steps_to_goal: Var<B>,
    /// Goals of the policy, where they are drawn apart.
    pub actor_goals: Option<ActorGoals<B>>,
}

impl<B: Backend> Transitions<B> {
    /// The goals that the policy learns from: its own if there are any, else `goal`.
    pub fn actor_goal(&self) -> &Var<B> {
        self.actor_goals.as_ref().map_or(&self.goal, |actor| &actor.goal)
    }

    /// Refuses matrices whose shapes do not belong together or to `dimensions`.
    pub fn check(&self, dimensions: &Dimensions) -> Result<()> {
        let (rows, state, action) = (self.state.rows(), dimensions.state(), dimensions.action());
        let mut wanted = vec![
            ("batch state", &self.state, state),
            ("batch action", &self.action, action),
            ("batch next_state", &self.next_state, state),
            ("batch goal", &self.goal, state),
            ("batch goal_action", &self.goal_action, action),
            ("batch steps_to_goal", &self.steps_to_goal, 1),
        ];
        let others = self.actor_goals.iter().flat_map(ActorGoals::fields);
        wanted.extend(others.map(|(name, var)| (name, var, state)));
        for (operation, var, columns) in wanted {
            if var.shape() != [rows, columns] {
                let expected = format!("[{rows}, {columns}]");
                let found = format!("{:?}", var.shape());
                return Err(Error::Shape { operation, expected, found });
            }
        }
        Ok(())
    }
}

/// The values of one replica's [`Batch`] on the host, row by row.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchValues<'a> {
    /// States.
    pub state: &'a [f32],
    /// Actions.
    pub action: &'a [f32],
    /// States one step later.
    pub next_state: &'a [f32],
    /// Future states.
    pub goal: &'a [f32],
    /// Actions taken there.
    pub goal_action: &'a [f32],
    /// Steps between.
    pub steps_to_goal: &'a [f32],
    /// The policy's goals, then low and high subgoals: as many as the batch's [`GoalKinds`] has.
    pub actor_goals: &'a [&'a [f32]],
}

/// The cells of a batch, made once: the host overwrites them between steps, and a captured step
/// reads them.
///
/// ```
/// use cm_learner::{Batch, BatchValues, Dimensions};
/// use cm_nn::DfdxBackend;
///
/// let batch = Batch::new(&DfdxBackend::new(0), 2, &Dimensions::new(1, 1, 0..1)?)?;
/// batch.write(0, &BatchValues {
///     state: &[0.0, 1.0],
///     action: &[1.0, 1.0],
///     next_state: &[1.0, 2.0],
///     goal: &[5.0, 3.0],
///     goal_action: &[1.0, 1.0],
///     steps_to_goal: &[5.0, 2.0],
///     actor_goals: &[],
/// })?;
/// assert_eq!(batch.load()?.goal.to_vec()?, [5.0, 3.0]);
/// # Ok::<(), cm_learner::Error>(())
/// ```
pub struct Batch<B: Backend> {
    backend: B,
    rows: usize,
    /// Columns and cell of each field of [`Transitions`], in their order.
    cells: Vec<(usize, B::Cell)>,
}

/// Fields of a row that every batch has.
const FIELDS: usize = 6;

impl<B: Backend> Batch<B> {
    /// Cells for `rows` rows, all zero, with one goal each.
    pub fn new(backend: &B, rows: usize, dimensions: &Dimensions) -> Result<Self> {
        Self::with_goals(backend, rows, dimensions, GoalKinds::Shared)
    }

    /// Cells for `rows` rows, all zero, with these goals beside their own.
    ///
    /// ```
    /// use cm_learner::{Batch, BatchValues, Dimensions, GoalKinds};
    /// use cm_nn::DfdxBackend;
    ///
    /// let dimensions = Dimensions::new(1, 1, 0..1)?;
    /// let batch = Batch::with_goals(&DfdxBackend::new(0), 1, &dimensions, GoalKinds::Actor)?;
    /// let zero = &[0.0][..];
    /// batch.write(0, &BatchValues {
    ///     state: zero,
    ///     action: zero,
    ///     next_state: zero,
    ///     goal: zero,
    ///     goal_action: zero,
    ///     steps_to_goal: zero,
    ///     actor_goals: &[&[7.0]],
    /// })?;
    /// assert_eq!(batch.load()?.actor_goal().to_vec()?, [7.0]);
    /// # Ok::<(), cm_learner::Error>(())
    /// ```
    pub fn with_goals(
        backend: &B,
        rows: usize,
        dimensions: &Dimensions,
        goals: GoalKinds,
    ) -> Result<Self> {
        if rows == 0 {
            let (expected, found) = ("at least one row".to_owned(), "0".to_owned());
            return Err(Error::Shape { operation: "batch", expected, found });
        }
        let (state, action) = (dimensions.state(), dimensions.action());
        let cell = |columns: usize| -> Result<_> {
            let zeros = vec![vec![0.0; rows * columns]; backend.seeds().len()];
            Ok((columns, backend.cell([rows, columns], zeros)?))
        };
        let fields: [_; FIELDS] = [state, action, state, state, action, 1];
        let columns = fields.into_iter().chain(std::iter::repeat_n(state, goals.count()));
        let cells = columns.map(cell).collect::<Result<_>>()?;
        Ok(Self { backend: backend.clone(), rows, cells })
    }

    /// Overwrites what one replica sees.
    pub fn write(&self, replica: usize, values: &BatchValues<'_>) -> Result<()> {
        let BatchValues {
            state,
            action,
            next_state,
            goal,
            goal_action,
            steps_to_goal,
            actor_goals,
        } = *values;
        let mut fields = vec![state, action, next_state, goal, goal_action, steps_to_goal];
        fields.extend(actor_goals);
        if fields.len() != self.cells.len() {
            let expected = format!("{} actor goals", self.cells.len() - FIELDS);
            let found = actor_goals.len().to_string();
            return Err(Error::Shape { operation: "batch", expected, found });
        }
        for ((columns, _), &values) in self.cells.iter().zip(&fields) {
            if values.len() != self.rows * columns {
                let expected =
                    format!("{} values for [{}, {columns}]", self.rows * columns, self.rows);
                let found = values.len().to_string();
                return Err(Error::Shape { operation: "batch", expected, found });
            }
        }
        let cells = self.cells.iter().map(|(_, cell)| cell).zip(fields);
        self.backend.write(replica, &cells.collect::<Vec<_>>())
    }

    /// The rows at this point of the step.
    pub fn load(&self) -> Result<Transitions<B>> {
        let load = |index: usize| -> Result<_> {
            Ok(Var::wrap(&self.backend, self.backend.load(&self.cells[index].1)?))
        };
        let others = (FIELDS..self.cells.len()).map(load).collect::<Result<_>>()?;
        Ok(Transitions {
            actor_goals: ActorGoals::from_states(others)?,
            state: load(0)?,
            action: load(1)?,
            next_state: load(2)?,
            goal: load(3)?,
            goal_action: load(4)?,
            steps_to_goal: load(5)?,
        })
    }
}

/// Where batches come from: a host that draws them and writes the cells of a [`Batch`], or a device
/// that holds the data and gathers rows by indices that the host has drawn ahead.
///
/// The batch of a step is a pure function of the data, the replica's seed and the step, so that
/// both give the same rows and a run can begin anywhere.
pub trait BatchSource<B: Backend> {
    /// What the host does before a step, outside of it: writes the next batch, or now and then the
    /// indices of many.
    fn prepare(&self) -> Result<()>;

    /// What the step itself begins with, recorded with it: the rows to learn from.
    fn batch(&self) -> Result<Transitions<B>>;
}
