//! Our learners with the settings of a file.

use cm_baselines::{
    Gciql, GciqlSettings, Gcivl, GcivlSettings, GoalReward, GoalValueSettings, Hiql, HiqlSettings,
    Qrl, QrlSettings, TransitionSettings,
};
use cm_contrastive::{CriticSettings, Crl, CrlSettings};
use cm_distill::{Cmd1, Cmd1Settings, Cut, PolicySees, Tmd, TmdSettings};
use cm_learner::Learner;
use cm_nn::{AdamSettings, Backend, Head, MlpSettings, QuasimetricSettings, Reduction, Result};
use cm_policy::{ActorSettings, Extraction, Gcbc, GcbcSettings, PolicySettings};

use super::file::File;
use super::names::Theirs;

/// A learner, and what of its metrics is the sum of which of theirs.
pub(super) struct Made<B: Backend> {
    pub(super) learner: Box<dyn Learner<B>>,
    pub(super) losses: &'static [(&'static str, &'static [&'static str])],
}

/// Numbers of a component of OGBench's IQE.
const IQE_COMPONENT: usize = 8;

/// Where the file has our parameter.
pub(super) fn place(file: &File, ours: &str) -> Theirs {
    let agent = file.text("agent_name");
    let components = match agent {
        "cmd" => Some(file.size("mrn_components")),
        "tmd" if !file.flag("use_iqe") => Some(file.size("components")),
        _ => None,
    };
    let mrn = components.map(|components| file.size("latent_dim") / components);
    let last =
        if file.has("value_hidden_dims") { file.sizes("value_hidden_dims").len() } else { 0 };
    let policy_sees_features = agent == "tmd" && file.flag("use_latent");
    Theirs::of(agent, ours, last, mrn, policy_sees_features)
}

pub(super) fn make<B: Backend>(backend: &B, file: &File) -> Result<Made<B>> {
    for key in ["encoder", "frame_stack"] {
        assert!(file.is_null(key), "{}: `{key}` is not covered", file.name);
    }
    let covered = !file.flag("discrete") && file.flag("const_std");
    assert!(covered, "{}: other than Gaussian policies are not covered", file.name);
    let dimensions = file.dimensions();
    Ok(match file.text("agent_name") {
        "tmd" => Made {
            learner: Box::new(Tmd::new(backend, &tmd(file), &dimensions)?),
            losses: &[
                ("critic_loss", &["critic/critic_loss"]),
                ("contrastive", &["critic/contrastive_loss"]),
                ("action_invariance", &["critic/action_invariance_loss"]),
                ("temporal_invariance", &["critic/backup_loss"]),
                ("policy_loss", &["actor/actor_loss"]),
            ],
        },
        "cmd" => Made {
            learner: Box::new(Cmd1::new(backend, &cmd(file), &dimensions)?),
            losses: &[
                ("contrastive_loss", &["critic/contrastive_loss"]),
                ("policy_loss", &["actor/actor_loss"]),
            ],
        },
        "crl" => Made {
            learner: Box::new(Crl::new(backend, &crl(file), &dimensions)?),
            losses: match file.text("actor_loss") {
                "awr" => &[
                    ("contrastive_loss", &["critic/contrastive_loss"]),
                    ("value_loss", &["value/contrastive_loss"]),
                    ("policy_loss", &["actor/actor_loss"]),
                ],
                _ => &[
                    ("contrastive_loss", &["critic/contrastive_loss"]),
                    ("policy_loss", &["actor/actor_loss"]),
                ],
            },
        },
        "qrl" => Made {
            learner: Box::new(Qrl::new(backend, &qrl(file), &dimensions)?),
            losses: &[
                ("critic_loss", &["value/total_loss", "dynamics/dynamics_loss"]),
                ("push", &["value/d_neg_loss"]),
                ("excess", &["value/d_pos_loss"]),
                ("multiplier", &["value/lam"]),
                ("transition_loss", &["dynamics/dynamics_loss"]),
                ("policy_loss", &["actor/actor_loss"]),
            ],
        },
        "gcbc" => {
            let ActorSettings { policy, adam, behaviour_cloning, .. } = actor(file, None);
            let settings = GcbcSettings { policy, adam, behaviour_cloning };
            Made {
                learner: Box::new(Gcbc::new(backend, &settings, &dimensions)?),
                losses: &[("policy_loss", &["actor/actor_loss"])],
            }
        }
        "gcivl" => {
            let extraction = Extraction::ValueAdvantage { sharpness: file.number("alpha") };
            let actor = actor(file, Some(extraction));
            let settings = GcivlSettings { value: value(file), actor };
            Made {
                learner: Box::new(Gcivl::new(backend, &settings, &dimensions)?),
                losses: &[
                    ("value_loss", &["value/value_loss"]),
                    ("policy_loss", &["actor/actor_loss"]),
                ],
            }
        }
        "gciql" => {
            let settings = GciqlSettings { value: value(file), actor: with_values(file) };
            Made {
                learner: Box::new(Gciql::new(backend, &settings, &dimensions)?),
                losses: &[
                    ("value_loss", &["value/value_loss"]),
                    ("critic_loss", &["critic/critic_loss"]),
                    ("policy_loss", &["actor/actor_loss"]),
                ],
            }
        }
        "hiql" => Made {
            learner: Box::new(Hiql::new(backend, &hiql(file), &dimensions)?),
            losses: &[
                ("value_loss", &["value/value_loss"]),
                ("low_loss", &["low_actor/actor_loss"]),
                ("high_loss", &["high_actor/actor_loss"]),
            ],
        },
        other => panic!("{}: unknown learner {other}", file.name),
    })
}

fn adam(file: &File) -> AdamSettings {
    AdamSettings { learning_rate: file.number("lr"), ..Default::default() }
}

