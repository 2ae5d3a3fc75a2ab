//! Every method in every preset, at a small size.

use cm_baselines::{
    Gciql, GciqlSettings, Gcivl, GcivlSettings, Hiql, HiqlSettings, Iql, IqlSettings, QLearning,
    QLearningSettings, Qrl, QrlSettings, TransitionSettings,
};
use cm_contrastive::{Crl, CrlSettings};
use cm_distill::{Cmd1, Cmd1Settings, Cmd2, Cmd2Settings, PolicySees, Tmd, TmdSettings};
use cm_learner::{Dimensions, Learner};
use cm_nn::{Backend, Head, MlpSettings, QuasimetricSettings, Result};
use cm_policy::{Extraction, Gcbc, GcbcSettings};

/// Makes a learner.
pub type Make<B> = Box<dyn Fn(&B, &Dimensions) -> Result<Box<dyn Learner<B>>>>;

/// Names of methods and presets, and what makes each.
pub fn learners<B: Backend>() -> Vec<(String, Make<B>)> {
    let mut all: Vec<(String, Make<B>)> = Vec::new();
    for (name, mut settings) in [
        ("paper", Cmd1Settings::paper_text()),
        ("code", Cmd1Settings::authors_code()),
        ("plane", Cmd1Settings::plane()),
        ("OGBench", Cmd1Settings::ogbench()),
    ] {
        small_quasimetric(&mut settings.quasimetric);
        small(&mut settings.actor.policy.network);
        add(&mut all, format!("CMD-1 {name}"), move |b, d| Cmd1::new(b, &settings, d));
    }
    for (name, mut settings) in [
        ("paper", Cmd2Settings::paper_text()),
        ("code", Cmd2Settings::authors_code()),
        ("plane", Cmd2Settings::plane()),
    ] {
        small_quasimetric(&mut settings.quasimetric);
        small(&mut settings.critic.network);
        settings.critic.repr_dim = 8;
        small(&mut settings.actor.policy.network);
        add(&mut all, format!("CMD-2 {name}"), move |b, d| Cmd2::new(b, &settings, d));
    }
    for (name, mut settings) in [
        ("paper", CrlSettings::paper_text()),
        ("code", CrlSettings::authors_code()),
        ("original", CrlSettings::original()),
        ("plane", CrlSettings::plane()),
        ("OGBench", CrlSettings::ogbench()),
        ("OGBench AWR", weighted(CrlSettings::ogbench())),
    ] {
        small(&mut settings.critic.network);
        small(&mut settings.actor.policy.network);
        add(&mut all, format!("CRL {name}"), move |b, d| Crl::new(b, &settings, d));
    }
    for (name, mut settings) in [
        ("code", GcbcSettings::authors_code()),
        ("plane", GcbcSettings::plane()),
        ("OGBench", GcbcSettings::ogbench()),
    ] {
        small(&mut settings.policy.network);
        add(&mut all, format!("GCBC {name}"), move |b, d| Gcbc::new(b, &settings, d));
    }
    for (name, mut settings) in [
        ("plane", QrlSettings::plane()),
        ("original", QrlSettings::original()),
        ("OGBench", QrlSettings::ogbench()),
    ] {
        small_quasimetric(&mut settings.quasimetric);
        match &mut settings.transition {
            TransitionSettings::ActionInput => {}
            TransitionSettings::Latent { size, encoder, residual } => {
                *size = 8;
                small(encoder);
                small(residual);
            }
            TransitionSettings::Features { residual } => small(residual),
        }
        small(&mut settings.actor.policy.network);
        add(&mut all, format!("QRL {name}"), move |b, d| Qrl::new(b, &settings, d));
    }
    for (name, mut settings) in [
        ("plane", QLearningSettings::plane()),
        ("script", QLearningSettings::plane_authors_code()),
        ("original", QLearningSettings::original()),
    ] {
        small(&mut settings.network);
        small(&mut settings.actor.policy.network);
        add(&mut all, format!("Q-learning {name}"), move |b, d| QLearning::new(b, &settings, d));
    }
    for (name, mut settings) in
        [("antmaze", IqlSettings::antmaze()), ("plane", IqlSettings::plane())]
    {
        small(&mut settings.network);
        small(&mut settings.policy.network);
        add(&mut all, format!("IQL {name}"), move |b, d| Iql::new(b, &settings, d));
    }
    let moved = PolicySees::MovedFeatures;
    for (name, mut settings) in [
        ("released", TmdSettings::released()),
        ("paper", TmdSettings::paper_text()),
        ("revised", TmdSettings::revised()),
        ("plane", TmdSettings::plane()),
        ("features", TmdSettings { policy_sees: moved, ..TmdSettings::released() }),
    ] {
        small(&mut settings.network);
        small(&mut settings.actor.policy.network);
        settings.latent = 32;
        add(&mut all, format!("TMD {name}"), move |b, d| Tmd::new(b, &settings, &whole(d)?));
    }
    let mut gcivl = GcivlSettings::ogbench();
    small(&mut gcivl.value.network);
    small(&mut gcivl.actor.policy.network);
    add(&mut all, "GCIVL".to_owned(), move |b, d| Gcivl::new(b, &gcivl, d));
    let mut gciql = GciqlSettings::ogbench();
    small(&mut gciql.value.network);
    small(&mut gciql.actor.policy.network);
    add(&mut all, "GCIQL".to_owned(), move |b, d| Gciql::new(b, &gciql, d));
    let mut hiql = HiqlSettings::ogbench();
    small(&mut hiql.value.network);
    small(&mut hiql.policy.network);
    add(&mut all, "HIQL".to_owned(), move |b, d| Hiql::new(b, &hiql, d));
    all
}

/// The same sizes with goals that are whole states.
fn whole(dimensions: &Dimensions) -> Result<Dimensions> {
    Dimensions::new(dimensions.state(), dimensions.action(), 0..dimensions.state())
}

/// The policy by values of states.
fn weighted(mut settings: CrlSettings) -> CrlSettings {
    settings.actor.extraction = Extraction::ValueAdvantage { sharpness: 1.0 };
    settings
}

fn add<B: Backend, L: Learner<B> + 'static>(
    all: &mut Vec<(String, Make<B>)>,
    name: String,
    make: impl Fn(&B, &Dimensions) -> Result<L> + 'static,
) {
    all.push((name, Box::new(move |backend, d| Ok(Box::new(make(backend, d)?)))));
}

fn small(network: &mut MlpSettings) {
    network.hidden = vec![17, 16];
}

fn small_quasimetric(settings: &mut QuasimetricSettings) {
    small(&mut settings.network);
    settings.features = 16;
    if let Head::Iqe { groups, .. } = &mut settings.head {
        *groups = 4;
    }
}
