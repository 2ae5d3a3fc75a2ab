//! Contrastive RL: a policy that maximises a contrastive critic.

use cm_learner::{Dimensions, Group, Learner, Metrics, StateDistance, Transitions, Update};
use cm_nn::check::Within;
use cm_nn::{AdamSettings, Backend, Parameters, Twin, Var};
use cm_policy::{Actor, ActorSettings, Extraction};
use serde::{Deserialize, Serialize};

use crate::{ContrastiveLoss, ContrastiveSettings, Critic, CriticSettings, Result};

/// Settings of [`Crl`]. The default is [`CrlSettings::authors_code`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrlSettings {
    /// The critic.
    pub critic: CriticSettings,
    /// Whether there are two critics, of which the policy maximises the smaller; default false.
    pub twin: bool,
    /// Its loss.
    pub contrastive: ContrastiveSettings,
    /// What moves it.
    pub adam: AdamSettings,
    /// The policy and its loss. [`Extraction::ValueAdvantage`] has a critic of states alone learned
    /// beside, whose values it subtracts.
    pub actor: ActorSettings,
}

impl Default for CrlSettings {
    fn default() -> Self {
        Self::authors_code()
    }
}

impl CrlSettings {
    /// As the paper writes it, with its learning rate 5e-6 of the contrastive network.
    pub fn paper_text() -> Self {
        Self {
            critic: CriticSettings::paper_text(),
            twin: false,
            contrastive: ContrastiveSettings::paper_text(),
            adam: AdamSettings { learning_rate: 5e-6, ..Default::default() },
            actor: ActorSettings::paper_text(),
        }
    }

    /// As the authors' code runs it on offline AntMaze; Adam 1e-5 for the critic, 5e-5 for the
    /// policy.
    pub fn authors_code() -> Self {
        Self {
            critic: CriticSettings::authors_code(),
            twin: false,
            contrastive: ContrastiveSettings::authors_code(),
            adam: AdamSettings { learning_rate: 1e-5, ..Default::default() },
            actor: ActorSettings::authors_code(),
        }
    }

    /// As contrastive RL's authors run it on offline AntMaze: two critics of 16 features, 2 x 1024,
    /// Adam 3e-4, [`ActorSettings::contrastive_rl`]; with CPC, which they have beside binary NCE
    /// and which the paper compares with.
    ///
    /// ```
    /// use cm_contrastive::CrlSettings;
    ///
    /// let settings = CrlSettings::original();
    /// settings.check()?;
    /// assert!(settings.twin && settings.critic.repr_dim == 16);
    /// # Ok::<(), cm_contrastive::Error>(())
    /// ```
    pub fn original() -> Self {
        let actor = ActorSettings::contrastive_rl();
        let network = actor.policy.network.clone();
        Self {
            critic: CriticSettings { network, repr_dim: 16, ..CriticSettings::paper_text() },
            twin: true,
            contrastive: ContrastiveSettings { loss: ContrastiveLoss::CPC, divisor: 1.0 },
            adam: actor.adam,
            actor,
        }
    }

    /// The 2-D experiment: the mean of 256 products, Adam as for the policy
    /// ([`ActorSettings::plane`]).
    pub fn plane() -> Self {
        let actor = ActorSettings::plane();
        Self {
            critic: CriticSettings::plane(),
            twin: false,
            contrastive: ContrastiveSettings::paper_text(),
            adam: actor.adam,
            actor,
        }
    }

