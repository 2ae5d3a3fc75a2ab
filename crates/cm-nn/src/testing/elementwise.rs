//! Functions of one and two numbers, and reductions.

use super::{Exact, Suite};
use crate::{Activation, Backend, Initialiser, Map, Over, Parameters, Result, Var, Zip, gradients};

/// [`Backend::affine`].
pub fn affine<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    for shape in [[1, 1], [5, 7], [300, 130]] {
        let x = [Exact::normal(shape, 1)];
        let exact = |x: &[Exact]| x[0].map(|x| f64::from(-2.5_f32) * x + 0.75);
        suite.check_along(&backend, "affine", &x, |x| x[0].affine(-2.5, 0.75), exact)?;
    }
    Ok(())
}

type Function = fn(f64) -> f64;
type Function2 = fn(f64, f64) -> f64;

/// Each function with its value in double precision.
fn functions() -> Vec<(Map, Function)> {
    fn gelu(x: f64) -> f64 {
        let inner = std::f64::consts::FRAC_2_PI.sqrt() * (x + f64::from(0.044_715_f32) * x.powi(3));
        0.5 * x * (1.0 + inner.tanh())
    }
    vec![
        (Map::Activation(Activation::Identity), |x| x),
        (Map::Activation(Activation::Relu), |x| x.max(0.0)),
        (Map::Activation(Activation::Silu), |x| x / (1.0 + (-x).exp())),
        (Map::Activation(Activation::Gelu), gelu),
        (Map::Activation(Activation::Tanh), f64::tanh),
        (Map::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        (Map::Softplus, |x| x.max(0.0) + (-x.abs()).exp().ln_1p()),
        (Map::Exp, f64::exp),
        (Map::Square, |x| x * x),
        (Map::Abs, f64::abs),
        (Map::Step, |x| f64::from(u8::from(x > 0.0))),
        (Map::Clamp { low: -0.5, high: 1.25 }, |x| x.clamp(-0.5, 1.25)),
    ]
}

/// [`Backend::map`]: every function over its range.
pub fn map<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    for (f, exact) in functions() {
        for (shape, scale) in [([1, 1], 1.0), ([9, 11], 1.0), ([9, 11], 12.0)] {
            let x = [Exact::normal(shape, 2).map_f32(|x| x * scale)];
            suite.check(&backend, &format!("{f:?}"), &x, |x| x[0].map(f), |x| x[0].map(exact))?;
        }
        let x = [Exact::normal([300, 130], 3)];
        suite.check_along(&backend, &format!("{f:?}"), &x, |x| x[0].map(f), |x| x[0].map(exact))?;
    }
    let positive = [Exact::normal([9, 11], 4).map_f32(|x| x.abs() + 0.1)];
    suite.check(&backend, "log", &positive, |x| x[0].log(), |x| x[0].map(f64::ln))?;
    suite.check(&backend, "sqrt", &positive, |x| x[0].sqrt(), |x| x[0].map(f64::sqrt))
}

/// The derivatives stated where functions have kinks, and no overflow far out.
pub fn kinks<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let cases = [
        (Map::Activation(Activation::Relu), 0.0, 0.0, 0.0),
        (Map::Sqrt, 0.0, 0.0, 0.0),
        (Map::Abs, 0.0, 0.0, 0.0),
        (Map::Step, 0.0, 0.0, 0.0),
        (Map::Clamp { low: -1.0, high: 2.0 }, -1.0, -1.0, 1.0),
        (Map::Clamp { low: -1.0, high: 2.0 }, 2.0, 2.0, 1.0),
        (Map::Clamp { low: -1.0, high: 2.0 }, 2.5, 2.0, 0.0),
        (Map::Softplus, 200.0, 200.0, 1.0),
        (Map::Softplus, -200.0, 0.0, 0.0),
        (Map::Sigmoid, -200.0, 0.0, 0.0),
        (Map::Activation(Activation::Silu), -200.0, 0.0, 0.0),
        (Map::Activation(Activation::Tanh), 100.0, 1.0, 0.0),
        (Map::Activation(Activation::Gelu), 100.0, 100.0, 1.0),
    ];
    for (f, x, value, slope) in cases {
        let (y, dx) = value_and_slope(&backend, x, |x| x.map(f))?;
        assert_eq!((y, dx), (value, slope), "{f:?} at {x}");
    }
    let huber = |x| value_and_slope(&backend, x, |x| x.huber(2.0));
    assert_eq!([huber(1.0)?, huber(-5.0)?], [(0.5, 1.0), (8.0, -2.0)]);
    // Equal numbers share.
    let both = |x: &Var<B>| x.maximum(&x.stop_gradient());
    assert_eq!(value_and_slope(&backend, 3.0, both)?, (3.0, 0.5));
    let both = |x: &Var<B>| x.stop_gradient().minimum(x);
    assert_eq!(value_and_slope(&backend, 3.0, both)?, (3.0, 0.5));
    Ok(())
}

