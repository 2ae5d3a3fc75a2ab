//! One update of the authors' own learner against ours: every loss and every gradient.
//!
//! Reads every `cmd1_*`, `cmd2_*`, `crl_*` and `gcbc*` safetensors file in the directory named by
//! `CM_FIXTURES`, or the copies in `fixtures`. Sizes come from the files. Their runs had randomness
//! removed: goal actions rolled by one row, the policy's mode for its sample, no mixing.

use cm_contrastive::{ContrastiveLoss, ContrastiveSettings, CriticSettings, Crl, CrlSettings};
use cm_distill::{Cmd1, Cmd1Settings, Cmd2, Cmd2Settings, GoalActions};
use cm_learner::{Learner, Metrics};
use cm_nn::testing::{Suite, Tolerance};
use cm_nn::{
    Backend, Gradients, Head, MlpSettings, Parameter, QuasimetricSettings, Reduction, Result, Var,
};
use cm_policy::{
    ActorSettings, BehaviourCloning, Extraction, Gcbc, GcbcSettings, PolicyGoals, PolicySettings,
};

use crate::fixture::{self, Fixture};

/// A loss's name in the fixture, its value, its gradients.
type Loss<B> = (&'static str, Var<B>, Gradients<B>);

/// Losses and gradients are the authors', within ten times the suite's tolerance.
pub fn authors_code<B: Backend>(suite: &Suite<B>) -> Result<()> {
    for prefix in ["cmd1_", "cmd2_", "crl_", "gcbc"] {
        let files = fixture::files(prefix);
        assert!(!files.is_empty(), "no {prefix}*.safetensors");
        for file in files {
            check(&suite.make(0), &suite.tolerance, &Fixture::read(&file))?;
        }
    }
    Ok(())
}

fn check<B: Backend>(backend: &B, tolerance: &Tolerance, fixture: &Fixture) -> Result<()> {
    let dimensions = fixture.dimensions();
    let batch = fixture.batch(backend);
    let mut metrics = Metrics::new();
    let flag = |key| fixture.flag(key);
    let unknown = |key: &str| panic!("{}: `{key}` is not covered", fixture.name);
    if flag("twin_q") {
        unknown("twin_q");
    }
    if flag("use_gcbc") {
        let policy = PolicySettings { network: network(fixture), ..Default::default() };
        let settings = GcbcSettings { policy, ..GcbcSettings::authors_code() };
        let gcbc = Gcbc::new(backend, &settings, &dimensions)?;
        compare(fixture, tolerance, &gcbc, |gcbc| {
            let (loss, gradients) = gcbc.groups()[0].differentiate(|| gcbc.policy_loss(&batch))?;
            Ok(vec![("actor_loss", loss, gradients)])
        })
    } else if flag("onestep") {
        let settings = Cmd1Settings {
            quasimetric: quasimetric(fixture),
            potential: !flag("nopotential"),
            contrastive: contrastive(fixture),
            goal_actions: GoalActions::Rolled,
            actor: actor(fixture),
            ..Cmd1Settings::authors_code()
        };
        let cmd = Cmd1::new(backend, &settings, &dimensions)?;
        compare(fixture, tolerance, &cmd, |cmd| {
            let groups = cmd.groups();
            let (loss, gradients) = groups[0].differentiate(|| cmd.contrastive_loss(&batch))?;
            let policy = groups[1].differentiate(|| cmd.policy_loss(&batch, &mut metrics))?;
            Ok(vec![("quasimetric_loss", loss, gradients), ("actor_loss", policy.0, policy.1)])
        })
    } else if flag("contrastive_only") {
        let settings = CrlSettings {
            critic: critic(fixture),
            contrastive: contrastive(fixture),
            actor: actor(fixture),
            ..CrlSettings::authors_code()
        };
        let crl = Crl::new(backend, &settings, &dimensions)?;
        compare(fixture, tolerance, &crl, |crl| {
            let groups = crl.groups();
            let (loss, gradients) = groups[0].differentiate(|| crl.contrastive_loss(&batch))?;
            let policy = groups[1].differentiate(|| crl.policy_loss(&batch, &mut metrics))?;
            Ok(vec![("contrastive_loss", loss, gradients), ("actor_loss", policy.0, policy.1)])
        })
    } else {
        assert_eq!(fixture.number("lam_scale"), 1.0, "{}: lam_scale", fixture.name);
        let settings = Cmd2Settings {
            critic: critic(fixture),
            contrastive: contrastive(fixture),
            quasimetric: quasimetric(fixture),
            goal_actions: GoalActions::Rolled,
            margin: fixture.number("margin"),
            initial_lambda: fixture.number("lam_init"),
            actor: actor(fixture),
            ..Cmd2Settings::authors_code()
        };
        let cmd = Cmd2::new(backend, &settings, &dimensions)?;
        compare(fixture, tolerance, &cmd, |cmd| {
            let groups = cmd.groups();
            let contrastive = groups[0].differentiate(|| cmd.contrastive_loss(&batch))?;
            let distilled =
                groups[1].differentiate(|| cmd.distillation_loss(&batch, &mut metrics))?;
            let policy = groups[2].differentiate(|| cmd.policy_loss(&batch, &mut metrics))?;
            Ok(vec![
                ("contrastive_loss", contrastive.0, contrastive.1),
                ("quasimetric_loss", distilled.0, distilled.1),
                ("actor_loss", policy.0, policy.1),
            ])
        })
    }
}

fn network(fixture: &Fixture) -> MlpSettings {
    MlpSettings { hidden: fixture.sizes("hidden"), ..Default::default() }
}

fn critic(fixture: &Fixture) -> CriticSettings {
    let normalised = fixture.flag("repr_norm");
    assert_eq!(normalised, fixture.flag("adaptive_repr_norm_temp"), "{}", fixture.name);
    let repr_dim = fixture.size("repr_dim");
    CriticSettings { network: network(fixture), repr_dim, normalised, ..CriticSettings::default() }
}

fn contrastive(fixture: &Fixture) -> ContrastiveSettings {
    let loss = match (fixture.flag("use_cpc"), fixture.flag("use_nce")) {
        (true, _) => ContrastiveLoss::CPC,
        (_, true) => ContrastiveLoss::BinaryNce,
        _ => ContrastiveLoss::Symmetric,
    };
    ContrastiveSettings { loss, divisor: fixture.number("repr_dim").sqrt() }
}

fn quasimetric(fixture: &Fixture) -> QuasimetricSettings {
    let features = fixture.size("quasimetric_hidden_dim");
    let (head, features) = match fixture.text("quasimetric") {
        // The authors' epsilon inside the root.
        "mrn" => {
            let head = Head::Mrn { components: 1, epsilon: 1e-8 };
            (head, 2 * features)
        }
        "iqe" => {
            let groups = fixture.size("quasimetric_num_groups");
            (Head::Iqe { groups, reduction: Reduction::MAX_MEAN }, features)
        }
        "max" => (Head::Max, features),
        other => panic!("{}: unknown quasimetric {other}", fixture.name),
    };
    QuasimetricSettings { head, features, separate: false, network: network(fixture) }
}

fn actor(fixture: &Fixture) -> ActorSettings {
    let extraction = match fixture.flag("awr") {
        true => Extraction::AdvantageWeighted { temperature: fixture.number("awr_temp") },
        false => Extraction::DistanceMinimisation { bc_coef: fixture.number("bc_coef") },
    };
    let behaviour_cloning = match fixture.text("bc_loss") {
        "mse" => BehaviourCloning::Mse,
        "mle" => BehaviourCloning::Mle,
        other => panic!("{}: unknown bc_loss {other}", fixture.name),
    };
    ActorSettings {
        policy: PolicySettings { network: network(fixture), ..Default::default() },
        extraction,
        behaviour_cloning,
        mixup: None,
        goals: PolicyGoals::Own,
        sampled: false,
        ..Default::default()
    }
}

/// Copies the fixture's parameters into the learner, takes its losses, and compares.
fn compare<B: Backend, L: Learner<B>>(
    fixture: &Fixture,
    tolerance: &Tolerance,
    learner: &L,
    losses: impl FnOnce(&L) -> Result<Vec<Loss<B>>>,
) -> Result<()> {
    let name = &fixture.name;
    let parameters = learner
        .groups()
        .iter()
        .flat_map(|group| group.parameters().iter().cloned())
        .collect::<Vec<Parameter<B>>>();
    for parameter in &parameters {
        parameter.set(&fixture.tensor("params", parameter.name()))?;
    }
    let losses = losses(learner)?;
    for (loss, value, _) in &losses {
        let (found, wanted) = (value.item()?, fixture.loss(loss));
        let error = (found - wanted).abs() / wanted.abs();
        assert!(
            f64::from(error) < 10.0 * tolerance.values,
            "{name}: {loss} is {found}, theirs {wanted}"
        );
    }
    for (_, _, gradients) in &losses {
        let moved = parameters.iter().filter_map(|parameter| {
            let name = parameter.name();
            let found = gradients.get(parameter)?.to_vec();
            Some(found.map(|found| (name, found, fixture.tensor("grads", name))))
        });
        let moved = moved.collect::<Result<Vec<_>>>()?;
        let size = |values: &[f32]| norm(values.iter().copied());
        let largest = moved.iter().map(|(_, _, wanted)| size(wanted)).fold(0.0, f32::max);
        for (parameter, found, wanted) in &moved {
            let error = norm(found.iter().zip(wanted).map(|(a, b)| a - b));
            // Some are zero in exact arithmetic (the bias of a potential); there only rounding,
            // relative to the others, is left.
            let size = size(wanted).max(1e-4 * largest);
            let place = format!("{name}: gradient of {parameter}");
            let allowed = 10.0 * tolerance.gradients as f32 * size;
            assert!(error <= allowed, "{place} is off by {error:e} of {size:e}");
        }
    }
    let without_loss = parameters.iter().find(|&parameter| {
        losses.iter().all(|(_, _, gradients)| gradients.get(parameter).is_none())
    });
    assert!(without_loss.is_none(), "{name}: a parameter that no loss moves");
    // What the authors' learner holds and ours does not is moved by no loss.
    let ours = parameters.iter().map(|parameter| parameter.name()).collect::<Vec<_>>();
    for (other, values) in fixture.gradients_but(&ours) {
        assert!(values.iter().all(|&x| x == 0.0), "{name}: {other} has a gradient");
    }
    Ok(())
}

fn norm(values: impl Iterator<Item = f32>) -> f32 {
    values.map(|x| x * x).sum::<f32>().sqrt()
}
