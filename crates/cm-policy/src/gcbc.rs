//! Goal-conditioned behaviour cloning.

use cm_learner::{Dimensions, Group, Learner, Transitions, Update};
use cm_nn::{AdamSettings, Backend, MlpSettings, Over, Var};
use serde::{Deserialize, Serialize};

use crate::{Actor, ActorSettings, BehaviourCloning, PolicySettings, Result};

/// Settings of [`Gcbc`]. The defaults are [`GcbcSettings::authors_code`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GcbcSettings {
    /// The policy.
    pub policy: PolicySettings,
    /// What moves it.
    pub adam: AdamSettings,
    /// The loss; minus the log-density unless the policy has none.
    pub behaviour_cloning: BehaviourCloning,
}

impl Default for GcbcSettings {
    fn default() -> Self {
        Self::authors_code()
    }
}

impl GcbcSettings {
    /// The paper's network, 4 x 512; Adam as for the policies of others
    /// ([`ActorSettings::paper_text`]).
    pub fn paper_text() -> Self {
        let ActorSettings { policy, adam, behaviour_cloning, .. } = ActorSettings::paper_text();
        Self { policy, adam, behaviour_cloning }
    }

    /// As the authors' code runs it on offline AntMaze: 4 x 1024, Adam 5e-5.
    pub fn authors_code() -> Self {
        let network = MlpSettings { hidden: vec![1024; 4], ..Default::default() };
        let policy = PolicySettings { network, ..Default::default() };
        Self { policy, adam: AdamSettings::default(), ..Self::paper_text() }
    }

    /// The 2-D experiment: a direction, squared error.
    pub fn plane() -> Self {
        let ActorSettings { policy, adam, behaviour_cloning, .. } = ActorSettings::plane();
        Self { policy, adam, behaviour_cloning }
    }

    /// OGBench's policy and rate.
    pub fn ogbench() -> Self {
        let ActorSettings { policy, adam, behaviour_cloning, .. } = ActorSettings::ogbench();
        Self { policy, adam, behaviour_cloning }
    }

    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.actor().check()
    }

    fn actor(&self) -> ActorSettings {
        let Self { policy, adam, behaviour_cloning } = self.clone();
        ActorSettings { policy, adam, behaviour_cloning, mixup: None, ..Default::default() }
    }
}

/// Learns `pi(a | s, g)` from actions and the goals they led to, and nothing else.
///
/// ```
/// use cm_learner::Dimensions;
/// use cm_nn::{DfdxBackend, MlpSettings};
/// use cm_policy::{Gcbc, GcbcSettings, PolicySettings};
///
/// let network = MlpSettings { hidden: vec![16], ..Default::default() };
/// let policy = PolicySettings { network, ..Default::default() };
/// let settings = GcbcSettings { policy, ..Default::default() };
/// let gcbc = Gcbc::new(&DfdxBackend::new(0), &settings, &Dimensions::new(4, 2, 0..2)?)?;
/// # Ok::<(), cm_policy::Error>(())
/// ```
pub struct Gcbc<B: Backend> {
    dimensions: Dimensions,
    actor: Actor<B>,
}

impl<B: Backend> Gcbc<B> {
    /// Refuses settings outside their ranges.
    pub fn new(backend: &B, settings: &GcbcSettings, dimensions: &Dimensions) -> Result<Self> {
        let actor = Actor::new(backend, &settings.actor(), dimensions)?;
        Ok(Self { dimensions: dimensions.clone(), actor })
    }

    /// Minus the mean log-density of the data's actions, `[1, 1]`.
    pub fn policy_loss(&self, batch: &Transitions<B>) -> Result<Var<B>> {
        self.actor.behaviour_cloning(batch)?.mean(Over::All)
    }
}

impl<B: Backend> Learner<B> for Gcbc<B> {
    fn losses(&self, batch: &Transitions<B>, update: &mut Update<B>) -> Result<()> {
        update.minimise("policy_loss", &[self.actor.group()], |_| self.policy_loss(batch))
    }

    fn act(&self, state: &Var<B>, goal: &Var<B>) -> Result<Var<B>> {
        self.actor.act(state, goal)
    }

    fn distance(&self, _: &Var<B>, _: &Var<B>, _: &Var<B>, _: &Var<B>) -> Result<Option<Var<B>>> {
        Ok(None)
    }

    fn groups(&self) -> Vec<&Group<B>> {
        vec![self.actor.group()]
    }

    fn dimensions(&self) -> &Dimensions {
        &self.dimensions
    }
}
