//! GCIVL, goal-conditioned implicit V-learning, as in OGBench (Park et al. 2025): IQL's expectile
//! without a critic of actions, and a policy that imitates what led to better states.

use cm_learner::{Dimensions, Group, Learner, Metrics, Transitions, Update};
use cm_nn::check::{Within, require};
use cm_nn::{Backend, Result, Var};
use cm_policy::{Actor, ActorSettings, Extraction};
use serde::{Deserialize, Serialize};

use crate::GoalValueSettings;
use crate::goal_values::Values;

/// Settings of [`Gcivl`]. The default is [`GcivlSettings::ogbench`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GcivlSettings {
    /// How values are learned.
    pub value: GoalValueSettings,
    /// The policy; its extraction is [`Extraction::ValueAdvantage`].
    pub actor: ActorSettings,
}

impl Default for GcivlSettings {
    fn default() -> Self {
        Self::ogbench()
    }
}

impl GcivlSettings {
    /// OGBench's: expectile 0.9, sharpness 10.
    pub fn ogbench() -> Self {
        let extraction = Extraction::ValueAdvantage { sharpness: 10.0 };
        let actor = ActorSettings { extraction, ..ActorSettings::ogbench() };
        Self { value: GoalValueSettings::default(), actor }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.value.check().within("value")?;
        self.sharpness()?;
        self.actor.check_with_values().within("actor")
    }

    fn sharpness(&self) -> Result<f32> {
        match self.actor.extraction {
            Extraction::ValueAdvantage { sharpness } => Ok(sharpness),
            other => {
                let expected = "`value-advantage`: this method has no values of actions";
                let found = format_args!("{other:?}");
                require(false, "actor.extraction", expected, found).map(|()| 0.0)
            }
        }
    }
}

/// Goal-conditioned implicit V-learning.
///
/// Parameters: `value_0/...`, `value_1/...`, their slow copies `target_0/...`, `target_1/...`, and
/// the policy's.
///
/// ```
/// use cm_baselines::{Gcivl, GcivlSettings};
/// use cm_learner::Dimensions;
/// use cm_nn::{DfdxBackend, Var};
///
/// let backend = DfdxBackend::new(0);
/// let gcivl = Gcivl::new(&backend, &GcivlSettings::ogbench(), &Dimensions::new(2, 2, 0..2)?)?;
/// let [state, goal] = [0.0, 3.0].map(|x| Var::full(&backend, [5, 2], x));
/// assert_eq!(gcivl.value(&state?, &goal?)?.shape(), [5, 1]);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Gcivl<B: Backend> {
    dimensions: Dimensions,
    values: Values<B>,
    actor: Actor<B>,
    sharpness: f32,
}

impl<B: Backend> Gcivl<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: &GcivlSettings, dimensions: &Dimensions) -> Result<Self> {
        settings.check()?;
        Ok(Self {
            dimensions: dimensions.clone(),
            values: Values::new(backend, &settings.value, 2 * dimensions.state())?,
            actor: Actor::new(backend, &settings.actor, dimensions)?,
            sharpness: settings.sharpness()?,
        })
    }

    /// The loss of the values, `[1, 1]`: both networks' expectile regression to
    /// `reward + discount V'(s', g)`.
    pub fn value_loss(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        let seen = |state| Var::concat_columns(&[state, &batch.goal]);
        self.values.loss(batch, &seen(&batch.state)?, &seen(&batch.next_state)?)
    }

    /// The policy's loss, `[1, 1]`: behaviour cloning weighted by
    /// `min(100, exp(sharpness (V(s', g) - V(s, g))))`.
    pub fn policy_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        let [goal, _] = self.actor.goals(batch)?;
        let seen = |state| Var::concat_columns(&[state, &goal]);
        let advantage = self.values.advantage(&seen(&batch.state)?, &seen(&batch.next_state)?)?;
        self.actor.weighted_cloning(batch, &advantage, self.sharpness, metrics)
    }

    /// `V(s, g)` row by row, `[n, 1]`: the mean of both networks.
    pub fn value(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.values.mean(&Var::concat_columns(&[state, goal])?)
    }
}

impl<B: Backend> Learner<B> for Gcivl<B> {
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()> {
        update.minimise("value_loss", &[&self.values.group], |_| self.value_loss(batch))?;
        update.minimise("policy_loss", &[self.actor.group()], |metrics| {
            self.policy_loss(batch, metrics)
        })
    }

    fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.actor.act(state, goal)
    }

    /// `-V(s, g)`; actions play no part.
    fn distance(
        &self,
        state: &Var<B>,
        _: &Var<B>,
        goal: &Var<B>,
        _: &Var<B>,
    ) -> Result<Option<Var<B>>> {
        Ok(Some(self.value(state, goal)?.neg()?))
    }

    fn groups(&self) -> Vec<&Group<B>> {
        vec![&self.values.group, &self.values.target_group, self.actor.group()]
    }

    fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }
}
