//! Extracting a policy from a distance.

mod mixup;
mod settings;

use cm_learner::{Dimensions, Group, Metrics, Transitions, streams};
use cm_nn::{Backend, Over, Parameters, Var};

pub use settings::{ActorSettings, BehaviourCloning, Extraction, Mixup, PolicyGoals};

use crate::{ActionDistribution, Error, Policy, Result};

/// Weights of advantage-weighted regression stop growing here.
const LARGEST_WEIGHT: f32 = 100.0;
/// Added to a standard deviation that advantages are divided by.
const DEVIATION_EPSILON: f32 = 1e-8;
/// Hidden layers from this width on are worth joining.
const WIDE: usize = 256;
/// Added to the mean size that distances are divided by.
const SIZE_EPSILON: f32 = 1e-6;

/// A policy with its loss and optimiser.
///
/// ```
/// use cm_learner::{Dimensions, Transitions, Update};
/// use cm_nn::{DfdxBackend, MlpSettings, Over, Var};
/// use cm_policy::{Actor, ActorSettings, PolicySettings};
///
/// let backend = DfdxBackend::new(0);
/// let network = MlpSettings { hidden: vec![16], ..Default::default() };
/// let policy = PolicySettings { network, ..Default::default() };
/// let settings = ActorSettings { policy, ..Default::default() };
/// let dimensions = Dimensions::new(2, 2, 0..2)?;
/// let actor = Actor::new(&backend, &settings, &dimensions)?;
///
/// let matrix = |columns| Var::normal(&backend, [8, columns], 0x300);
/// let batch = Transitions {
///     state: matrix(2)?,
///     action: matrix(2)?.tanh()?,
///     next_state: matrix(2)?,
///     goal: matrix(2)?,
///     goal_action: matrix(2)?.tanh()?,
///     steps_to_goal: matrix(1)?,
///     actor_goals: None,
/// };
/// // A made-up distance: how far the action is from zero.
/// let distance = |action: &Var<_>| action.square()?.sum(Over::Columns);
/// let mut update = Update::new(&backend);
/// update.minimise("policy_loss", &[actor.group()], |metrics| {
///     actor.loss(&batch, &batch.goal, distance, metrics)
/// })?;
/// let metrics = update.finish(&[actor.group()])?;
/// assert!(metrics.iter().all(|(_, value)| value.item().is_ok_and(f32::is_finite)));
/// # Ok::<(), cm_policy::Error>(())
/// ```
pub struct Actor<B: Backend> {
    settings: ActorSettings,
    policy: Policy<B>,
    group: Group<B>,
}

/// Which of a batch's goals each row of the policy's loss has, as [`PolicyGoals`] says.
///
/// ```
/// use cm_nn::{DfdxBackend, Var};
/// use cm_policy::GoalOrder;
///
/// let backend = DfdxBackend::new(0);
/// let column = |values: [f32; 3]| Var::new(&backend, [3, 1], values.to_vec());
/// let goals = column([1.0, 2.0, 3.0])?;
/// let permuted = GoalOrder::Permuted(column([2.0, 0.0, 1.0])?);
/// assert_eq!(permuted.of(&goals)?.to_vec()?, [3.0, 1.0, 2.0]);
/// let rolled = GoalOrder::Rolled(column([1.0, 0.0, 0.0])?);
/// assert_eq!(rolled.of(&goals)?.to_vec()?, [3.0, 2.0, 3.0]);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub enum GoalOrder<B: Backend> {
    /// Its own.
    Own,
    /// That of a row drawn without repetition, `[n, 1]`.
    Permuted(Var<B>),
    /// Its own where this is 0, the one before where it is 1, `[n, 1]`.
    Rolled(Var<B>),
}

impl<B: Backend> GoalOrder<B> {
    /// The same of what is known of the batch's goals, `[n, k]`.
    pub fn of(&self, rows: &Var<B>) -> Result<Var<B>> {
        match self {
            Self::Own => Ok(rows.clone()),
            Self::Permuted(order) => rows.gather_rows(order),
            Self::Rolled(other) => rows.add(&rows.roll_rows(1)?.sub(rows)?.mul(other)?),
        }
    }
}

