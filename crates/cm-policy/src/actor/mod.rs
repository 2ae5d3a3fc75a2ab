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
        let pair = [batch.actor_goal(), &batch.goal_action];
        let backend = batch.goal.backend();
        let rows = batch.goal.rows();
        let [goal, goal_action] = match self.settings.goals {
            PolicyGoals::Own => pair.map(|var| Ok(var.clone())),
            PolicyGoals::Permuted => {
                let order = Var::permutation(backend, rows, streams::POLICY_GOALS)?;
                pair.map(|var| var.gather_rows(&order))
            }
            PolicyGoals::Rolled { probability } => {
                let uniform = Var::uniform(backend, [rows, 1], streams::POLICY_GOALS)?;
                // 1 where the number is below the probability.
                let other = uniform.affine(-1.0, probability)?.is_positive()?;
                pair.map(|var| var.add(&var.roll_rows(1)?.sub(var)?.mul(&other)?))
            }
        };
        Ok([goal?, goal_action?])
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
        let actions = self.policy.forward(&batch.state, &self.policy.goal(goal)?)?;
        let own_distance = distance(&self.choose(&actions, streams::POLICY_SAMPLE)?)?;
        let cloning = self.behaviour_cloning(batch)?;
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
        let goal = self.policy.goal(batch.actor_goal())?;
        let rows = [batch.state.clone(), goal, batch.action.clone()];
        let [state, goal, action] = match self.settings.mixup {
            Some(mixup) => mixup.mix(rows)?,
            None => rows,
        };
        let actions = self.policy.forward(&state, &goal)?;
        let difference = || self.choose(&actions, streams::CLONING_SAMPLE)?.sub(&action)?.square();
        match self.settings.behaviour_cloning {
            BehaviourCloning::Mse => difference()?.mean(Over::Columns),
            BehaviourCloning::SquaredLength => difference()?.sum(Over::Columns),
            BehaviourCloning::Mle => actions.log_density(&action)?.neg(),
        }
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
