//! Settings of every method.

use cm_baselines::{
    Gciql, GciqlSettings, Gcivl, GcivlSettings, Hiql, HiqlSettings, Iql, IqlSettings, QLearning,
    QLearningSettings, Qrl, QrlSettings, TransitionSettings,
};
use cm_contrastive::{ContrastiveLoss, Crl, CrlSettings};
use cm_distill::{Cmd1, Cmd1Settings, Cmd2, Cmd2Settings, Tmd, TmdSettings};
use cm_learner::{Dimensions, FeatureSettings, Learner};
use cm_nn::check::Within;
use cm_nn::{AdamSettings, Backend, Decay, MlpSettings, QuasimetricSettings};
use cm_policy::{ActorSettings, BehaviourCloning, Extraction, Gcbc, GcbcSettings, PolicySettings};
use serde::{Deserialize, Serialize};

use super::Method;
use crate::Result;

/// A method with its settings: in TOML a table of the method's name, `[method.cmd1]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MethodSettings {
    /// [`Cmd1`].
    Cmd1(Cmd1Settings),
    /// [`Cmd2`].
    Cmd2(Cmd2Settings),
    /// [`Crl`].
    Crl(CrlSettings),
    /// [`Qrl`].
    Qrl(QrlSettings),
    /// [`QLearning`].
    QLearning(QLearningSettings),
    /// [`Gcbc`].
    Gcbc(GcbcSettings),
    /// [`Iql`].
    Iql(IqlSettings),
    /// [`Tmd`].
    Tmd(TmdSettings),
    /// [`Gcivl`].
    Gcivl(GcivlSettings),
    /// [`Gciql`].
    Gciql(GciqlSettings),
    /// [`Hiql`].
    Hiql(HiqlSettings),
}

impl MethodSettings {
    /// Hidden layers of these widths in every network.
    pub fn set_hidden(&mut self, hidden: &[usize]) {
        self.networks().into_iter().for_each(|network| network.hidden = hidden.to_vec());
    }

    /// Hidden layers of this width, as many as every network has.
    pub(super) fn set_width(&mut self, width: usize) {
        self.networks().into_iter().for_each(|network| network.hidden.fill(width));
    }

    /// Every optimiser's learning rate.
    pub fn set_learning_rate(&mut self, rate: f32) {
        self.optimisers().into_iter().for_each(|adam| adam.learning_rate = rate);
    }

    /// Learning rates that fall do so over so many steps, which should be a run's.
    ///
    /// ```
    /// use cm_train::{Method, MethodSettings};
    ///
    /// let mut settings = MethodSettings::preset(Method::Qrl, "original")?;
    /// settings.set_decay_steps(50_000);
    /// let MethodSettings::Qrl(qrl) = settings else { unreachable!() };
    /// assert_eq!(qrl.adam.decay, cm_nn::Decay::Cosine { steps: 50_000, to: 0.0 });
    /// # Ok::<(), cm_train::Error>(())
    /// ```
    pub fn set_decay_steps(&mut self, steps: u64) {
        let of_run = u32::try_from(steps).unwrap_or(u32::MAX);
        for adam in self.optimisers() {
            if let Decay::Cosine { steps, .. } = &mut adam.decay {
                *steps = of_run;
            }
        }
    }

    /// The policy by regression on the data's actions, weighted by advantages, as the paper's text
    /// has it for every method with a distance and as the authors' code does it if asked to:
    /// likelihoods, of rows as they are. Methods whose policy does not come from a distance stay as
    /// they are.
    ///
    /// ```
    /// use cm_train::{Method, MethodSettings};
    ///
    /// let plain = MethodSettings::ant_maze(Method::Cmd1, &[512; 4]);
    /// let mut weighted = plain.clone();
    /// weighted.set_advantage_weighted(1.0);
    /// assert_ne!(weighted, plain);
    /// ```
    pub fn set_advantage_weighted(&mut self, temperature: f32) {
        if let Some(actor) = self.actor() {
            actor.extraction = Extraction::AdvantageWeighted { temperature };
            (actor.behaviour_cloning, actor.mixup) = (BehaviourCloning::Mle, None);
        }
    }

