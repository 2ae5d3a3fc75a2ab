//! Contrastive losses against double precision, and the critic's change of variables.

use cm_contrastive::{
    ContrastiveLoss, ContrastiveSettings, Critic, CriticSettings, Crl, CrlSettings,
};
use cm_learner::Dimensions;
use cm_nn::testing::{Exact, Suite, Tolerance};
use cm_nn::{DfdxBackend, MlpSettings, Parameters, Var};

const LOSSES: [ContrastiveLoss; 5] = [
    ContrastiveLoss::Symmetric,
    ContrastiveLoss::Forward,
    ContrastiveLoss::Backward,
    ContrastiveLoss::Cpc { penalty: 0.3 },
    ContrastiveLoss::BinaryNce,
];

/// The losses as they are written in their documentation.
fn exact(settings: ContrastiveSettings, logits: &Exact) -> f64 {
    let n = logits.shape[0];
    let f = |i: usize, j: usize| logits.at(i, j) / f64::from(settings.divisor);
    let log_sum_exp = |terms: Vec<f64>| terms.iter().map(|x| x.exp()).sum::<f64>().ln();
    let row = |i: usize| log_sum_exp((0..n).map(|j| f(i, j)).collect());
    let column = |i: usize| log_sum_exp((0..n).map(|j| f(j, i)).collect());
    let mean = |term: &dyn Fn(usize) -> f64| (0..n).map(term).sum::<f64>() / n as f64;
    let forward = mean(&|i| row(i) - f(i, i));
    let backward = mean(&|i| column(i) - f(i, i));
    match settings.loss {
        ContrastiveLoss::Symmetric => (forward + backward) / 2.0,
        ContrastiveLoss::Forward => forward,
        ContrastiveLoss::Backward => backward,
        ContrastiveLoss::Cpc { penalty } => {
            forward + f64::from(penalty) * mean(&|i| row(i).powi(2))
        }
        ContrastiveLoss::BinaryNce => mean(&|i| {
            let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
            let terms = (0..n).map(|j| match i == j {
                true => -sigmoid(f(i, j)).ln(),
                false => -(1.0 - sigmoid(f(i, j))).ln(),
            });
            terms.sum::<f64>() / n as f64
        }),
    }
}

#[test]
fn losses_and_their_gradients() -> cm_nn::Result<()> {
    let suite = Suite::new(DfdxBackend::new, Tolerance::SINGLE);
    let backend = suite.make(0);
    for loss in LOSSES {
        for divisor in [1.0, 2.5] {
            let settings = ContrastiveSettings { loss, divisor };
            for (n, stream) in [(1, 1), (2, 2), (7, 3)] {
                let logits = Exact::normal([n, n], stream).map_f32(|x| 3.0 * x);
                let reference = |x: &[Exact]| Exact::from_fn([1, 1], |_, _| exact(settings, &x[0]));
                let what = format!("{loss:?} / {divisor}, {n} rows");
                suite.check(&backend, &what, &[logits], |x| settings.of(&x[0]), reference)?;
            }
        }
    }
    Ok(())
}

#[test]
fn only_square_logits_have_a_loss() {
    let logits = Var::full(&DfdxBackend::new(0), [2, 3], 0.0).unwrap();
    for loss in LOSSES {
        let settings = ContrastiveSettings { loss, divisor: 1.0 };
        assert!(settings.of(&logits).is_err(), "{loss:?}");
    }
}

#[test]
fn settings_outside_their_ranges_are_refused() {
    let settings = ContrastiveSettings::paper_text();
    for divisor in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        assert!(ContrastiveSettings { divisor, ..settings }.check().is_err());
    }
    let loss = ContrastiveLoss::Cpc { penalty: -0.1 };
    assert!(ContrastiveSettings { loss, ..settings }.check().is_err());

    let dimensions = Dimensions::new(2, 1, 0..1).unwrap();
    for change in [
        |settings: &mut CrlSettings| settings.critic.repr_dim = 0,
        |settings: &mut CrlSettings| settings.critic.divisor = 0.0,
        |settings: &mut CrlSettings| settings.adam.learning_rate = -1.0,
        |settings: &mut CrlSettings| settings.contrastive.divisor = f32::NAN,
        |settings: &mut CrlSettings| settings.actor.policy.network.hidden.clear(),
    ] {
        let mut settings = CrlSettings::plane();
        change(&mut settings);
        assert!(Crl::new(&DfdxBackend::new(0), &settings, &dimensions).is_err());
    }
}

