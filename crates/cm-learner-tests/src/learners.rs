//! Every method in every preset, at a small size.

use cm_baselines::{Iql, IqlSettings, QLearning, QLearningSettings, Qrl, QrlSettings};
use cm_contrastive::{Crl, CrlSettings};
use cm_distill::{Cmd1, Cmd1Settings, Cmd2, Cmd2Settings};
use cm_learner::{Dimensions, Learner};
use cm_nn::{Backend, Head, MlpSettings, QuasimetricSettings, Result};
use cm_policy::{Gcbc, GcbcSettings};

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
        ("plane", CrlSettings::plane()),
    ] {
        small(&mut settings.critic.network);
        small(&mut settings.actor.policy.network);
        add(&mut all, format!("CRL {name}"), move |b, d| Crl::new(b, &settings, d));
    }
    for (name, mut settings) in
        [("code", GcbcSettings::authors_code()), ("plane", GcbcSettings::plane())]
    {
        small(&mut settings.policy.network);
        add(&mut all, format!("GCBC {name}"), move |b, d| Gcbc::new(b, &settings, d));
    }
    for (name, mut settings) in
        [("plane", QrlSettings::plane()), ("original", QrlSettings::original())]
    {
        small_quasimetric(&mut settings.quasimetric);
        if let cm_baselines::TransitionSettings::Latent { size, encoder, residual } =
            &mut settings.transition
        {
            *size = 8;
            small(encoder);
            small(residual);
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
    all
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
