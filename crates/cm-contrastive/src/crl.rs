//! Contrastive RL: a policy that maximises a contrastive critic.

use cm_learner::{Dimensions, Group, Learner, Metrics, Transitions, Update};
use cm_nn::check::Within;
use cm_nn::{AdamSettings, Backend, Parameters, Var};
use cm_policy::{Actor, ActorSettings};
use serde::{Deserialize, Serialize};

use crate::{ContrastiveSettings, Critic, CriticSettings, Result};

/// Settings of [`Crl`]. The default is [`CrlSettings::authors_code`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrlSettings {
    /// The critic.
    pub critic: CriticSettings,
    /// Its loss.
    pub contrastive: ContrastiveSettings,
    /// What moves it.
    pub adam: AdamSettings,
    /// The policy and its loss.
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
            contrastive: ContrastiveSettings::authors_code(),
            adam: AdamSettings { learning_rate: 1e-5, ..Default::default() },
            actor: ActorSettings::authors_code(),
        }
    }

    /// The 2-D experiment: the mean of 256 products, Adam as for the policy
    /// ([`ActorSettings::plane`]).
    pub fn plane() -> Self {
        let actor = ActorSettings::plane();
        Self {
            critic: CriticSettings::plane(),
            contrastive: ContrastiveSettings::paper_text(),
            adam: actor.adam,
            actor,
        }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.critic.check().within("critic")?;
        self.contrastive.check().within("contrastive")?;
        self.adam.check().within("adam")?;
        self.actor.check().within("actor")
    }
}

/// Contrastive RL: a critic by contrastive learning (Eq. 7, `eq:infonce_objective`), a policy that
/// maximises it.
pub struct Crl<B: Backend> {
    dimensions: Dimensions,
    contrastive: ContrastiveSettings,
    critic: Critic<B>,
    critic_group: Group<B>,
    actor: Actor<B>,
}

impl<B: Backend> Crl<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: &CrlSettings, dimensions: &Dimensions) -> Result<Self> {
        settings.check()?;
        let mut parameters = Parameters::new(backend);
        let critic = Critic::new(&mut parameters, &settings.critic, dimensions)?;
        Ok(Self {
            dimensions: dimensions.clone(),
            contrastive: settings.contrastive,
            critic,
            critic_group: Group::adam("contrastive", parameters, settings.adam)?,
            actor: Actor::new(backend, &settings.actor, dimensions)?,
        })
    }

    /// The critic.
    pub fn critic(&self) -> &Critic<B> {
        &self.critic
    }

    /// The contrastive loss of the critic over all pairs of the batch (Eq. 8,
    /// `eq:contrastive_loss`), `[1, 1]`.
    pub fn contrastive_loss(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        let phi = self.critic.phi(&batch.state, &batch.action)?;
        self.contrastive.of(&self.critic.pairs(&phi, &self.critic.psi(&batch.goal)?)?)
    }

    /// The policy's loss with minus the critic in the place of a distance, `[1, 1]`.
    pub fn policy_loss(&self, batch: &Transitions<B>, metrics: &mut Metrics<B>) -> Result<Var<B>> {
        let [goal, _] = self.actor.goals(batch)?;
        let psi = self.critic.psi(&goal)?;
        let minus_critic = |action: &Var<B>| {
            self.critic.rows(&self.critic.phi(&batch.state, action)?, &psi)?.neg()
        };
        self.actor.loss(batch, &goal, minus_critic, metrics)
    }
}

impl<B: Backend> Learner<B> for Crl<B> {
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()> {
        update.minimise("contrastive_loss", &[&self.critic_group], |_| {
            self.contrastive_loss(batch)
        })?;
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
        self.critic.successor_distance_rows([state, action], [goal, goal_action]).map(Some)
    }

    fn groups(&self) -> Vec<&Group<B>> {
        vec![&self.critic_group, self.actor.group()]
    }
    fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }
}