#[test]
fn settings_are_read_with_defaults_and_unknown_keys_refused() {
    let read = |json: &str| serde_json::from_str::<CrlSettings>(json);
    assert_eq!(read("{}").unwrap(), CrlSettings::authors_code());
    let cpc = read(r#"{"contrastive": {"loss": {"cpc": {"penalty": 0.5}}}}"#).unwrap();
    assert_eq!(cpc.contrastive.loss, ContrastiveLoss::Cpc { penalty: 0.5 });
    assert_eq!(cpc.contrastive.divisor, 8.0);
    let error = read(r#"{"contrastive": {"temprature": 1}}"#).unwrap_err().to_string();
    assert!(error.contains("temprature"), "{error}");
    for preset in [CrlSettings::paper_text(), CrlSettings::authors_code(), CrlSettings::plane()] {
        let text = serde_json::to_string(&preset).unwrap();
        assert_eq!(read(&text).unwrap(), preset);
    }
}

#[test]
fn the_critic_is_an_inner_product_and_its_difference_a_distance() -> cm_nn::Result<()> {
    let backend = DfdxBackend::new(0);
    let dimensions = Dimensions::new(3, 2, 0..2)?;
    let network = MlpSettings { hidden: vec![16], ..Default::default() };
    for (normalised, divisor) in [(true, 1.0), (false, 1.0), (false, 4.0)] {
        let settings = CriticSettings {
            network: network.clone(),
            repr_dim: 5,
            normalised,
            divisor,
            ..CriticSettings::default()
        };
        let mut parameters = Parameters::new(&backend);
        let critic = Critic::new(&mut parameters, &settings, &dimensions)?;
        let temperature = 0.7_f32;
        if let Some(log) = parameters.get("contrastive/log_temperature") {
            log.set(&[temperature.ln()])?;
        }
        let [state, goal] = [1, 2].map(|stream| Exact::normal([4, 3], stream).var(&backend));
        let [action, goal_action] =
            [3, 4].map(|stream| Exact::normal([4, 2], stream).var(&backend));
        let (state, goal, action, goal_action) = (state?, goal?, action?, goal_action?);

        let (phi, psi) = (critic.phi(&state, &action)?, critic.psi(&goal)?);
        let [exact_phi, exact_psi, at_goal] =
            [&phi, &psi, &critic.phi(&goal, &goal_action)?].map(|var| Exact::read(var).unwrap());
        let inner = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        if normalised {
            for i in 0..4 {
                let length = inner(exact_phi.row(i), exact_phi.row(i)).sqrt();
                assert!((length - 1.0 / f64::from(temperature)).abs() < 1e-5);
                assert!((inner(exact_psi.row(i), exact_psi.row(i)) - 1.0).abs() < 1e-5);
            }
        }
        let f = Exact::from_fn([4, 4], |i, j| inner(exact_phi.row(i), exact_psi.row(j)));
        Exact::read(&critic.pairs(&phi, &psi)?)?.assert_close(&f, 1e-5, "pairs");
        let diagonal = Exact::from_fn([4, 1], |i, _| f.at(i, i));
        Exact::read(&critic.rows(&phi, &psi)?)?.assert_close(&diagonal, 1e-5, "rows");

        let d = Exact::from_fn([4, 4], |i, j| inner(at_goal.row(j), exact_psi.row(j)) - f.at(i, j));
        let (from, to) = ([&state, &action], [&goal, &goal_action]);
        let found = critic.successor_distance_pairs(from, to)?;
        Exact::read(&found)?.assert_close(&d, 1e-5, "distances");
        let found = Exact::read(&critic.successor_distance_rows(from, to)?)?;
        found.assert_close(&Exact::from_fn([4, 1], |i, _| d.at(i, i)), 1e-5, "rows of distances");
        // Nothing is at distance from itself.
        let zero = critic.successor_distance_rows(to, to)?.to_vec()?;
        assert_eq!(zero, [0.0; 4]);
    }
    Ok(())
}
