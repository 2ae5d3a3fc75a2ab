//! Settings that methods begin with.

use cm_baselines::{
    GciqlSettings, GcivlSettings, GoalValueSettings, HiqlSettings, IqlSettings, QLearningSettings,
    QrlSettings,
};
use cm_contrastive::CrlSettings;
use cm_distill::{Cmd1Settings, Cmd2Settings, StateMetricSettings, TmdSettings};
use cm_learner::FeatureSettings;
use cm_nn::{Decay, Head, MlpSettings};
use cm_policy::{
    ActorSettings, BehaviourCloning, Extraction, GcbcSettings, PolicyGoals, PolicyKind,
    PolicySettings,
};

use super::{Method, MethodSettings};
use crate::{Error, Result};

impl Method {
    /// The names of its presets, the first of which is what it is best known by.
    ///
    /// ```
    /// use cm_train::{Method, MethodSettings};
    ///
    /// assert_eq!(Method::Tmd.presets(), ["released", "paper", "revised", "plane"]);
    /// for method in Method::ALL {
    ///     for name in method.presets() {
    ///         MethodSettings::preset(method, name)?.check()?;
    ///     }
    /// }
    /// # Ok::<(), cm_train::Error>(())
    /// ```
    pub const fn presets(self) -> &'static [&'static str] {
        match self {
            Self::Cmd1 => &["code", "paper", "contrastive-rl", "plane", "ogbench"],
            Self::Gcbc => &["code", "paper", "plane", "ogbench"],
            Self::Crl => &["code", "paper", "original", "plane", "ogbench"],
            Self::Cmd2 => &["code", "paper", "contrastive-rl", "plane"],
            Self::Qrl => &["original", "plane", "ogbench"],
            Self::QLearning => &["original", "plane", "plane-code"],
            Self::Iql => &["original", "antmaze", "plane"],
            Self::Tmd => &["released", "paper", "revised", "plane"],
            Self::Gcivl | Self::Gciql | Self::Hiql => &["ogbench", "plane"],
        }
    }
}

impl MethodSettings {
    /// The preset of that name ([`Method::presets`]), whatever the environment.
    pub fn preset(method: Method, name: &str) -> Result<Self> {
        Ok(match (method, name) {
            (Method::Cmd1, "code") => Self::Cmd1(Cmd1Settings::authors_code()),
            (Method::Cmd1, "paper") => Self::Cmd1(Cmd1Settings::paper_text()),
            (Method::Cmd1, "contrastive-rl") => Self::Cmd1(Cmd1Settings::contrastive_rl()),
            (Method::Cmd1, "ogbench") => Self::Cmd1(Cmd1Settings::ogbench()),
            (Method::Cmd2, "code") => Self::Cmd2(Cmd2Settings::authors_code()),
            (Method::Cmd2, "paper") => Self::Cmd2(Cmd2Settings::paper_text()),
            (Method::Cmd2, "contrastive-rl") => Self::Cmd2(Cmd2Settings::contrastive_rl()),
            (Method::Crl, "code") => Self::Crl(CrlSettings::authors_code()),
            (Method::Crl, "paper") => Self::Crl(CrlSettings::paper_text()),
            (Method::Crl, "original") => Self::Crl(CrlSettings::original()),
            (Method::Crl, "ogbench") => Self::Crl(CrlSettings::ogbench()),
            (Method::Gcbc, "code") => Self::Gcbc(GcbcSettings::authors_code()),
            (Method::Gcbc, "paper") => Self::Gcbc(GcbcSettings::paper_text()),
            (Method::Gcbc, "ogbench") => Self::Gcbc(GcbcSettings::ogbench()),
            (Method::Qrl, "original") => Self::Qrl(QrlSettings::original()),
            (Method::Qrl, "ogbench") => Self::Qrl(QrlSettings::ogbench()),
            (Method::QLearning, "original") => Self::QLearning(QLearningSettings::original()),
            (Method::QLearning, "plane") => Self::QLearning(QLearningSettings::plane()),
            (Method::QLearning, "plane-code") => Self::plane(method),
            (Method::Iql, "original") => Self::Iql(IqlSettings::original()),
            (Method::Iql, "antmaze") => Self::Iql(IqlSettings::antmaze()),
            (Method::Tmd, "released") => Self::Tmd(TmdSettings::released()),
            (Method::Tmd, "paper") => Self::Tmd(TmdSettings::paper_text()),
            (Method::Tmd, "revised") => Self::Tmd(TmdSettings::revised()),
            (Method::Gcivl, "ogbench") => Self::Gcivl(GcivlSettings::ogbench()),
            (Method::Gciql, "ogbench") => Self::Gciql(GciqlSettings::ogbench()),
            (Method::Hiql, "ogbench") => Self::Hiql(HiqlSettings::ogbench()),
            (_, "plane") => Self::plane(method),
            _ => {
                let known = method.presets().join(", ");
                return Err(Error::Setting {
                    setting: "preset".to_owned(),
                    expected: "one of the method's presets",
                    found: format!("`{name}`; {method} has {known}"),
                });
            }
        })
    }

    /// The settings of the paper's 2-D experiment, as the authors' script has them; for methods that
    /// it has not, their own with its networks, rates and discount.
    pub fn plane(method: Method) -> Self {
        match method {
            Method::Cmd1 => Self::Cmd1(Cmd1Settings::plane()),
            Method::Cmd2 => Self::Cmd2(Cmd2Settings::plane()),
            Method::Crl => Self::Crl(CrlSettings::plane()),
            Method::Qrl => Self::Qrl(QrlSettings::plane()),
            Method::QLearning => Self::QLearning(QLearningSettings::plane_authors_code()),
            Method::Gcbc => Self::Gcbc(GcbcSettings::plane()),
            Method::Iql => Self::Iql(IqlSettings::plane()),
            Method::Tmd => Self::Tmd(TmdSettings::plane()),
            Method::Gcivl => Self::Gcivl(plane_gcivl()),
            Method::Gciql => Self::Gciql(plane_gciql()),
            Method::Hiql => Self::Hiql(plane_hiql()),
        }
    }

