//! Quasimetric RL (Wang, Torralba, Isola and Zhang 2023): the largest quasimetric in which no
//! transition is longer than its cost.
//!
//! In a deterministic world the optimal distance `d*(s, g)`, the least cost of getting from `s` to
//! `g`, is the largest quasimetric with `d(s, s') <= cost` for every transition. Sec. 3.2 of the
//! QRL paper makes that a constrained problem over states and goals drawn apart,
//!
//! > maximise `E phi(d(s, g))` subject to `E max(0, d(s, s') - cost)^2 <= margin`,
//!
//! and solves it by ascent on a multiplier. Sec. 3.4 adds a model `T` of where an action leads *in
//! the metric's space*, held to `T(s, a) ~ s'` by the squared distances between them both ways; a
//! policy is then moved to actions whose outcome is near the goal.

mod losses;
mod settings;

use std::ops::Range;

use cm_learner::{
    Dimensions, Dual, Features, FixedDistance, Group, Learner, Metrics, StateDistance, Transitions,
    Update,
};
use cm_nn::{Backend, Mlp, Over, Parameters, Quasimetric, Result, Var};
use cm_policy::Actor;

pub use losses::{lagrangian, latent_transition_loss, push_loss, transition_excess};
pub use settings::{Multiplier, PushGoals, QrlSettings, TransitionError, TransitionSettings};

use crate::streams;

/// Quasimetric RL.
///
/// Parameters: `quasimetric/...`, for transitions with a residual `transition/...`, for latent ones
/// also `encoder/...`, `dual`, and the policy's.
///
/// ```
/// use cm_baselines::{Qrl, QrlSettings};
/// use cm_learner::Dimensions;
/// use cm_nn::{DfdxBackend, Var};
///
/// let backend = DfdxBackend::new(0);
/// let qrl = Qrl::new(&backend, &QrlSettings::plane(), &Dimensions::new(2, 2, 0..2)?)?;
/// let here = Var::new(&backend, [1, 2], vec![0.0, 0.0])?;
/// let there = Var::new(&backend, [1, 2], vec![3.0, 4.0])?;
/// assert_eq!(qrl.state_distance(&here, &here)?.item()?, 0.0);
/// assert!(qrl.state_distance(&here, &there)?.item()? > 0.0);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Qrl<B: Backend> {
    settings: QrlSettings,
    dimensions: Dimensions,
    features: Features<B>,
    quasimetric: Quasimetric<B>,
    outcome: Outcome<B>,
    dual: Dual<B>,
    critic_group: Group<B>,
    actor: Actor<B>,
}

/// The networks of [`TransitionSettings`].
enum Outcome<B: Backend> {
    ActionInput,
    Latent { encoder: Mlp<B>, residual: Mlp<B> },
    Features { residual: Mlp<B> },
}

/// What the metric and its network see of some states.
struct Place<B: Backend> {
    /// What the network takes.
    input: Var<B>,
    /// What the metric compares.
    features: Var<B>,
}

impl<B: Backend> Place<B> {
    fn rows(&self, rows: Range<usize>) -> Result<Self> {
        let [input, features] = [&self.input, &self.features].map(|x| x.slice_rows(rows.clone()));
        Ok(Self { input: input?, features: features? })
    }

    fn stop_gradient(&self) -> Self {
        let [input, features] = [&self.input, &self.features].map(Var::stop_gradient);
        Self { input, features }
    }
}

/// The places of a batch's rows.
struct Places<B: Backend> {
    state: Place<B>,
    goal: Var<B>,
    next_state: Var<B>,
    /// The predicted outcome of the batch's actions, if it comes by the way.
    outcome: Option<Var<B>>,
}

impl<B: Backend> Places<B> {
    fn stop_gradient(&self) -> Self {
        let [goal, next_state] = [&self.goal, &self.next_state].map(Var::stop_gradient);
        Self { state: self.state.stop_gradient(), goal, next_state, outcome: None }
    }
}