fn network(file: &File) -> MlpSettings {
    let (hidden, layer_norm) = (file.sizes("value_hidden_dims"), file.flag("layer_norm"));
    MlpSettings { hidden, layer_norm, ..MlpSettings::ogbench() }
}

fn policy(file: &File) -> PolicySettings {
    let PolicySettings { mut network, kind, features, output } = PolicySettings::ogbench();
    network.hidden = file.sizes("actor_hidden_dims");
    PolicySettings { network, kind, features, output }
}

fn actor(file: &File, extraction: Option<Extraction>) -> ActorSettings {
    let ogbench = ActorSettings::ogbench();
    let extraction = extraction.unwrap_or(ogbench.extraction);
    ActorSettings { policy: policy(file), adam: adam(file), extraction, ..ogbench }
}

/// Of learners without values of states.
fn ddpg(file: &File) -> ActorSettings {
    actor(file, Some(Extraction::ScaledDistance { alpha: file.number("alpha") }))
}

/// Of learners that have them.
fn with_values(file: &File) -> ActorSettings {
    match file.text("actor_loss") {
        "ddpgbc" => ddpg(file),
        "awr" => {
            let sharpness = file.number("alpha");
            actor(file, Some(Extraction::ValueAdvantage { sharpness }))
        }
        other => panic!("{}: unknown actor_loss {other}", file.name),
    }
}

fn value(file: &File) -> GoalValueSettings {
    GoalValueSettings {
        network: network(file),
        reward: match file.flag("gc_negative") {
            true => GoalReward::StepCost,
            false => GoalReward::Success,
        },
        discount: file.number("discount"),
        expectile: file.number("expectile"),
        target_decay: 1.0 - file.number("tau"),
        adam: adam(file),
    }
}

/// Theirs has 1e-6 under each root, ours a number for each feature.
fn mrn(components: usize, features: usize) -> Head {
    Head::Mrn { components, epsilon: 1e-6 * (2 * components) as f64 / features as f64 }
}

fn tmd(file: &File) -> TmdSettings {
    let (features, components) = (file.size("latent_dim"), file.size("components"));
    let head = match file.flag("use_iqe") {
        true => {
            // Their weight is of the mean, ours of the maximum; it is never moved.
            let logit = file.output("params/modules_alpha_raw/value").map_or(0.0, |raw| -raw[0]);
            let reduction = Reduction::MaxMean { logit: f64::from(logit) };
            Head::Iqe { groups: features / components, reduction }
        }
        false => mrn(components, features),
    };
    let zeta = file.number("zeta");
    // The version of 2026 has this key, and one weight for both invariances.
    let revised = file.has("use_action_for_distance");
    let covered = !revised || file.flag("use_action_for_distance");
    assert!(covered, "{}: distances without actions are not covered", file.name);
    TmdSettings {
        head,
        latent: features,
        network: network(file),
        adam: adam(file),
        discount: file.number("discount"),
        contrastive_divisor: (features as f32).sqrt(),
        action_invariance: if revised { zeta } else { 1.0 },
        stop_phi: file.flag("stopgrad_phi_invariance"),
        temporal_invariance: zeta,
        stop_psi: file.flag("stopgrad_psi_backup"),
        own_goals: file.number("diag_backup"),
        cut: Cut::Linear { beyond: file.number("t") },
        policy_sees: match (file.flag("use_latent"), file.flag("freeze_enc_for_actor_grad")) {
            (false, _) => PolicySees::States,
            (true, true) => PolicySees::Features,
            (true, false) => PolicySees::MovedFeatures,
        },
        actor: ddpg(file),
        ..TmdSettings::released()
    }
}

fn cmd(file: &File) -> Cmd1Settings {
    let features = file.size("latent_dim");
    let head = mrn(file.size("mrn_components"), features);
    let ogbench = Cmd1Settings::ogbench();
    Cmd1Settings {
        quasimetric: QuasimetricSettings {
            head,
            features,
            separate: false,
            network: network(file),
        },
        contrastive: cm_contrastive::ContrastiveSettings {
            divisor: (features as f32).sqrt(),
            ..ogbench.contrastive
        },
        adam: adam(file),
        actor: ddpg(file),
        ..ogbench
    }
}

fn crl(file: &File) -> CrlSettings {
    let repr_dim = file.size("latent_dim");
    CrlSettings {
        critic: CriticSettings {
            network: network(file),
            repr_dim,
            divisor: (repr_dim as f32).sqrt(),
            ..CriticSettings::ogbench()
        },
        adam: adam(file),
        actor: with_values(file),
        ..CrlSettings::ogbench()
    }
}

fn qrl(file: &File) -> QrlSettings {
    assert_eq!(file.text("quasimetric_type"), "iqe", "{}: quasimetric_type", file.name);
    assert_eq!(file.text("actor_loss"), "ddpgbc", "{}: actor_loss", file.name);
    let features = file.size("latent_dim");
    let groups = features / IQE_COMPONENT;
    QrlSettings {
        quasimetric: QuasimetricSettings {
            head: Head::Iqe { groups, reduction: Reduction::MAX_MEAN },
            features,
            separate: false,
            network: network(file),
        },
        transition: TransitionSettings::Features { residual: network(file) },
        margin: file.number("eps"),
        adam: adam(file),
        actor: ddpg(file),
        ..QrlSettings::ogbench()
    }
}

fn hiql(file: &File) -> HiqlSettings {
    assert!(!file.flag("low_actor_rep_grad"), "{}: low_actor_rep_grad", file.name);
    HiqlSettings {
        value: value(file),
        representation: file.size("rep_dim"),
        policy: policy(file),
        adam: adam(file),
        low_sharpness: file.number("low_alpha"),
        high_sharpness: file.number("high_alpha"),
    }
}
