//! Distances, contrastive losses and policy densities.

use cm_quasimetric::{Head, Reduction, Rows};

use super::{Exact, Suite};
use crate::backend::ACTION_BOUND;
use crate::{Backend, Direction, Error, Result, Var};

/// [`Backend::quasimetric`]: every head by rows and by pairs, against cm-quasimetric in double precision.
pub fn quasimetric<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let iqe = |reduction| Head::Iqe { groups: 4, reduction };
    let heads = [
        Head::MRN,
        Head::Mrn { components: 2, epsilon: 1e-4 },
        iqe(Reduction::Sum),
        iqe(Reduction::Max),
        iqe(Reduction::Mean),
        iqe(Reduction::MaxMean { logit: 0.5 }),
        Head::Max,
    ];
    let points = [Exact::normal([5, 16], 1), Exact::normal([5, 16], 2)];
    let more = [Exact::normal([5, 16], 1), Exact::normal([7, 16], 2)];
    let large = [Exact::normal([70, 64], 1), Exact::normal([90, 64], 2)];
    for head in heads {
        let rows = |x: &[Var<B>]| x[0].distance_rows(&x[1], head, None);
        let pairs = |x: &[Var<B>]| x[0].distance_pairs(&x[1], head, None);
        suite.check(&backend, &format!("{head} by rows"), &points, rows, |x| by_rows(head, x))?;
        suite.check(&backend, &format!("{head} by pairs"), &more, pairs, |x| by_pairs(head, x))?;
        suite.check_along(&backend, &format!("{head}, large"), &large, pairs, |x| {
            by_pairs(head, x)
        })?;
    }
    let [x, y] = more;
    let inputs = [x, y, Exact { shape: [1, 1], values: vec![-0.75] }];
    let head = iqe(Reduction::MaxMean { logit: 0.0 });
    let learned =
        |x: &[Exact]| by_pairs(iqe(Reduction::MaxMean { logit: x[2].values[0] }), &x[..2]);
    let pairs = |x: &[Var<B>]| x[0].distance_pairs(&x[1], head, Some(&x[2]));
    suite.check(&backend, "learned logit", &inputs, pairs, learned)?;

    let odd = Var::full(&backend, [2, 15], 0.0)?;
    assert!(matches!(odd.distance_pairs(&odd, Head::MRN, None), Err(Error::Quasimetric(_))));
    let logit = Var::full(&backend, [1, 1], 0.0)?;
    assert!(matches!(odd.distance_rows(&odd, Head::Max, Some(&logit)), Err(Error::Setting { .. })));
    Ok(())
}

fn rows(x: &Exact) -> Rows<'_, f64> {
    Rows::new(&x.values, x.shape[0], x.shape[1]).unwrap_or_else(|error| panic!("{error}"))
}

fn by_rows(head: Head, x: &[Exact]) -> Exact {
    let mut distances = Exact::from_fn([x[0].shape[0], 1], |_, _| 0.0);
    let done = head.rowwise(rows(&x[0]), rows(&x[1]), &mut distances.values);
    done.unwrap_or_else(|error| panic!("{error}"));
    distances
}

fn by_pairs(head: Head, x: &[Exact]) -> Exact {
    let mut distances = Exact::from_fn([x[0].shape[0], x[1].shape[0]], |_, _| 0.0);
    let done = head.pairwise(rows(&x[0]), rows(&x[1]), &mut distances.values);
    done.unwrap_or_else(|error| panic!("{error}"));
    distances
}

/// [`Backend::info_nce`], also where a naive exponential would overflow.
pub fn info_nce<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    for direction in [Direction::Rows, Direction::Columns, Direction::Symmetric] {
        let operation = |x: &[Var<B>]| x[0].info_nce(direction);
        let exact = |x: &[Exact]| cross_entropy(&x[0], direction);
        for (n, scale) in [(1, 1.0), (2, 1.0), (7, 3.0), (70, 1.0)] {
            let x = [Exact::normal([n, n], 1).map_f32(|x| scale * x)];
            suite.check(&backend, &format!("{direction:?} {n}"), &x, operation, exact)?;
        }
        let x = [Exact::normal([200, 200], 2)];
        suite.check_along(&backend, &format!("{direction:?}, large"), &x, operation, exact)?;
        let far = Exact::from_fn([3, 3], |i, j| if i == j { -400.0 } else { 400.0 });
        let found = far.var(&backend)?.info_nce(direction)?.item()?;
        assert!((f64::from(found) - 800.0 - 2.0_f64.ln()).abs() < 1e-3, "{found}");
    }
    let wide = Var::full(&backend, [2, 3], 0.0)?;
    assert!(matches!(wide.info_nce(Direction::Rows), Err(Error::Shape { .. })));
    Ok(())
}

