//! TMD where no fixture covers it: the paper's losses, refusals, the metric on states.

use cm_distill::{Cut, InvariantActions, PolicySees, Tmd, TmdSettings};
use cm_learner::{Dimensions, Learner, Metrics, StateDistance, Transitions};
use cm_nn::{Activation, DfdxBackend, Head, MlpSettings, Var};

type B = DfdxBackend;
const ROWS: usize = 9;

fn dimensions() -> Dimensions {
    Dimensions::new(3, 2, 0..3).unwrap()
}

fn batch(backend: &B) -> Transitions<B> {
    let matrix = |columns, stream| Var::normal(backend, [ROWS, columns], stream).unwrap();
    Transitions {
        state: matrix(3, 0x300),
        action: matrix(2, 0x301).tanh().unwrap(),
        next_state: matrix(3, 0x302),
        goal: matrix(3, 0x303),
        goal_action: matrix(2, 0x304).tanh().unwrap(),
        steps_to_goal: Var::full(backend, [ROWS, 1], 1.0).unwrap(),
        actor_goals: None,
    }
}

fn small(settings: TmdSettings) -> TmdSettings {
    let network = MlpSettings {
        hidden: vec![12],
        activation: Activation::Silu,
        layer_norm: false,
        ..settings.network.clone()
    };
    let mut settings = TmdSettings { network: network.clone(), latent: 16, ..settings };
    settings.head = Head::Mrn { components: 2, epsilon: 1e-7 };
    settings.actor.policy.network = network;
    settings
}

/// `phi` has no part in what is stopped, so the loss moves along its gradient as that says.
#[test]
fn the_gradient_in_phi_is_the_slope_of_the_loss() {
    // Cuts that some terms reach and others do not.
    for cut in [Cut::Clip { at: -0.2 }, Cut::Linear { beyond: 0.1 }] {
        for own_goals in [0.0, 0.4] {
            let settings = TmdSettings {
                cut,
                own_goals,
                action_invariance: 0.7,
                temporal_invariance: 0.9,
                ..small(TmdSettings::paper_text())
            };
            assert_eq!(settings.invariant_actions, InvariantActions::Permuted);
            let backend = DfdxBackend::new(4);
            let tmd = Tmd::new(&backend, &settings, &dimensions()).unwrap();
            let batch = batch(&backend);
            let loss = || tmd.critic_loss(&batch, &mut Metrics::new());
            let groups = tmd.groups();
            let (_, gradients) = groups[0].differentiate(loss).unwrap();
            let parameters = groups[0].parameters();
            let read = |p| -> Vec<f32> { cm_nn::Parameter::to_vec(p).unwrap() };
            let start = parameters.iter().map(read).collect::<Vec<_>>();
            let slopes = parameters.iter().map(|p| gradients.get(p).unwrap().to_vec().unwrap());
            let slopes = slopes.collect::<Vec<_>>();
            let length = slopes.iter().flatten().map(|x| f64::from(x * x)).sum::<f64>().sqrt();
            let at = |step: f64| {
                for ((parameter, start), slope) in parameters.iter().zip(&start).zip(&slopes) {
                    let moved = start.iter().zip(slope).map(|(&x, &slope)| {
                        (f64::from(x) + step * f64::from(slope) / length) as f32
                    });
                    parameter.set(&moved.collect::<Vec<_>>()).unwrap();
                }
                f64::from(loss().unwrap().item().unwrap())
            };
            // A step may cross a kink: the best of three counts.
            let differences = [4e-3, 2e-3, 1e-3].map(|h| (at(h) - at(-h)) / (2.0 * h));
            let agrees = |found: &f64| (found - length).abs() < 0.01 * length;
            assert!(differences.iter().any(agrees), "{cut:?}: {length}, {differences:?}");
            // Two different cuts, each at work.
            at(0.0);
        }
    }
}

#[test]
fn the_metric_on_states_is_a_quasimetric_though_roots_are_raised_in_training() {
    let backend = DfdxBackend::new(1);
    let tmd = Tmd::new(&backend, &small(TmdSettings::released()), &dimensions()).unwrap();
    let states = Var::normal(&backend, [12, 3], 0x300).unwrap();
    let points = tmd.points(&states).unwrap();
    let d = tmd.pairs(&points, &points).unwrap().to_vec().unwrap();
    let own = StateDistance::rows(&tmd, &points, &points).unwrap().to_vec().unwrap();
    assert!(own.iter().all(|&d| d == 0.0));
    for x in 0..12 {
        for y in 0..12 {
            for z in 0..12 {
                assert!(d[x * 12 + z] <= d[x * 12 + y] + d[y * 12 + z] + 1e-5);
            }
        }
    }
    assert!((0..12).any(|x| d[x] != d[x * 12]), "it is not symmetric");
}

#[test]
fn settings_outside_their_ranges_are_refused() {
    let released = TmdSettings::released;
    for (key, settings) in [
        ("latent", TmdSettings { latent: 500, ..released() }),
        ("discount", TmdSettings { discount: 1.0, ..released() }),
        ("discount", TmdSettings { discount: 0.0, ..released() }),
        ("contrastive_divisor", TmdSettings { contrastive_divisor: 0.0, ..released() }),
        ("action_invariance", TmdSettings { action_invariance: -1.0, ..released() }),
        ("temporal_invariance", TmdSettings { temporal_invariance: f32::NAN, ..released() }),
        ("own_goals", TmdSettings { own_goals: 1.5, ..released() }),
        ("cut.linear.beyond", TmdSettings { cut: Cut::Linear { beyond: 100.0 }, ..released() }),
        ("cut.clip.at", TmdSettings { cut: Cut::Clip { at: f32::INFINITY }, ..released() }),
    ] {
        let error = settings.check().unwrap_err().to_string();
        assert!(error.contains(key), "{key}: {error}");
    }
    for settings in [released(), TmdSettings::paper_text(), TmdSettings::revised()] {
        settings.check().unwrap();
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<TmdSettings>(&text).unwrap(), settings);
    }
    let sees = TmdSettings { policy_sees: PolicySees::Features, ..small(released()) };
    let part = Dimensions::new(3, 2, 0..2).unwrap();
    let error = Tmd::new(&DfdxBackend::new(0), &sees, &part).map(drop).unwrap_err().to_string();
    assert!(error.contains("policy_sees"), "{error}");
}