    /// OGBench's: two critics, every pair classified alone, Adam 3e-4.
    pub fn ogbench() -> Self {
        let actor = ActorSettings::ogbench();
        Self {
            critic: CriticSettings::ogbench(),
            twin: true,
            contrastive: ContrastiveSettings { loss: ContrastiveLoss::BinaryNce, divisor: 1.0 },
            adam: actor.adam,
            actor,
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.critic.check().within("critic")?;
        self.contrastive.check().within("contrastive")?;
        self.adam.check().within("adam")?;
        self.actor.check_with_values().within("actor")
    }
}

/// Contrastive RL: a critic by contrastive learning (Eq. 7, `eq:infonce_objective`), a policy that
/// maximises it.
///
/// Parameters: those of [`Critic`], a second one's `contrastive_1/...` if twin, those of the critic
/// of states `value/...` if there is one, and the policy's.
pub struct Crl<B: Backend> {
    dimensions: Dimensions,
    contrastive: ContrastiveSettings,
    critics: Twin<Critic<B>>,
    critic_group: Group<B>,
    value: Option<Value<B>>,
    actor: Actor<B>,
}

/// A critic of states alone, and how strongly the policy prefers actions that are better.
struct Value<B: Backend> {
    critic: Critic<B>,
    group: Group<B>,
    sharpness: f32,
}

impl<B: Backend> Crl<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: &CrlSettings, dimensions: &Dimensions) -> Result<Self> {
        settings.check()?;
        let mut parameters = Parameters::new(backend);
        let names = ["contrastive", "contrastive_1"];
        let critics = Twin::one_or_two(names, settings.twin, |name| {
            Critic::named(name, &mut parameters, &settings.critic, dimensions)
        })?;
        let value = match settings.actor.extraction {
            Extraction::ValueAdvantage { sharpness } => {
                let mut own = Parameters::new(backend);
                let critic = Critic::of_states("value", &mut own, &settings.critic, dimensions)?;
                Some(Value { critic, group: Group::adam("value", own, settings.adam)?, sharpness })
            }
            _ => None,
        };
        Ok(Self {
            dimensions: dimensions.clone(),
            contrastive: settings.contrastive,
            critics,
            value,
            critic_group: Group::adam("contrastive", parameters, settings.adam)?,
            actor: Actor::new(backend, &settings.actor, dimensions)?,
        })
    }

    /// The critic, or the first of two.
    pub fn critic(&self) -> &Critic<B> {
        &self.critics.members()[0]
    }

    /// The contrastive loss of the critic over all pairs of the batch (Eq. 8,
    /// `eq:contrastive_loss`), `[1, 1]`; the mean over both critics if twin.
    pub fn contrastive_loss(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        let loss = |critic: &Critic<B>| {
            let phi = critic.phi(&batch.state, &batch.action)?;
            self.contrastive.of(&critic.pairs(&phi, &critic.psi(&batch.goal)?)?)
        };
        self.critics.join(loss, |first, second| first.add(second)?.scale(0.5))
    }

    /// The policy's loss with minus the critic (the smaller one) in the place of a distance,
    /// `[1, 1]`.
    pub fn policy_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        let [goal, _] = self.actor.goals(batch)?;
        if let Some(Value { critic, sharpness, .. }) = &self.value {
            let value = critic.rows(&critic.phi_of_state(&batch.state)?, &critic.psi(&goal)?)?;
            let advantage = self.smaller(&batch.state, &batch.action, &goal)?.sub(&value)?;
            return self.actor.weighted_cloning(batch, &advantage, *sharpness, metrics);
        }
        let minus_critic = |action: &Var<B>| self.smaller(&batch.state, action, &goal)?.neg();
        self.actor.loss(batch, &goal, minus_critic, metrics)
    }

    /// `f(s, a, g)` row by row, the smaller of the two if twin.
    fn smaller(&self, state: &Var<B>, action: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        let value =
            |critic: &Critic<B>| critic.rows(&critic.phi(state, action)?, &critic.psi(goal)?);
        self.critics.join(value, |first, second| first.minimum(second))
    }

    /// `compare` of each critic with `phi` of the starts, `psi` of the goals and `f` of the goals
    /// with themselves, the larger of the two if twin.
    fn larger_of_points(
        &self,
        from: &Var<B>,
        to: &Var<B>,
        compare: impl Fn(&Critic<B>, &Var<B>, &Var<B>, &Var<B>) -> Result<Var<B>>,
    ) -> Result<Var<B>> {
        let members = self.critics.members();
        let width = from.columns() / members.len();
        let half = (width - 1) / 2;
        let of = |index: usize| {
            let first = index * width;
            let phi = from.slice_columns(first..first + half)?;
            let psi = to.slice_columns(first + half..first + 2 * half)?;
            let own = to.slice_columns(first + 2 * half..first + width)?;
            compare(&members[index], &phi, &psi, &own)
        };
        match members.len() {
            1 => of(0),
            _ => of(0)?.maximum(&of(1)?),
        }
    }
}

/// `f(g, 0, g) - f(s, 0, g)`: a point is `phi(s, 0)`, `psi(s)` and `f(s, 0, s)` of each critic, one
/// beside the other. Not a quasimetric.
impl<B: Backend> StateDistance<B> for Crl<B> {
    fn points(&self, state: &Var<B>) -> Result<Var<B>> {
        let none = Var::full(state.backend(), [state.rows(), self.dimensions.action()], 0.0)?;
        let point = |critic: &Critic<B>| {
            let (phi, psi) = (critic.phi(state, &none)?, critic.psi(state)?);
            Var::concat_columns(&[&phi, &psi, &critic.rows(&phi, &psi)?])
        };
        self.critics.join(point, |first, second| Var::concat_columns(&[first, second]))
    }

    fn rows(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        self.larger_of_points(from, to, |critic, phi, psi, own| own.sub(&critic.rows(phi, psi)?))
    }

    fn pairs(&self, from: &Var<B>, to: &Var<B>) -> Result<Var<B>> {
        self.larger_of_points(from, to, |critic, phi, psi, own| {
            own.transpose()?.sub(&critic.pairs(phi, psi)?)
        })
    }
}

impl<B: Backend> Learner<B> for Crl<B> {
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()> {
        update.minimise("contrastive_loss", &[&self.critic_group], |_| {
            self.contrastive_loss(batch)
        })?;
        if let Some(Value { critic, group, .. }) = &self.value {
            update.minimise("value_loss", &[group], |_| {
                let phi = critic.phi_of_state(&batch.state)?;
                self.contrastive.of(&critic.pairs(&phi, &critic.psi(&batch.goal)?)?)
            })?;
        }
        update.minimise("policy_loss", &[self.actor.group()], |metrics| {
            self.policy_loss(batch, metrics)
        })
    }

    fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.actor.act(state, goal)
    }

    /// The critic's successor distance (Eq. 16, `eq:dsd_upper_bound`).
    fn distance(
        &self,
        state: &Var<B>,
        action: &Var<B>,
        goal: &Var<B>,
        goal_action: &Var<B>,
    ) -> Result<Option<Var<B>>> {
        let distance = |critic: &Critic<B>| {
            critic.successor_distance_rows([state, action], [goal, goal_action])
        };
        self.critics.join(distance, |first, second| first.maximum(second)).map(Some)
    }

    fn without_action(&self) -> Option<&dyn StateDistance<B>> {
        Some(self)
    }

    fn groups(&self) -> Vec<&Group<B>> {
        let mut groups = vec![&self.critic_group];
        groups.extend(self.value.as_ref().map(|value| &value.group));
        groups.push(self.actor.group());
        groups
    }
    fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }
}
