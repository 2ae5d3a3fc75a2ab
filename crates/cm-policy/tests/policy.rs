//! Densities, extraction losses and goals against closed forms.

use cm_learner::{Dimensions, Metrics, Transitions};
use cm_nn::testing::Exact;
use cm_nn::{DfdxBackend, MlpSettings, Over, Parameters, Var, gradients};
use cm_policy::{
    Actor, ActorSettings, BehaviourCloning, Extraction, GcbcSettings, Mixup, Policy, PolicyGoals,
    PolicyKind, PolicySettings,
};

type B = DfdxBackend;
const ROWS: usize = 12;

fn small(kind: PolicyKind) -> PolicySettings {
    let network = MlpSettings { hidden: vec![16, 16], ..Default::default() };
    PolicySettings { kind, network, ..Default::default() }
}

fn dimensions() -> Dimensions {
    Dimensions::new(3, 2, 1..3).unwrap()
}

fn batch(backend: &B) -> Transitions<B> {
    let normal = |columns, stream| Exact::normal([ROWS, columns], stream);
    let action = |stream| normal(2, stream).map_f32(|x| x.tanh()).var(backend).unwrap();
    let state = |stream| normal(3, stream).var(backend).unwrap();
    Transitions {
        state: state(1),
        action: action(2),
        next_state: state(3),
        goal: state(4),
        goal_action: action(5),
        steps_to_goal: Var::full(backend, [ROWS, 1], 1.0).unwrap(),
        actor_goals: None,
    }
}

/// A made-up distance: squared distance of the action from a point.
fn distance(action: &Var<B>) -> cm_nn::Result<Var<B>> {
    action.affine(1.0, -0.4)?.square()?.sum(Over::Columns)
}

fn exact_distance(action: &[f64]) -> f64 {
    action.iter().map(|a| (a - 0.4).powi(2)).sum()
}

#[test]
fn the_density_is_one_over_the_whole_range_of_actions() -> cm_nn::Result<()> {
    let backend = DfdxBackend::new(0);
    let dimensions = Dimensions::new(1, 1, 0..1)?;
    let mut parameters = Parameters::new(&backend);
    let policy = Policy::new(&mut parameters, &small(PolicyKind::TanhGaussian), &dimensions)?;
    // Wide, narrow, and pushed against either bound so that most of the mass is in a tail.
    for (mean, scale) in [(0.0, 1.0), (0.5, 0.3), (3.0, 1.0), (-4.5, 0.8)] {
        for (name, value) in [("mean", mean), ("scale", f32::ln(f32::exp(scale) - 1.0))] {
            parameters.get(&format!("policy/{name}/w")).unwrap().set(&[0.0; 16])?;
            parameters.get(&format!("policy/{name}/b")).unwrap().set(&[value])?;
        }
        // In u = artanh(a) the density is smooth: integrate exp(log-density) (1 - tanh(u)^2) by the
        // midpoint rule.
        let cells = 4000;
        let bound = 0.999_f64;
        let limit = bound.atanh();
        let width = 2.0 * limit / cells as f64;
        let points = (0..cells).map(|k| -limit + (k as f64 + 0.5) * width).collect::<Vec<_>>();
        let mut actions = points.iter().map(|u| u.tanh() as f32).collect::<Vec<_>>();
        actions.extend([-1.0, 1.0]);
        let count = actions.len();
        let state = Var::full(&backend, [count, 1], 0.0)?;
        let actions = Var::new(&backend, [count, 1], actions)?;
        let density = policy.forward(&state, &state)?.log_density(&actions)?.to_vec()?;
        let inside = points
            .iter()
            .zip(&density)
            .map(|(u, &log)| f64::from(log).exp() * (1.0 - u.tanh().powi(2)) * width);
        let tails = density[cells..].iter().map(|&log| f64::from(log).exp() * (1.0 - bound));
        let total = inside.sum::<f64>() + tails.sum::<f64>();
        assert!((total - 1.0).abs() < 2e-4, "mean {mean}, scale {scale}: {total}");
    }
    Ok(())
}

#[test]
fn samples_have_the_policy_s_distribution() -> cm_nn::Result<()> {
    let backend = DfdxBackend::new(7);
    let dimensions = Dimensions::new(1, 1, 0..1)?;
    let mut parameters = Parameters::new(&backend);
    let policy = Policy::new(&mut parameters, &small(PolicyKind::TanhGaussian), &dimensions)?;
    for (name, value) in [("mean", 0.3), ("scale", f32::ln(f32::exp(0.5) - 1.0))] {
        parameters.get(&format!("policy/{name}/w")).unwrap().set(&[0.0; 16])?;
        parameters.get(&format!("policy/{name}/b")).unwrap().set(&[value])?;
    }
    let count = 50_000;
    let state = Var::full(&backend, [count, 1], 0.0)?;
    let actions = policy.forward(&state, &state)?;
    let sample = actions.sample(0x100)?.to_vec()?;
    let before = sample.iter().map(|&a| f64::from(a).atanh()).collect::<Vec<_>>();
    let mean = before.iter().sum::<f64>() / count as f64;
    let deviation = before.iter().map(|u| (u - mean).powi(2)).sum::<f64>() / count as f64;
    assert!((mean - 0.3).abs() < 0.01 && (deviation.sqrt() - 0.5).abs() < 0.01);
    assert!((actions.mode()?.to_vec()?[0] - 0.3_f32.tanh()).abs() < 1e-6);
    Ok(())
}