impl<B: Backend> Qrl<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: &QrlSettings, dimensions: &Dimensions) -> Result<Self> {
        settings.check()?;
        let features = Features::new(backend, settings.features, dimensions)?;
        let (state, action) = (features.state_columns(), features.action_columns());
        let mut parameters = Parameters::new(backend);
        let change = |parameters: &mut _, size: usize, residual| {
            Mlp::new(parameters, "transition", size + action, residual, size)
        };
        let (outcome, columns) = match &settings.transition {
            TransitionSettings::ActionInput => (Outcome::ActionInput, state + action),
            TransitionSettings::Latent { size, encoder, residual } => {
                let encoder = Mlp::new(&mut parameters, "encoder", state, encoder, *size)?;
                let residual = change(&mut parameters, *size, residual)?;
                (Outcome::Latent { encoder, residual }, *size)
            }
            TransitionSettings::Features { residual } => {
                let size = settings.quasimetric.features;
                (Outcome::Features { residual: change(&mut parameters, size, residual)? }, state)
            }
        };
        let quasimetric =
            Quasimetric::new(&mut parameters, "quasimetric", columns, &settings.quasimetric)?;
        let QrlSettings { dual_start, dual_optimiser, .. } = *settings;
        let dual = Dual::new(&mut parameters, "dual", dual_start, dual_optimiser)?;
        Ok(Self {
            settings: settings.clone(),
            dimensions: dimensions.clone(),
            features,
            quasimetric,
            outcome,
            dual,
            critic_group: Group::adam("critic", parameters, settings.adam)?,
            actor: Actor::new(backend, &settings.actor, dimensions)?,
        })
    }

    /// The loss of the metric, the transition model and the multiplier, `[1, 1]`. Adds its terms to
    /// the metrics.
    pub fn critic_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        self.critic_loss_at(batch, &self.places(batch)?, metrics)
    }

    fn critic_loss_at(
        &self,
        batch: &Transitions<B>,
        places: &Places<B>,
        metrics: &mut Metrics<B>,
    ) -> Result<Var<B>> {
        let Self { settings, quasimetric, .. } = self;
        let goal = match settings.push_goals {
            PushGoals::Own => places.goal.clone(),
            PushGoals::Permuted => {
                let (backend, rows) = (batch.goal.backend(), batch.goal.rows());
                places.goal.gather_rows(&Var::permutation(backend, rows, streams::QRL_GOALS)?)?
            }
        };
        let (state, next_state) = (&places.state.features, &places.next_state);
        let outcome = match &places.outcome {
            Some(outcome) => outcome.clone(),
            None => self.outcome(&batch.state, &places.state, &batch.action)?,
        };

        // Sec. 3.2: push states and goals apart, hold transitions to their cost.
        let distance = quasimetric.rows(state, &goal)?;
        let push = push_loss(&distance, settings.push_offset, settings.push_sharpness)?;
        let transition = quasimetric.rows(state, next_state)?;
        let excess = transition_excess(&transition, settings.step_cost)?;
        let multiplier = match settings.multiplier {
            Multiplier::Softplus => self.dual.value()?.softplus()?,
            Multiplier::Exp => self.dual.value()?.exp()?,
        };
        let lagrangian = lagrangian(&push, &excess, &multiplier, settings.margin)?;

        // Sec. 3.4: the outcome of an action is where it led.
        let there = quasimetric.rows(&outcome, next_state)?;
        let back = quasimetric.rows(next_state, &outcome)?;
        let prediction = match settings.transition_error {
            TransitionError::Squared => latent_transition_loss(&there, &back)?,
            TransitionError::Plain => there.add(&back)?.mean(Over::All)?.scale(0.5)?,
        };

        let terms = [
            ("distance", distance.mean(Over::All)?),
            ("push", push),
            ("excess", excess),
            ("multiplier", multiplier),
            ("transition_loss", prediction.clone()),
        ];
        metrics.extend(terms.map(|(name, term)| (name, term.stop_gradient())));
        lagrangian.add(&prediction.scale(settings.transition_weight)?)
    }

    /// The policy's loss, `[1, 1]`: the distance from the outcome of its action to the goal, held
    /// to the data.
    pub fn policy_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        self.policy_loss_at(batch, &self.places(batch)?, metrics)
    }

    fn policy_loss_at(
        &self,
        batch: &Transitions<B>,
        places: &Places<B>,
        metrics: &mut Metrics<B>,
    ) -> Result<Var<B>> {
        let order = self.actor.goal_order(batch)?;
        let goal = order.of(batch.actor_goal())?;
        let goal_place = match batch.actor_goals {
            None => order.of(&places.goal)?,
            Some(_) => self.place(&goal)?.features,
        };
        let distance = |action: &Var<B>| {
            let outcome = self.outcome(&batch.state, &places.state, action)?;
            self.quasimetric.rows(&outcome, &goal_place)
        };
        self.actor.loss(batch, &goal, distance, metrics)
    }

    /// `d(s, g)` row by row, `[n, 1]`: the cost of the way from `s` to `g`.
    pub fn state_distance(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.quasimetric.rows(&self.place(state)?.features, &self.place(goal)?.features)
    }

    /// All by one product for each layer: small ones are slow.
    fn places(&self, batch: &Transitions<B>) -> Result<Places<B>> {
        let Transitions { state, action, goal, next_state, .. } = batch;
        let rows = state.rows();
        let (place, has_outcome) = match self.outcome {
            Outcome::ActionInput => {
                let states = Var::concat_rows(&[state, goal, next_state, state])?;
                let none = Var::full(state.backend(), [3 * rows, action.columns()], 0.0)?;
                let actions = Var::concat_rows(&[&none, action])?;
                let input = self.features.state_action(&states, &actions)?;
                let features = self.quasimetric.features(&input)?;
                (Place { input, features }, true)
            }
            _ => (self.place(&Var::concat_rows(&[state, goal, next_state])?)?, false),
        };
        let part = |index: usize| place.features.slice_rows(index * rows..(index + 1) * rows);
        Ok(Places {
            state: place.rows(0..rows)?,
            goal: part(1)?,
            next_state: part(2)?,
            outcome: has_outcome.then(|| part(3)).transpose()?,
        })
    }

    fn place(&self, state: &Var<B>) -> Result<Place<B>> {
        let seen = self.features.state(state)?;
        let input = match &self.outcome {
            Outcome::ActionInput => {
                let shape = [state.rows(), self.dimensions.action()];
                let no_action = Var::full(state.backend(), shape, 0.0)?;
                self.features.state_action(state, &no_action)?
            }
            Outcome::Latent { encoder, .. } => encoder.forward(&seen)?,
            Outcome::Features { .. } => seen,
        };
        let features = self.quasimetric.features(&input)?;
        Ok(Place { input, features })
    }

    /// What the metric compares of the predicted outcome of an action at a state, whose own place
    /// is given.
    fn outcome(&self, state: &Var<B>, place: &Place<B>, action: &Var<B>) -> Result<Var<B>> {
        let (before, residual) = match &self.outcome {
            Outcome::ActionInput => {
                return self.quasimetric.features(&self.features.state_action(state, action)?);
            }
            Outcome::Latent { residual, .. } => (&place.input, residual),
            Outcome::Features { residual } => (&place.features, residual),
        };
        let action = self.features.action(action)?;
        let change = residual.forward(&Var::concat_columns(&[before, &action])?)?;
        let after = before.add(&change)?;
        match self.outcome {
            Outcome::Features { .. } => Ok(after),
            _ => self.quasimetric.features(&after),
        }
    }
}

