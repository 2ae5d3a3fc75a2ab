//! GCIQL, goal-conditioned implicit Q-learning, as in OGBench (Park et al. 2025): IQL's values, and
//! a policy that ascends them, held to the data.

use cm_learner::{Dimensions, Group, Learner, Metrics, Transitions, Update};
use cm_nn::check::Within;
use cm_nn::{Backend, Mlp, Parameters, Result, Twin, Var};
use cm_policy::{Actor, ActorSettings, Extraction};
use serde::{Deserialize, Serialize};

use crate::reward::squared_error;
use crate::{GoalValueSettings, expectile_loss};

/// Settings of [`Gciql`]. The default is [`GciqlSettings::ogbench`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GciqlSettings {
    /// How values are learned.
    pub value: GoalValueSettings,
    /// The policy: minus the value in the place of a distance, or
    /// [`Extraction::ValueAdvantage`].
    pub actor: ActorSettings,
}

impl Default for GciqlSettings {
    fn default() -> Self {
        Self::ogbench()
    }
}

impl GciqlSettings {
    /// OGBench's: expectile 0.9, weight 0.3 of the data's actions.
    pub fn ogbench() -> Self {
        let extraction = Extraction::ScaledDistance { alpha: 0.3 };
        let actor = ActorSettings { extraction, ..ActorSettings::ogbench() };
        Self { value: GoalValueSettings::default(), actor }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.value.check().within("value")?;
        self.actor.check_with_values().within("actor")
    }
}

/// Goal-conditioned implicit Q-learning.
///
/// Parameters: `value/...`, `critic_0/...`, `critic_1/...`, their slow copies `target_0/...`,
/// `target_1/...`, and the policy's.
///
/// ```
/// use cm_baselines::{Gciql, GciqlSettings};
/// use cm_learner::Dimensions;
/// use cm_nn::{DfdxBackend, Var};
///
/// let backend = DfdxBackend::new(0);
/// let gciql = Gciql::new(&backend, &GciqlSettings::ogbench(), &Dimensions::new(2, 2, 0..2)?)?;
/// let [state, goal] = [0.0, 3.0].map(|x| Var::full(&backend, [5, 2], x));
/// assert_eq!(gciql.value(&state?, &goal?)?.shape(), [5, 1]);
/// # Ok::<(), cm_nn::Error>(())
/// ```
pub struct Gciql<B: Backend> {
    settings: GciqlSettings,
    dimensions: Dimensions,
    value: Mlp<B>,
    critics: Twin<Mlp<B>>,
    targets: Twin<Mlp<B>>,
    value_group: Group<B>,
    critic_group: Group<B>,
    target_group: Group<B>,
    actor: Actor<B>,
}

impl<B: Backend> Gciql<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: &GciqlSettings, dimensions: &Dimensions) -> Result<Self> {
        settings.check()?;
        let GoalValueSettings { network, adam, target_decay, .. } = &settings.value;
        let (state, action) = (dimensions.state(), dimensions.action());
        let [mut of_value, mut of_critics, mut slow] = [0; 3].map(|_| Parameters::new(backend));
        let value = Mlp::new(&mut of_value, "value", 2 * state, network, 1)?;
        let twin = |parameters: &mut Parameters<B>, name| {
            Twin::new(name, |name| Mlp::new(parameters, name, 2 * state + action, network, 1))
        };
        let (critics, targets) = (twin(&mut of_critics, "critic")?, twin(&mut slow, "target")?);
        Ok(Self {
            settings: settings.clone(),
            dimensions: dimensions.clone(),
            value,
            critics,
            targets,
            target_group: Group::average_before("target", slow, &of_critics, *target_decay)?,
            value_group: Group::adam("value", of_value, *adam)?,
            critic_group: Group::adam("critic", of_critics, *adam)?,
            actor: Actor::new(backend, &settings.actor, dimensions)?,
        })
    }

    /// The loss of the values of states, `[1, 1]`: the expectile loss of `Q'(s, a, g) - V(s, g)`,
    /// `Q'` the smaller one of the slow copies.
    pub fn value_loss(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        let Transitions { state, action, goal, .. } = batch;
        let taken = smaller(&self.targets, state, action, goal)?.stop_gradient();
        expectile_loss(&taken.sub(&self.value(state, goal)?)?, self.settings.value.expectile)
    }

    /// The loss of the critics, `[1, 1]`: `mean (Q(s, a, g) - reward - discount V(s', g))^2` of
    /// each, added up.
    pub fn critic_loss(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        let next_value = self.value(&batch.next_state, &batch.goal)?;
        let target = self.settings.value.target(batch, &next_value)?;
        let seen = Var::concat_columns(&[&batch.state, &batch.goal, &batch.action])?;
        let error = |critic: &Mlp<B>| squared_error(&critic.forward(&seen)?, &target);
        self.critics.join(error, |first, second| first.add(second))
    }

    /// The policy's loss, `[1, 1]`.
    pub fn policy_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        let [goal, _] = self.actor.goals(batch)?;
        let value = |action: &Var<B>| smaller(&self.critics, &batch.state, action, &goal);
        if let Extraction::ValueAdvantage { sharpness } = self.settings.actor.extraction {
            let advantage = value(&batch.action)?.sub(&self.value(&batch.state, &goal)?)?;
            return self.actor.weighted_cloning(batch, &advantage, sharpness, metrics);
        }
        self.actor.loss(batch, &goal, |action| value(action)?.neg(), metrics)
    }

    /// `V(s, g)` row by row, `[n, 1]`.
    pub fn value(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.value.forward(&Var::concat_columns(&[state, goal])?)
    }
}

/// The smaller of two `Q(s, a, g)`, row by row.
fn smaller<B: Backend>(
    critics: &Twin<Mlp<B>>,
    state: &Var<B>,
    action: &Var<B>,
    goal: &Var<B>,
) -> Result<Var<B>> {
    let seen = Var::concat_columns(&[state, goal, action])?;
    critics.join(|critic| critic.forward(&seen), |first, second| first.minimum(second))
}

impl<B: Backend> Learner<B> for Gciql<B> {
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()> {
        update.minimise("value_loss", &[&self.value_group], |_| self.value_loss(batch))?;
        update.minimise("critic_loss", &[&self.critic_group], |_| self.critic_loss(batch))?;
        update.minimise("policy_loss", &[self.actor.group()], |metrics| {
            self.policy_loss(batch, metrics)
        })
    }

    fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.actor.act(state, goal)
    }

    /// `-Q(s, a, g)`; the goal's action plays no part.
    fn distance(
        &self,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
        _: &Var<B>,
    ) -> Result<Option<Var<B>>> {
        Ok(Some(smaller(&self.critics, state, action, goal)?.neg()?))
    }

    fn groups(&self) -> Vec<&Group<B>> {
        vec![&self.value_group, &self.critic_group, &self.target_group, self.actor.group()]
    }

    fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }
}