#[test]
fn a_direction_has_length_one_and_no_density() -> cm_nn::Result<()> {
    let backend = DfdxBackend::new(0);
    let mut parameters = Parameters::new(&backend);
    let policy = Policy::new(&mut parameters, &small(PolicyKind::UnitVector), &dimensions())?;
    let batch = batch(&backend);
    let actions = policy.forward(&batch.state, &policy.goal(&batch.goal)?)?;
    let lengths = actions.sample(0x100)?.square()?.sum(Over::Columns)?.to_vec()?;
    assert!(lengths.iter().all(|length| (length - 1.0).abs() < 1e-4), "{lengths:?}");
    assert!(actions.log_density(&batch.action).is_err());
    Ok(())
}

#[test]
fn a_unit_gaussian_is_cut_where_it_acts_but_not_in_its_density() -> cm_nn::Result<()> {
    let backend = DfdxBackend::new(0);
    let dimensions = Dimensions::new(1, 2, 0..1)?;
    let mut parameters = Parameters::new(&backend);
    let policy = Policy::new(&mut parameters, &small(PolicyKind::UnitGaussian), &dimensions)?;
    parameters.get("policy/mean/w").unwrap().set(&[0.0; 32])?;
    parameters.get("policy/mean/b").unwrap().set(&[3.0, -0.5])?;
    let state = Var::full(&backend, [1, 1], 0.0)?;
    let actions = policy.forward(&state, &state)?;
    assert_eq!(actions.mode()?.to_vec()?, [1.0, -0.5]);
    assert!(actions.sample(0x100)?.to_vec()?.iter().all(|a| a.abs() <= 1.0));
    let action = Var::new(&backend, [1, 2], vec![1.0, 0.5])?;
    // Two standard deviations in one coordinate, one in the other.
    let wanted = -0.5 * (4.0 + 1.0) - std::f32::consts::TAU.ln();
    assert!((actions.log_density(&action)?.item()? - wanted).abs() < 1e-5);
    Ok(())
}

#[test]
fn extraction_losses_are_what_they_say() -> cm_nn::Result<()> {
    let backend = DfdxBackend::new(0);
    let batch = batch(&backend);
    let stored = Exact::read(&batch.action)?;
    for cloning in [BehaviourCloning::Mse, BehaviourCloning::SquaredLength] {
        for extraction in [
            Extraction::DistanceMinimisation { bc_coef: 0.2 },
            Extraction::ScaledDistance { alpha: 0.7 },
            Extraction::AdvantageWeighted { temperature: 0.15 },
            Extraction::ValueAdvantage { sharpness: 3.0 },
        ] {
            let settings = ActorSettings {
                policy: small(PolicyKind::TanhGaussian),
                extraction,
                behaviour_cloning: cloning,
                mixup: None,
                sampled: false,
                ..Default::default()
            };
            let actor = Actor::new(&backend, &settings, &dimensions())?;
            let advantage = Exact::normal([ROWS, 1], 9);
            let mut metrics = Metrics::new();
            let loss = match extraction {
                Extraction::ValueAdvantage { sharpness } => {
                    assert!(settings.check().is_err(), "most methods have no such advantage");
                    assert!(actor.loss(&batch, &batch.goal, distance, &mut metrics).is_err());
                    let advantage = advantage.var(&backend)?;
                    actor.weighted_cloning(&batch, &advantage, sharpness, &mut metrics)?.item()?
                }
                _ => actor.loss(&batch, &batch.goal, distance, &mut metrics)?.item()?,
            };

            let own = actor.act(&batch.state, &actor.policy().goal(&batch.goal)?)?;
            let own = Exact::read(&own)?;
            let rows = || 0..ROWS;
            let n = ROWS as f64;
            let columns = if cloning == BehaviourCloning::Mse { 2.0 } else { 1.0 };
            let cloned = |i: usize| {
                let terms = own.row(i).iter().zip(stored.row(i));
                terms.map(|(a, b)| (a - b).powi(2)).sum::<f64>() / columns
            };
            let wanted = match extraction {
                Extraction::DistanceMinimisation { bc_coef } => {
                    let b = f64::from(bc_coef);
                    let term = |i| (1.0 - b) * exact_distance(own.row(i)) + b * cloned(i);
                    rows().map(term).sum::<f64>() / n
                }
                Extraction::ScaledDistance { alpha } => {
                    // A positive distance over its own mean is 1.
                    1.0 + f64::from(alpha) * rows().map(cloned).sum::<f64>() / n
                }
                Extraction::AdvantageWeighted { temperature } => {
                    let advantage = rows()
                        .map(|i| exact_distance(own.row(i)) - exact_distance(stored.row(i)))
                        .collect::<Vec<_>>();
                    let mean = advantage.iter().sum::<f64>() / n;
                    let variance = advantage.iter().map(|a| (a - mean).powi(2)).sum::<f64>() / n;
                    let weights = advantage.iter().map(|a| {
                        ((a - mean) / variance.sqrt() / f64::from(temperature)).exp().min(100.0)
                    });
                    let weights = weights.collect::<Vec<_>>();
                    // The bound must matter for this to test it.
                    assert!(weights.contains(&100.0) && weights.iter().any(|&w| w < 100.0));
                    rows().map(|i| weights[i] * cloned(i)).sum::<f64>() / n
                }
                Extraction::ValueAdvantage { sharpness } => {
                    let weight = |i| (f64::from(sharpness) * advantage.at(i, 0)).exp().min(100.0);
                    assert!(rows().any(|i| weight(i) == 100.0), "the bound must matter");
                    rows().map(|i| weight(i) * cloned(i)).sum::<f64>() / n
                }
            };
            let error = (f64::from(loss) - wanted).abs();
            assert!(error < 1e-4 * wanted.abs(), "{cloning:?} {extraction:?}: {loss} {wanted}");
        }
    }
    Ok(())
}