impl<B: Backend> Actor<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: &ActorSettings, dimensions: &Dimensions) -> Result<Self> {
        settings.check_with_values()?;
        let mut parameters = Parameters::new(backend);
        let policy = Policy::new(&mut parameters, &settings.policy, dimensions)?;
        let group = Group::adam("policy", parameters, settings.adam)?;
        Ok(Self { settings: settings.clone(), policy, group })
    }

    /// The policy.
    pub fn policy(&self) -> &Policy<B> {
        &self.policy
    }

    /// Its parameters and what moves them.
    pub fn group(&self) -> &Group<B> {
        &self.group
    }

    /// The mode at each state, given goal coordinates.
    pub fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.policy.forward(state, goal)?.mode()
    }

    /// The goals `(g_j, a'_j)` that the distance term of [`loss`](Self::loss) is about, as
    /// [`PolicyGoals`] says.
    pub fn goals(&self, batch: &Transitions<B>) -> Result<[Var<B>; 2]> {
        let order = self.goal_order(batch)?;
        Ok([order.of(batch.actor_goal())?, order.of(&batch.goal_action)?])
    }

    /// Which of a batch's goals each row of [`goals`](Self::goals) has.
    pub fn goal_order(&self, batch: &Transitions<B>) -> Result<GoalOrder<B>> {
        let (backend, rows) = (batch.goal.backend(), batch.goal.rows());
        Ok(match self.settings.goals {
            PolicyGoals::Own => GoalOrder::Own,
            PolicyGoals::Permuted => {
                GoalOrder::Permuted(Var::permutation(backend, rows, streams::POLICY_GOALS)?)
            }
            PolicyGoals::Rolled { probability } => {
                let uniform = Var::uniform(backend, [rows, 1], streams::POLICY_GOALS)?;
                // 1 where the number is below the probability.
                GoalOrder::Rolled(uniform.affine(-1.0, probability)?.is_positive()?)
            }
        })
    }

    /// The policy's loss (Eq. 23, `eq:policy_loss`), `[1, 1]`.
    ///
    /// `goal` is the first of [`goals`](Self::goals), and `distance` gives `d((s, a), (g, a'))` row
    /// by row, `[n, 1]`, as a function of the action for those goals. Adds `policy_distance` and
    /// `behaviour_cloning` to the metrics.
    pub fn loss(
        &self,
        batch: &Transitions<B>,
        goal: &Var<B>,
        distance: impl Fn(&Var<B>) -> Result<Var<B>>,
        metrics: &mut Metrics<B>,
    ) -> Result<Var<B>> {
        let rows = self.cloning_rows(batch)?;
        let [actions, cloned] = self.forward_both(batch, goal, &rows)?;
        let own_distance = distance(&self.choose(&actions, streams::POLICY_SAMPLE)?)?;
        let cloning = self.cloning(&cloned, &rows[2])?;
        metrics.push(("policy_distance", own_distance.mean(Over::All)?.stop_gradient()));
        metrics.push(("behaviour_cloning", cloning.mean(Over::All)?.stop_gradient()));
        match self.settings.extraction {
            Extraction::DistanceMinimisation { bc_coef } => {
                let distance = own_distance.mean(Over::All)?.scale(1.0 - bc_coef)?;
                distance.add(&cloning.mean(Over::All)?.scale(bc_coef)?)
            }
            Extraction::ScaledDistance { alpha } => {
                let size = own_distance.abs()?.mean(Over::All)?.stop_gradient();
                let distance =
                    own_distance.mean(Over::All)?.div(&size.affine(1.0, SIZE_EPSILON)?)?;
                distance.add(&cloning.mean(Over::All)?.scale(alpha)?)
            }
            Extraction::AdvantageWeighted { temperature } => {
                let advantage = own_distance.sub(&distance(&batch.action)?)?.stop_gradient();
                let weight = standardise(&advantage)?.scale(1.0 / temperature)?.exp()?;
                let weight = weight.clamp(0.0, LARGEST_WEIGHT)?;
                metrics.push(("weight", weight.mean(Over::All)?));
                weight.mul(&cloning)?.mean(Over::All)
            }
            // Refused by `check`, which every method without such values calls.
            Extraction::ValueAdvantage { .. } => Err(Error::Setting {
                setting: "extraction".to_owned(),
                expected: "one that does not need values of states",
                found: "value-advantage".to_owned(),
            }),
        }
    }

    /// The loss of [`Extraction::ValueAdvantage`], `[1, 1]`: behaviour cloning weighted by
    /// `min(100, exp(sharpness advantage))` with an advantage `[n, 1]` of each row's action. Adds
    /// the mean weight to the metrics.
    pub fn weighted_cloning(
        &self,
        batch: &Transitions<B>,
        advantage: &Var<B>,
        sharpness: f32,
        metrics: &mut Metrics<B>,
    ) -> Result<Var<B>> {
        let weight = advantage_weight(advantage, sharpness, LARGEST_WEIGHT)?;
        metrics.push(("weight", weight.mean(Over::All)?));
        weight.mul(&self.behaviour_cloning(batch)?)?.mean(Over::All)
    }

    /// How far the policy is from the data's action at each row and its own goal, `[n, 1]`, on
    /// mixed rows if so set.
    pub fn behaviour_cloning(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        let [state, goal, action] = self.cloning_rows(batch)?;
        self.cloning(&self.policy.forward(&state, &goal)?, &action)
    }

    /// State, goal coordinates and action of the rows that are cloned.
    fn cloning_rows(&self, batch: &Transitions<B>) -> Result<[Var<B>; 3]> {
        let goal = self.policy.goal(batch.actor_goal())?;
        let rows = [batch.state.clone(), goal, batch.action.clone()];
        match self.settings.mixup {
            Some(mixup) => mixup.mix(rows),
            None => Ok(rows),
        }
    }

    fn cloning(&self, actions: &ActionDistribution<B>, action: &Var<B>) -> Result<Var<B>> {
        let difference = || self.choose(actions, streams::CLONING_SAMPLE)?.sub(action)?.square();
        match self.settings.behaviour_cloning {
            BehaviourCloning::Mse => difference()?.mean(Over::Columns),
            BehaviourCloning::SquaredLength => difference()?.sum(Over::Columns),
            BehaviourCloning::Mle => actions.log_density(action)?.neg(),
        }
    }

    /// The policy at the batch's states for `goal`, and at the cloned rows.
    fn forward_both(
        &self,
        batch: &Transitions<B>,
        goal: &Var<B>,
        [state, cloned_goal, _]: &[Var<B>; 3],
    ) -> Result<[ActionDistribution<B>; 2]> {
        let ActorSettings { goals, mixup, policy, .. } = &self.settings;
        let goal = self.policy.goal(goal)?;
        if mixup.is_none() && *goals == PolicyGoals::Own {
            let both = self.policy.forward(&batch.state, &goal)?;
            return Ok([both.clone(), both]);
        }
        // Mixed rows are there later than the others, and narrow layers are fast.
        if mixup.is_some() || policy.network.hidden.iter().all(|&width| width < WIDE) {
            let own = self.policy.forward(&batch.state, &goal)?;
            return Ok([own, self.policy.forward(state, cloned_goal)?]);
        }
        // By one product for both: small ones are slow.
        let states = Var::concat_rows(&[&batch.state, state])?;
        let both = self.policy.forward(&states, &Var::concat_rows(&[&goal, cloned_goal])?)?;
        let rows = state.rows();
        Ok([both.rows(0..rows)?, both.rows(rows..2 * rows)?])
    }

    fn choose(&self, actions: &ActionDistribution<B>, stream: u32) -> Result<Var<B>> {
        if self.settings.sampled { actions.sample(stream) } else { actions.mode() }
    }
}