    /// The contrastive loss of methods that learn from one: CMD-1, CMD-2 (its critic's) and CRL.
    ///
    /// ```
    /// use cm_contrastive::ContrastiveLoss;
    /// use cm_train::{Method, MethodSettings};
    ///
    /// let mut settings = MethodSettings::ant_maze(Method::Crl, &[512; 4]);
    /// settings.set_contrastive_loss(ContrastiveLoss::CPC);
    /// let MethodSettings::Crl(crl) = settings else { unreachable!() };
    /// assert_eq!(crl.contrastive.loss, ContrastiveLoss::CPC);
    /// ```
    pub fn set_contrastive_loss(&mut self, loss: ContrastiveLoss) {
        match self {
            Self::Cmd1(s) => s.contrastive.loss = loss,
            Self::Cmd2(s) => s.contrastive.loss = loss,
            Self::Crl(s) => s.contrastive.loss = loss,
            _ => {}
        }
    }

    pub(super) fn optimisers(&mut self) -> Vec<&mut AdamSettings> {
        match self {
            Self::Cmd1(s) => vec![&mut s.adam, &mut s.actor.adam],
            Self::Cmd2(s) => vec![&mut s.critic_adam, &mut s.quasimetric_adam, &mut s.actor.adam],
            Self::Crl(s) => vec![&mut s.adam, &mut s.actor.adam],
            Self::Qrl(s) => vec![&mut s.adam, &mut s.actor.adam],
            Self::QLearning(s) => vec![&mut s.adam, &mut s.actor.adam],
            Self::Gcbc(s) => vec![&mut s.adam],
            Self::Iql(s) => vec![&mut s.value_adam, &mut s.critic_adam, &mut s.policy_adam],
            Self::Tmd(s) => vec![&mut s.adam, &mut s.actor.adam],
            Self::Gcivl(s) => vec![&mut s.value.adam, &mut s.actor.adam],
            Self::Gciql(s) => vec![&mut s.value.adam, &mut s.actor.adam],
            Self::Hiql(s) => vec![&mut s.value.adam, &mut s.adam],
        }
    }

    pub(super) fn networks(&mut self) -> Vec<&mut MlpSettings> {
        match self {
            Self::Cmd1(s) => vec![&mut s.quasimetric.network, &mut s.actor.policy.network],
            Self::Cmd2(s) => {
                vec![&mut s.critic.network, &mut s.quasimetric.network, &mut s.actor.policy.network]
            }
            Self::Crl(s) => vec![&mut s.critic.network, &mut s.actor.policy.network],
            Self::Qrl(s) => {
                let mut networks = vec![&mut s.quasimetric.network, &mut s.actor.policy.network];
                match &mut s.transition {
                    TransitionSettings::ActionInput => {}
                    TransitionSettings::Latent { encoder, residual, .. } => {
                        networks.extend([encoder, residual]);
                    }
                    TransitionSettings::Features { residual } => networks.push(residual),
                }
                networks
            }
            Self::QLearning(s) => vec![&mut s.network, &mut s.actor.policy.network],
            Self::Gcbc(s) => vec![&mut s.policy.network],
            Self::Iql(s) => vec![&mut s.network, &mut s.policy.network],
            Self::Tmd(s) => vec![&mut s.network, &mut s.actor.policy.network],
            Self::Gcivl(s) => vec![&mut s.value.network, &mut s.actor.policy.network],
            Self::Gciql(s) => vec![&mut s.value.network, &mut s.actor.policy.network],
            Self::Hiql(s) => vec![&mut s.value.network, &mut s.policy.network],
        }
    }

    pub(super) fn features(&mut self) -> Vec<&mut FeatureSettings> {
        match self {
            Self::Cmd1(s) => vec![&mut s.features, &mut s.actor.policy.features],
            Self::Cmd2(s) => {
                vec![&mut s.features, &mut s.critic.features, &mut s.actor.policy.features]
            }
            Self::Crl(s) => vec![&mut s.critic.features, &mut s.actor.policy.features],
            Self::Qrl(s) => vec![&mut s.features, &mut s.actor.policy.features],
            Self::QLearning(s) => vec![&mut s.features, &mut s.actor.policy.features],
            Self::Gcbc(s) => vec![&mut s.policy.features],
            Self::Iql(s) => vec![&mut s.features, &mut s.policy.features],
            Self::Tmd(s) => vec![&mut s.features, &mut s.actor.policy.features],
            Self::Gcivl(s) => vec![&mut s.actor.policy.features],
            Self::Gciql(s) => vec![&mut s.actor.policy.features],
            // Subgoals are no coordinates of states.
            Self::Hiql(_) => Vec::new(),
        }
    }