/// The loss moves along its gradient as the gradient says, for every kind of loss; the random
/// numbers stay the same.
#[test]
fn gradients_of_extraction() -> cm_nn::Result<()> {
    let backend = DfdxBackend::new(5);
    let batch = batch(&backend);
    let smooth = |kind| {
        let mut settings = small(kind);
        settings.network.activation = cm_nn::Activation::Tanh;
        settings
    };
    use BehaviourCloning::{Mle, Mse, SquaredLength};
    for (kind, cloning) in [
        (PolicyKind::TanhGaussian, Mse),
        (PolicyKind::TanhGaussian, Mle),
        (PolicyKind::UnitVector, SquaredLength),
    ] {
        for extraction in [
            Extraction::DistanceMinimisation { bc_coef: 0.3 },
            Extraction::AdvantageWeighted { temperature: 2.0 },
        ] {
            for mixup in [None, Some(Mixup::default())] {
                let settings = ActorSettings {
                    policy: smooth(kind),
                    extraction,
                    behaviour_cloning: cloning,
                    mixup,
                    goals: PolicyGoals::Permuted,
                    sampled: true,
                    ..Default::default()
                };
                let actor = Actor::new(&backend, &settings, &dimensions())?;
                let parameters = actor.group().parameters();
                let [goal, _] = actor.goals(&batch)?;
                // The weights of advantage-weighted regression are constants for the gradient:
                // freeze them with the distance.
                let before = parameters.snapshot(0)?;
                let frozen = match extraction {
                    Extraction::AdvantageWeighted { .. } => {
                        let own =
                            actor.policy().forward(&batch.state, &actor.policy().goal(&goal)?)?;
                        Some(distance(&own.sample(cm_learner::streams::POLICY_SAMPLE)?)?)
                    }
                    _ => None,
                };
                let stored = distance(&batch.action)?;
                let calls = std::cell::Cell::new(0);
                let loss = || {
                    calls.set(0);
                    let measure = |action: &Var<B>| match &frozen {
                        Some(frozen) => {
                            calls.set(calls.get() + 1);
                            Ok(if calls.get() == 1 { frozen.clone() } else { stored.clone() })
                        }
                        None => distance(action),
                    };
                    actor.loss(&batch, &goal, measure, &mut Metrics::new())
                };
                let (_, gradients) = gradients(&backend, &[parameters], loss)?;
                let mut along = 0.0;
                let mut directions = Vec::new();
                for (parameter, stream) in parameters.iter().zip(40..) {
                    let gradient = Exact::read(&gradients.get(parameter).unwrap())?;
                    let direction = Exact::normal(parameter.shape(), stream);
                    along += gradient.dot(&direction);
                    directions.push((parameter, direction));
                }
                let step = 5e-4;
                let mut moved = [0.0; 2];
                for (value, sign) in moved.iter_mut().zip([1.0, -1.0]) {
                    parameters.restore(0, &before)?;
                    for (parameter, direction) in &directions {
                        let values = parameter.to_vec()?;
                        let moves = values.iter().zip(&direction.values);
                        let values = moves.map(|(x, d)| x + (sign * step * d) as f32);
                        parameter.set(&values.collect::<Vec<_>>())?;
                    }
                    *value = f64::from(loss()?.item()?);
                }
                let difference = (moved[0] - moved[1]) / (2.0 * step);
                let error = (along - difference).abs();
                let what = format!("{kind:?} {cloning:?} {extraction:?} {mixup:?}");
                assert!(error < 5e-3 * (1.0 + along.abs()), "{what}: {along} {difference}");
            }
        }
    }
    Ok(())
}