/// Weights of advantage-weighted regression, `min(largest, exp(sharpness * advantage))`, a constant.
///
/// ```
/// use cm_nn::{DfdxBackend, Var};
/// use cm_policy::advantage_weight;
///
/// let advantage = Var::new(&DfdxBackend::new(0), [2, 1], vec![0.0, 1e9])?;
/// let weights = advantage_weight(&advantage, 3.0, 100.0)?.to_vec()?;
/// assert!(weights[0] == 1.0 && (weights[1] - 100.0).abs() < 1e-3);
/// # Ok::<(), cm_policy::Error>(())
/// ```
pub fn advantage_weight<B: Backend>(
    advantage: &Var<B>,
    sharpness: f32,
    largest: f32,
) -> Result<Var<B>> {
    // The logarithm is cut, so that no weight overflows.
    let logarithm = advantage.stop_gradient().scale(sharpness)?;
    logarithm.clamp(f32::NEG_INFINITY, largest.ln())?.exp()
}

/// A column moved and scaled to mean 0 and standard deviation 1.
fn standardise<B: Backend>(x: &Var<B>) -> Result<Var<B>> {
    let centred = x.sub(&x.mean(Over::Rows)?)?;
    let deviation = centred.square()?.mean(Over::Rows)?.sqrt()?;
    centred.div(&deviation.affine(1.0, DEVIATION_EPSILON)?)
}