fn cross_entropy(l: &Exact, direction: Direction) -> Exact {
    let n = l.shape[0];
    let log_sum = |x: &[f64]| {
        let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        largest + x.iter().map(|x| (x - largest).exp()).sum::<f64>().ln()
    };
    let by_row = |i: usize| log_sum(l.row(i)) - l.at(i, i);
    let by_column = |j: usize| {
        let column = (0..n).map(|i| l.at(i, j)).collect::<Vec<_>>();
        log_sum(&column) - l.at(j, j)
    };
    let mean = |f: &dyn Fn(usize) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
    let loss = match direction {
        Direction::Rows => mean(&by_row),
        Direction::Columns => mean(&by_column),
        Direction::Symmetric => 0.5 * (mean(&by_row) + mean(&by_column)),
    };
    Exact { shape: [1, 1], values: vec![loss] }
}

/// [`Backend::tanh_normal_log_density`] on both sides of the bounds, against numerical integration of the tails.
pub fn density<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let mean = Exact::normal([6, 4], 1);
    let scale = Exact::normal([6, 4], 2).map_f32(|x| 0.3 + x.abs());
    let action = Exact::normal([6, 4], 3).map_f32(|x| x.clamp(-2.0, 2.0).tanh());
    let operation = |x: &[Var<B>]| x[0].tanh_normal_log_density(&x[1], &x[2]);
    suite.check(
        &backend,
        "density",
        &[mean.clone(), scale.clone(), action],
        operation,
        log_density,
    )?;
    // Beyond the bounds, the action a constant there.
    let action = Exact::from_fn([6, 4], |i, j| if (i + j) % 2 == 0 { 1.0 } else { -0.9995 });
    let action_var = action.var(&backend)?;
    let operation = |x: &[Var<B>]| x[0].tanh_normal_log_density(&x[1], &action_var);
    let exact = |x: &[Exact]| log_density(&[x[0].clone(), x[1].clone(), action.clone()]);
    suite.check(&backend, "density beyond the bounds", &[mean, scale], operation, exact)
}

fn log_density(x: &[Exact]) -> Exact {
    let bound = f64::from(ACTION_BOUND);
    Exact::from_fn([x[0].shape[0], 1], |i, _| {
        let terms = (0..x[0].shape[1]).map(|j| {
            let (mean, scale, action) = (x[0].at(i, j), x[1].at(i, j), x[2].at(i, j));
            if action.abs() >= bound {
                let start = (bound.atanh() - action.signum() * mean) / scale;
                return upper_tail(start).ln() - (1.0 - bound).ln();
            }
            let z = (action.atanh() - mean) / scale;
            let normal = -0.5 * z * z - scale.ln() - 0.5 * std::f64::consts::TAU.ln();
            normal - (1.0 - action * action).ln()
        });
        terms.sum()
    })
}

/// `P(N(0, 1) > x)` by Simpson's rule.
fn upper_tail(x: f64) -> f64 {
    let (end, parts) = (x.max(0.0) + 12.0, 4000);
    let width = (end - x) / f64::from(parts);
    let density = |k: i32| {
        let t = x + width * f64::from(k);
        (-0.5 * t * t).exp() / std::f64::consts::TAU.sqrt()
    };
    let weight = |k: i32| match k {
        0 => 1.0,
        k if k == parts => 1.0,
        k if k % 2 == 1 => 4.0,
        _ => 2.0,
    };
    (0..=parts).map(|k| weight(k) * density(k)).sum::<f64>() * width / 3.0
}

/// The density is a density: it integrates to one over actions; and it stays finite with finite
/// gradients for means far outside.
pub fn density_at_the_bounds<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let count = 20_000;
    let middle = |k: usize| -1.0 + (2 * k + 1) as f32 / count as f32;
    for (mean, scale) in [(0.0, 1.0), (2.5, 0.7), (-4.0, 0.5), (0.5, 3.0)] {
        let actions = Var::new(&backend, [count, 1], (0..count).map(middle).collect())?;
        let full = |value| Var::full(&backend, [count, 1], value);
        let log = full(mean)?.tanh_normal_log_density(&full(scale)?, &actions)?.to_vec()?;
        let mass = log.iter().map(|&log| f64::from(log).exp()).sum::<f64>() * 2.0 / count as f64;
        assert!((mass - 1.0).abs() < 2e-3, "mean {mean}, scale {scale}: mass {mass}");
    }
    let mut parameters = crate::Parameters::new(&backend);
    let mean = parameters.create("mean", [1, 1], crate::Initialiser::Constant(-30.0))?;
    let (value, slopes) = crate::gradients(&backend, &[&parameters], || {
        let full = |value| Var::full(&backend, [1, 1], value);
        mean.value()?.tanh_normal_log_density(&full(0.5)?, &full(1.0)?)
    })?;
    let slope = slopes.get(&mean).map(|slope| slope.item()).transpose()?.unwrap_or(f32::NAN);
    // ln P(N > x) is about -x^2/2 - ln(x sqrt(2 pi)) at x = (artanh 0.999 + 30) / 0.5, and its
    // slope in x about -(x + 1/x).
    let x = (0.999_f64.atanh() + 30.0) / 0.5;
    let expected = -0.5 * x * x - (x * std::f64::consts::TAU.sqrt()).ln() - 0.001_f64.ln();
    assert!((f64::from(value.item()?) / expected - 1.0).abs() < 1e-5);
    assert!((f64::from(slope) / ((x + 1.0 / x) / 0.5) - 1.0).abs() < 1e-3, "{slope}");
    Ok(())
}