    /// How the policy is extracted from a distance; none if it is not.
    pub(super) fn actor(&mut self) -> Option<&mut ActorSettings> {
        match self {
            Self::Cmd1(s) => Some(&mut s.actor),
            Self::Cmd2(s) => Some(&mut s.actor),
            Self::Crl(s) => Some(&mut s.actor),
            Self::Qrl(s) => Some(&mut s.actor),
            Self::QLearning(s) => Some(&mut s.actor),
            Self::Tmd(s) => Some(&mut s.actor),
            Self::Gciql(s) => Some(&mut s.actor),
            Self::Gcbc(_) | Self::Iql(_) | Self::Gcivl(_) | Self::Hiql(_) => None,
        }
    }

    pub(super) fn policy(&mut self) -> &mut PolicySettings {
        match self {
            Self::Cmd1(s) => &mut s.actor.policy,
            Self::Cmd2(s) => &mut s.actor.policy,
            Self::Crl(s) => &mut s.actor.policy,
            Self::Qrl(s) => &mut s.actor.policy,
            Self::QLearning(s) => &mut s.actor.policy,
            Self::Gcbc(s) => &mut s.policy,
            Self::Iql(s) => &mut s.policy,
            Self::Tmd(s) => &mut s.actor.policy,
            Self::Gcivl(s) => &mut s.actor.policy,
            Self::Gciql(s) => &mut s.actor.policy,
            Self::Hiql(s) => &mut s.policy,
        }
    }

    pub(super) fn quasimetric(&mut self) -> Option<&mut QuasimetricSettings> {
        match self {
            Self::Cmd1(s) => Some(&mut s.quasimetric),
            Self::Cmd2(s) => Some(&mut s.quasimetric),
            Self::Qrl(s) => Some(&mut s.quasimetric),
            _ => None,
        }
    }

    /// Which method it is.
    pub fn method(&self) -> Method {
        match self {
            Self::Cmd1(_) => Method::Cmd1,
            Self::Cmd2(_) => Method::Cmd2,
            Self::Crl(_) => Method::Crl,
            Self::Qrl(_) => Method::Qrl,
            Self::QLearning(_) => Method::QLearning,
            Self::Gcbc(_) => Method::Gcbc,
            Self::Iql(_) => Method::Iql,
            Self::Tmd(_) => Method::Tmd,
            Self::Gcivl(_) => Method::Gcivl,
            Self::Gciql(_) => Method::Gciql,
            Self::Hiql(_) => Method::Hiql,
        }
    }

    /// Refuses settings outside their ranges; errors name the whole key,
    /// `method.cmd1.adam.epsilon`.
    pub fn check(&self) -> Result<()> {
        let checked = match self {
            Self::Cmd1(settings) => settings.check(),
            Self::Cmd2(settings) => settings.check(),
            Self::Crl(settings) => settings.check(),
            Self::Qrl(settings) => settings.check(),
            Self::QLearning(settings) => settings.check(),
            Self::Gcbc(settings) => settings.check(),
            Self::Iql(settings) => settings.check(),
            Self::Tmd(settings) => settings.check(),
            Self::Gcivl(settings) => settings.check(),
            Self::Gciql(settings) => settings.check(),
            Self::Hiql(settings) => settings.check(),
        };
        Ok(checked.within(self.method().key()).within("method")?)
    }

    /// A learner with fresh weights; refuses settings outside their ranges.
    pub fn learner<B: Backend>(
        &self,
        backend: &B,
        dimensions: &Dimensions,
    ) -> Result<Box<dyn Learner<B>>> {
        self.check()?;
        Ok(match self {
            Self::Cmd1(settings) => Box::new(Cmd1::new(backend, settings, dimensions)?),
            Self::Cmd2(settings) => Box::new(Cmd2::new(backend, settings, dimensions)?),
            Self::Crl(settings) => Box::new(Crl::new(backend, settings, dimensions)?),
            Self::Qrl(settings) => Box::new(Qrl::new(backend, settings, dimensions)?),
            Self::QLearning(settings) => Box::new(QLearning::new(backend, settings, dimensions)?),
            Self::Gcbc(settings) => Box::new(Gcbc::new(backend, settings, dimensions)?),
            Self::Iql(settings) => Box::new(Iql::new(backend, settings, dimensions)?),
            Self::Tmd(settings) => Box::new(Tmd::new(backend, settings, dimensions)?),
            Self::Gcivl(settings) => Box::new(Gcivl::new(backend, settings, dimensions)?),
            Self::Gciql(settings) => Box::new(Gciql::new(backend, settings, dimensions)?),
            Self::Hiql(settings) => Box::new(Hiql::new(backend, settings, dimensions)?),
        })
    }
}