fn value_and_slope<B: Backend>(
    backend: &B,
    at: f32,
    f: impl Fn(&Var<B>) -> Result<Var<B>>,
) -> Result<(f32, f32)> {
    let mut parameters = Parameters::new(backend);
    let x = parameters.create("x", [1, 1], Initialiser::Constant(at))?;
    let (y, gradients) = gradients(backend, &[&parameters], || f(&x.value()?))?;
    let slope = gradients.get(&x).map(|slope| slope.item()).transpose()?;
    Ok((y.item()?, slope.unwrap_or(f32::NAN)))
}

/// [`Backend::zip`]: every function with every kind of repetition.
pub fn zip<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let functions: [(Zip, Function2); 6] = [
        (Zip::Add, |x, y| x + y),
        (Zip::Sub, |x, y| x - y),
        (Zip::Mul, |x, y| x * y),
        (Zip::Div, |x, y| x / y),
        (Zip::Max, f64::max),
        (Zip::Min, f64::min),
    ];
    for (f, exact) in functions {
        let operation = |x: &[Var<B>]| {
            Ok(Var::wrap(x[0].backend(), x[0].backend().zip(x[0].tensor(), x[1].tensor(), f)?))
        };
        let exact = |x: &[Exact]| repeated(&x[0], &x[1], exact);
        let sizes = [[5, 7], [1, 7], [5, 1], [1, 1]];
        for a in sizes {
            for b in sizes {
                // Divisors away from 0.
                let y = Exact::normal(b, 6).map_f32(|y| y + 1.5 * y.signum());
                let inputs = [Exact::normal(a, 5), y];
                suite.check(&backend, &format!("{f:?} {a:?} {b:?}"), &inputs, operation, exact)?;
            }
        }
        let y = Exact::normal([1, 130], 6).map_f32(|y| y + 1.5 * y.signum());
        let inputs = [Exact::normal([300, 130], 5), y];
        suite.check_along(&backend, &format!("{f:?}, large"), &inputs, operation, exact)?;
    }
    Ok(())
}

fn repeated(x: &Exact, y: &Exact, f: impl Fn(f64, f64) -> f64) -> Exact {
    let shape = [x.shape[0].max(y.shape[0]), x.shape[1].max(y.shape[1])];
    let at = |x: &Exact, i: usize, j: usize| x.at(i % x.shape[0], j % x.shape[1]);
    Exact::from_fn(shape, |i, j| f(at(x, i, j), at(y, i, j)))
}

