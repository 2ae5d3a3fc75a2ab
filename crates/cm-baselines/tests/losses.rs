//! Every loss and its gradient against double precision and finite differences.

use cm_baselines::{
    Reward, advantage_weight, expectile_loss, lagrangian, latent_transition_loss, push_loss,
    squared_error, transition_excess,
};
use cm_nn::{DfdxBackend, Initialiser, Parameters, Result, Var, gradients};
use cm_random::{Philox, unit_f32};

type Columns = [Vec<f64>];

/// Checks `loss` of columns against `exact`, and its gradients against central differences of
/// `exact`, whose second argument is the place where the differences are taken: what the loss holds
/// constant is read there.
fn check(
    columns: &[Vec<f32>],
    loss: impl Fn(&[Var<DfdxBackend>]) -> Result<Var<DfdxBackend>>,
    exact: impl Fn(&Columns, &Columns) -> f64,
) {
    let backend = DfdxBackend::new(0);
    let mut parameters = Parameters::new(&backend);
    for (index, column) in columns.iter().enumerate() {
        let name = index.to_string();
        let parameter = parameters.create(&name, [column.len(), 1], Initialiser::ZEROS).unwrap();
        parameter.set(column).unwrap();
    }
    let (value, gradients) = gradients(&backend, &[&parameters], || {
        let columns = parameters.iter().map(|p| p.value()).collect::<Result<Vec<_>>>()?;
        loss(&columns)
    })
    .unwrap();

    let here = columns.iter().map(|column| column.iter().map(|&x| f64::from(x)).collect());
    let here = here.collect::<Vec<Vec<f64>>>();
    close(f64::from(value.item().unwrap()), exact(&here, &here), 1e-5, "value");
    for (index, parameter) in parameters.iter().enumerate() {
        let gradient = gradients.get(parameter).unwrap().to_vec().unwrap();
        for (row, gradient) in gradient.into_iter().enumerate() {
            let at = |change: f64| {
                let mut moved = here.clone();
                moved[index][row] += change;
                exact(&moved, &here)
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            close(f64::from(gradient), slope, 1e-4, &format!("column {index}, row {row}"));
        }
    }
}

fn close(found: f64, wanted: f64, tolerance: f64, what: &str) {
    let error = (found - wanted).abs() / wanted.abs().max(0.01);
    assert!(error < tolerance, "{what}: found {found}, wanted {wanted}");
}

/// Fifty numbers between `low` and `high`, other ones for each `stream`.
fn numbers(stream: u32, low: f32, high: f32) -> Vec<f32> {
    let words = (0..50).map(|index| Philox::new(5).block(0, stream, index)[0]);
    words.map(|word| low + (high - low) * unit_f32(word)).collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[test]
fn push() {
    for (offset, sharpness, high) in [(500.0, 0.01, 2000.0), (15.0, 0.1, 60.0)] {
        check(
            &[numbers(0, 0.0, high)],
            |x| push_loss(&x[0], offset, sharpness),
            |x, _| {
                let (offset, sharpness) = (f64::from(offset), f64::from(sharpness));
                mean(x[0].iter().map(|d| (sharpness * (offset - d)).exp().ln_1p() / sharpness))
            },
        );
    }
}

#[test]
fn the_authors_push_is_one_of_these() {
    check(
        &[numbers(0, 0.0, 1000.0)],
        |x| push_loss(&x[0], 500.0, 0.01),
        |x, _| mean(x[0].iter().map(|d| 100.0 * (5.0 - d / 100.0).exp().ln_1p())),
    );
}

#[test]
fn excess() {
    check(
        &[numbers(0, 0.0, 3.0)],
        |x| transition_excess(&x[0], 1.0),
        |x, _| mean(x[0].iter().map(|d| (d - 1.0).max(0.0).powi(2))),
    );
}

#[test]
fn latent_transition() {
    check(
        &[numbers(0, 0.0, 3.0), numbers(1, 0.0, 3.0)],
        |x| latent_transition_loss(&x[0], &x[1]),
        |x, _| {
            mean(x[0].iter().zip(&x[1]).map(|(there, back)| (there.powi(2) + back.powi(2)) / 2.0))
        },
    );
}

#[test]
fn lagrangian_descends_in_the_metric_and_ascends_in_the_multiplier() {
    check(
        &[vec![3.0], vec![0.4], vec![2.5]],
        |x| lagrangian(&x[0], &x[1], &x[2], 0.05),
        |x, here| {
            let (push, excess, multiplier) = (x[0][0], x[1][0], x[2][0]);
            push + here[2][0] * excess + multiplier * (0.05 - here[1][0])
        },
    );
}

#[test]
fn expectile() {
    for expectile in [0.5, 0.7, 0.99] {
        check(
            &[numbers(0, -2.0, 2.0)],
            |x| expectile_loss(&x[0], expectile),
            |x, _| {
                let weight = |u: f64| (f64::from(expectile) - f64::from(u < 0.0)).abs();
                mean(x[0].iter().map(|&u| weight(u) * u * u))
            },
        );
    }
}

#[test]
fn temporal_difference_holds_the_target() {
    for (reward, discount) in
        [(Reward::StepCost, 0.8), (Reward::Success, 0.99), (Reward::OneStepSuccess, 0.8)]
    {
        let reached = numbers(2, 0.0, 1.0).into_iter().map(f32::round).collect::<Vec<_>>();
        check(
            &[numbers(0, -5.0, 5.0), numbers(1, -5.0, 5.0)],
            |x| {
                let reached = Var::new(x[0].backend(), [50, 1], reached.clone())?;
                squared_error(&x[0], &reward.target(&reached, &x[1], discount)?)
            },
            |x, here| {
                let rows = x[0].iter().zip(&here[1]).zip(&reached);
                mean(rows.map(|((value, next), &reached)| {
                    let next = f64::from(discount) * next;
                    let target = match (reward, reached == 1.0) {
                        (Reward::StepCost, true) => -1.0,
                        (Reward::StepCost, false) => -1.0 + next,
                        (Reward::Success, true) => 1.0,
                        (Reward::Success, false) => next,
                        (Reward::OneStepSuccess, true) => 1.0 + next,
                        (Reward::OneStepSuccess, false) => 0.0,
                    };
                    (value - target).powi(2)
                }))
            },
        );
    }
}

#[test]
fn values_stay_in_their_range() {
    let backend = DfdxBackend::new(0);
    for reward in [Reward::StepCost, Reward::Success, Reward::OneStepSuccess] {
        let [low, high] = reward.value_range(0.8);
        for reached in [0.0, 1.0] {
            for next in [low, high] {
                let [reached, next] =
                    [reached, next].map(|x| Var::full(&backend, [1, 1], x).unwrap());
                let target = reward.target(&reached, &next, 0.8).unwrap().item().unwrap();
                assert!((low - 1e-5..=high + 1e-5).contains(&target), "{reward:?}: {target}");
            }
        }
    }
}

#[test]
fn advantage_weights_are_cut_and_constant() {
    let advantages = vec![-1e6, -1.0, 0.0, 0.5, 1.0, 1e6];
    let backend = DfdxBackend::new(0);
    let advantage = Var::new(&backend, [6, 1], advantages.clone()).unwrap();
    let weights = advantage_weight(&advantage, 10.0, 100.0).unwrap().to_vec().unwrap();
    for (weight, advantage) in weights.into_iter().zip(&advantages) {
        let wanted = (10.0 * f64::from(*advantage)).exp().min(100.0);
        assert!((f64::from(weight) - wanted).abs() <= 1e-5 * wanted, "{weight} {wanted}");
    }
    check(
        &[vec![0.1, 0.2]],
        |x| squared_error(&x[0], &advantage_weight(&x[0], 3.0, 100.0)?),
        |x, here| mean(x[0].iter().zip(&here[0]).map(|(x, here)| (x - (3.0 * here).exp()).powi(2))),
    );
}