/// The metric of the method itself.
impl<B: Backend> StateDistance<B> for Qrl<B> {
    fn points(&self, state: &Var<B>) -> Result<Var<B>> {
        Ok(self.place(state)?.features)
    }

    fn rows(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        self.quasimetric.rows(from, to)
    }

    fn pairs(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        self.quasimetric.pairs(from, to)
    }

    fn fixed(&self) -> Result<Option<FixedDistance>> {
        let mut first = self.features.fixed_state()?;
        if let Outcome::Latent { encoder, .. } = &self.outcome {
            let Some(encoder) = encoder.fixed()? else { return Ok(None) };
            first = first.then(encoder);
        }
        let quasimetric = self.quasimetric.fixed()?;
        Ok(quasimetric.map(|quasimetric| FixedDistance::new(first, vec![quasimetric], 1.0)))
    }
}

impl<B: Backend> Learner<B> for Qrl<B> {
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()> {
        let mut critic = vec![&self.critic_group];
        critic.extend(self.dual.group());
        // To the policy's loss the metric is a constant.
        let mut constant = None;
        update.minimise("critic_loss", &critic, |metrics| {
            let places = self.places(batch)?;
            constant = Some(places.stop_gradient());
            self.critic_loss_at(batch, &places, metrics)
        })?;
        let Some(places) = constant else { return Ok(()) };
        update.minimise("policy_loss", &[self.actor.group()], |metrics| {
            self.policy_loss_at(batch, &places, metrics)
        })
    }

    fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.actor.act(state, goal)
    }

    /// `d(T(s, a), g)`, what remains to the goal after the action; the goal's action plays no part.
    /// With [`TransitionSettings::ActionInput`] and a zero action it is
    /// [`state_distance`](Qrl::state_distance).
    fn distance(
        &self,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
        _: &Var<B>,
    ) -> Result<Option<Var<B>>> {
        let outcome = self.outcome(state, &self.place(state)?, action)?;
        Ok(Some(self.quasimetric.rows(&outcome, &self.place(goal)?.features)?))
    }

    fn states(&self) -> Option<&dyn StateDistance<B>> {
        Some(self)
    }

    fn groups(&self) -> Vec<&Group<B>> {
        let mut groups = vec![&self.critic_group];
        groups.extend(self.dual.group());
        groups.push(self.actor.group());
        groups
    }

    fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }
}