/// [`Backend::reduce`]: every function over rows, columns and all.
pub fn reduce<B: Backend>(suite: &Suite<B>) -> Result<()> {
    type Operation<B> = fn(&Var<B>, Over) -> Result<Var<B>>;
    type Reference = fn(&[f64]) -> f64;
    let backend = suite.make(0);
    let functions: [(&str, Operation<B>, Reference); 4] = [
        ("sum", Var::sum, |x| x.iter().sum()),
        ("mean", Var::mean, |x| x.iter().sum::<f64>() / x.len() as f64),
        ("max", Var::max, |x| x.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        ("log_sum_exp", Var::log_sum_exp, |x| x.iter().map(|x| x.exp()).sum::<f64>().ln()),
    ];
    for (name, operation, reference) in functions {
        for over in [Over::Rows, Over::Columns, Over::All] {
            let operation = |x: &[Var<B>]| operation(&x[0], over);
            let exact = |x: &[Exact]| reduced(&x[0], over, reference);
            for shape in [[1, 1], [1, 9], [6, 1], [6, 9], [40, 3]] {
                let x = [Exact::normal(shape, 7).map_f32(|x| 3.0 * x)];
                suite.check(
                    &backend,
                    &format!("{name} {over:?} {shape:?}"),
                    &x,
                    operation,
                    exact,
                )?;
            }
            let x = [Exact::normal([300, 130], 8)];
            suite.check_along(
                &backend,
                &format!("{name} {over:?}, large"),
                &x,
                operation,
                exact,
            )?;
        }
    }
    Ok(())
}

fn reduced(x: &Exact, over: Over, f: fn(&[f64]) -> f64) -> Exact {
    let [rows, columns] = x.shape;
    let column = |j: usize| (0..rows).map(|i| x.at(i, j)).collect::<Vec<_>>();
    match over {
        Over::Rows => Exact::from_fn([1, columns], |_, j| f(&column(j))),
        Over::Columns => Exact::from_fn([rows, 1], |i, _| f(x.row(i))),
        Over::All => Exact::from_fn([1, 1], |_, _| f(&x.values)),
    }
}

/// Reductions of equal, huge and infinite numbers.
pub fn reduce_edges<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let mut parameters = Parameters::new(&backend);
    let x = parameters.create("x", [3, 3], Initialiser::ZEROS)?;
    let low = f32::NEG_INFINITY;
    x.set(&[2.0, 2.0, 1.0, 1000.0, 1000.0, 990.0, low, low, low])?;
    let (_, g) =
        gradients(&backend, &[&parameters], || x.value()?.slice_rows(0..1)?.max(Over::All))?;
    let shared = g.get(&x).map(|g| g.to_vec()).transpose()?;
    assert_eq!(shared.unwrap_or_default()[..3], [0.5, 0.5, 0.0]);

    let sums = x.value()?.log_sum_exp(Over::Columns)?.to_vec()?;
    let expected = 1000.0 + (2.0 + (-10.0_f32).exp()).ln();
    assert!((sums[1] - expected).abs() < 1e-4, "{} {expected}", sums[1]);
    assert_eq!(sums[2], low);
    let (_, g) = gradients(&backend, &[&parameters], || {
        // The infinite row is left out of the loss, but not of the operation.
        x.value()?.log_sum_exp(Over::Columns)?.slice_rows(0..2)?.sum(Over::All)
    })?;
    let slopes = g.get(&x).map(|g| g.to_vec()).transpose()?.unwrap_or_default();
    assert!((slopes[3..6].iter().sum::<f32>() - 1.0).abs() < 1e-4);
    assert_eq!(slopes[6..], [0.0; 3]);
    Ok(())
}

/// What [`Var`] composes of operations: normalisation to unit length and Huber's loss.
pub fn composed<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let x = [Exact::normal([6, 5], 9)];
    let unit = |x: &[Exact]| {
        let length = |i: usize| x[0].row(i).iter().map(|x| x * x).sum::<f64>().sqrt();
        Exact::from_fn(x[0].shape, |i, j| x[0].at(i, j) / (length(i) + 0.125))
    };
    suite.check(&backend, "l2_normalize", &x, |x| x[0].l2_normalize(0.125), unit)?;
    let huber = |x: f64| if x.abs() <= 0.5 { 0.5 * x * x } else { 0.5 * (x.abs() - 0.25) };
    suite.check(&backend, "huber", &x, |x| x[0].huber(0.5), |x| x[0].map(huber))?;
    // A row of zeros has a direction of zero and a finite gradient.
    let mut parameters = Parameters::new(&backend);
    let zero = parameters.create("x", [1, 3], Initialiser::ZEROS)?;
    let (_, g) =
        gradients(&backend, &[&parameters], || zero.value()?.l2_normalize(1e-8)?.sum(Over::All))?;
    let slopes = g.get(&zero).map(|g| g.to_vec()).transpose()?.unwrap_or_default();
    assert!(slopes.len() == 3 && slopes.iter().all(|slope| slope.is_finite()), "{slopes:?}");
    Ok(())
}