    /// AntMaze as the authors' code runs it (or as each baseline's own), with hidden layers of
    /// these widths everywhere; QRL has as many layers as its authors' networks have, all of the
    /// first width.
    pub fn ant_maze(method: Method, hidden: &[usize]) -> Self {
        let mut settings = match method {
            Method::Cmd1 => Self::Cmd1(Cmd1Settings::authors_code()),
            Method::Cmd2 => Self::Cmd2(Cmd2Settings::authors_code()),
            Method::Crl => Self::Crl(CrlSettings::authors_code()),
            Method::Qrl => Self::Qrl(QrlSettings::original()),
            Method::QLearning => Self::QLearning(QLearningSettings::original()),
            Method::Gcbc => Self::Gcbc(GcbcSettings::authors_code()),
            Method::Iql => Self::Iql(IqlSettings::antmaze()),
            Method::Tmd => Self::Tmd(TmdSettings::released()),
            Method::Gcivl => Self::Gcivl(GcivlSettings::ogbench()),
            Method::Gciql => Self::Gciql(GciqlSettings::ogbench()),
            Method::Hiql => Self::Hiql(HiqlSettings::ogbench()),
        };
        match (&mut settings, hidden) {
            (Self::Qrl(_), &[width, ..]) => settings.set_width(width),
            _ => settings.set_hidden(hidden),
        }
        settings
    }

    /// AntMaze in minutes on a CPU: hidden layers of 2 x 256, 128 features in a quasimetric,
    /// learning rates of 5e-4 that stay, and policies that are held more closely to the data, which
    /// so short a training needs: the distance divided by its mean size, and twice the squared error
    /// of the policy's mode.
    pub fn ant_maze_small(method: Method) -> Self {
        let mut settings = Self::ant_maze(method, &[256, 256]);
        settings.set_hidden(&[256, 256]);
        settings.set_learning_rate(5e-4);
        settings.optimisers().into_iter().for_each(|adam| adam.decay = Decay::None);
        if let Some(quasimetric) = settings.quasimetric() {
            quasimetric.features = 128;
            if let Head::Iqe { groups, .. } = &mut quasimetric.head {
                *groups = 16;
            }
        }
        if let Some(actor) = settings.actor() {
            actor.extraction = Extraction::ScaledDistance { alpha: 2.0 };
            actor.behaviour_cloning = BehaviourCloning::Mse;
            (actor.sampled, actor.mixup) = (false, None);
        }
        settings
    }

    /// A start for data of one's own, whose states and actions are scaled
    /// ([`Scaling`](crate::Scaling)): the networks of the 2-D experiment, features for numbers
    /// around zero, actions with their size, a tanh-Gaussian policy, gradients clipped to length 1;
    /// and a metric on states alone beside CMD's with actions.
    pub fn own_data(method: Method) -> Self {
        let mut settings = match method {
            // Not the script's reward, which passes nothing back in time.
            Method::QLearning => Self::QLearning(QLearningSettings::plane()),
            other => Self::plane(other),
        };
        settings.set_hidden(&[64; 2]);
        if method != Method::Hiql {
            settings.policy().kind = PolicyKind::TanhGaussian;
        }
        let features = FeatureSettings::soft(20, 3.0, 0.25).with_sized_actions();
        settings.features().into_iter().for_each(|seen| *seen = features);
        settings.optimisers().into_iter().for_each(|adam| adam.clip = Some(1.0));
        match &mut settings {
            Self::Cmd1(cmd1) => {
                (cmd1.twin, cmd1.states) = (false, Some(StateMetricSettings::own_data()));
                cmd1.quasimetric.features = 128;
                cmd1.distance_divisor = 1.0;
            }
            Self::Cmd2(cmd2) => {
                cmd2.states = Some(StateMetricSettings::own_data());
                cmd2.quasimetric.features = 128;
                cmd2.distance_divisor = 1.0;
            }
            _ => {}
        }
        settings
    }
}

/// Values of the 2-D experiment, whose networks see coordinates as they are.
fn plane_values() -> GoalValueSettings {
    let ActorSettings { policy, adam, .. } = ActorSettings::plane();
    GoalValueSettings {
        network: MlpSettings { layer_norm: true, ..policy.network },
        discount: 0.8,
        target_decay: 0.99,
        adam,
        ..Default::default()
    }
}

/// The policy of the 2-D experiment by another extraction.
fn plane_actor(extraction: Extraction) -> ActorSettings {
    ActorSettings { extraction, goals: PolicyGoals::Own, ..ActorSettings::plane() }
}

fn plane_gcivl() -> GcivlSettings {
    let extraction = Extraction::ValueAdvantage { sharpness: 10.0 };
    GcivlSettings { value: plane_values(), actor: plane_actor(extraction) }
}

fn plane_gciql() -> GciqlSettings {
    let extraction = Extraction::ScaledDistance { alpha: 0.3 };
    GciqlSettings { value: plane_values(), actor: plane_actor(extraction) }
}

fn plane_hiql() -> HiqlSettings {
    let value = GoalValueSettings { expectile: 0.7, ..plane_values() };
    let network = MlpSettings { layer_norm: false, ..value.network.clone() };
    HiqlSettings {
        policy: PolicySettings { network, ..PolicySettings::ogbench() },
        adam: value.adam,
        value,
        ..HiqlSettings::ogbench()
    }
}