#[test]
fn goals_are_own_rolled_or_permuted() -> cm_nn::Result<()> {
    let backend = DfdxBackend::new(0);
    let mut batch = batch(&backend);
    // Row i's goal and goal action are all i.
    let numbered = |columns: usize| Exact::from_fn([ROWS, columns], |i, _| i as f64).var(&backend);
    (batch.goal, batch.goal_action) = (numbered(3)?, numbered(2)?);
    let goals = |goals| -> cm_nn::Result<Vec<f32>> {
        let settings =
            ActorSettings { policy: small(PolicyKind::TanhGaussian), goals, ..Default::default() };
        let actor = Actor::new(&backend, &settings, &dimensions())?;
        let [goal, action] = actor.goals(&batch)?;
        let column = goal.slice_columns(0..1)?.to_vec()?;
        assert_eq!(action.slice_columns(0..1)?.to_vec()?, column, "goal and action move together");
        Ok(column)
    };
    let own = (0..ROWS).map(|i| i as f32).collect::<Vec<_>>();
    let rolled = (0..ROWS).map(|i| ((i + ROWS - 1) % ROWS) as f32).collect::<Vec<_>>();
    assert_eq!(goals(PolicyGoals::Own)?, own);
    assert_eq!(goals(PolicyGoals::Rolled { probability: 0.0 })?, own);
    assert_eq!(goals(PolicyGoals::Rolled { probability: 1.0 })?, rolled);
    let half = goals(PolicyGoals::Rolled { probability: 0.5 })?;
    assert!(half != own && half != rolled);
    assert!((0..ROWS).all(|i| half[i] == own[i] || half[i] == rolled[i]));
    let mut permuted = goals(PolicyGoals::Permuted)?;
    assert_ne!(permuted, own);
    permuted.sort_by(f32::total_cmp);
    assert_eq!(permuted, own);
    Ok(())
}

#[test]
fn settings_are_checked_and_unknown_keys_refused() {
    let read = |json: &str| serde_json::from_str::<ActorSettings>(json);
    // What a file leaves out has its default, but a mixup that is not there is none.
    let without_mixup = ActorSettings { mixup: None, ..ActorSettings::authors_code() };
    assert_eq!(read("{}").unwrap(), without_mixup);
    let error = read(r#"{"bc_coeff": 0.1}"#).unwrap_err().to_string();
    assert!(error.contains("bc_coeff"), "{error}");
    for preset in
        [ActorSettings::paper_text(), ActorSettings::authors_code(), ActorSettings::plane()]
    {
        preset.check().unwrap();
        assert_eq!(read(&serde_json::to_string(&preset).unwrap()).unwrap(), preset);
    }
    for preset in [GcbcSettings::paper_text(), GcbcSettings::authors_code(), GcbcSettings::plane()]
    {
        let text = serde_json::to_string(&preset).unwrap();
        assert_eq!(serde_json::from_str::<GcbcSettings>(&text).unwrap(), preset);
    }
    let refused: [(&str, fn(&mut ActorSettings)); 6] = [
        ("bc_coef", |s| s.extraction = Extraction::DistanceMinimisation { bc_coef: 1.5 }),
        ("temperature", |s| s.extraction = Extraction::AdvantageWeighted { temperature: 0.0 }),
        ("bandwidth", |s| s.mixup = Some(Mixup { bandwidth: -1.0 })),
        ("probability", |s| s.goals = PolicyGoals::Rolled { probability: f32::NAN }),
        ("learning_rate", |s| s.adam.learning_rate = 0.0),
        ("behaviour_cloning", |s| {
            s.policy.kind = PolicyKind::UnitVector;
            s.behaviour_cloning = BehaviourCloning::Mle;
        }),
    ];
    for (name, change) in refused {
        let mut settings = ActorSettings::default();
        change(&mut settings);
        let error = settings.check().unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn a_batch_of_wrong_shapes_is_refused_by_name() {
    let backend = DfdxBackend::new(0);
    let mut batch = batch(&backend);
    batch.check(&dimensions()).unwrap();
    batch.goal_action = Var::full(&backend, [ROWS, 3], 0.0).unwrap();
    let error = batch.check(&dimensions()).unwrap_err().to_string();
    assert_eq!(error, "batch goal_action: expected [12, 2], found [12, 3]");
}
