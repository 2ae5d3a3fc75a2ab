//! Linear layers, layer norm and perceptrons.

use super::{Exact, Suite};
use crate::{Activation, Backend, Error, Mlp, MlpSettings, Parameters, Result, Var};

const ACTIVATIONS: [Activation; 5] =
    [Activation::Identity, Activation::Relu, Activation::Silu, Activation::Gelu, Activation::Tanh];

fn activated(x: f64, activation: Activation) -> f64 {
    match activation {
        Activation::Identity => x,
        Activation::Relu => x.max(0.0),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Gelu => {
            let cubic = x + f64::from(0.044_715_f32) * x.powi(3);
            0.5 * x * (1.0 + (std::f64::consts::FRAC_2_PI.sqrt() * cubic).tanh())
        }
        Activation::Tanh => x.tanh(),
    }
}

fn product(x: &Exact, w: &Exact) -> Exact {
    let inner = x.shape[1];
    Exact::from_fn([x.shape[0], w.shape[1]], |i, j| {
        (0..inner).map(|k| x.at(i, k) * w.at(k, j)).sum::<f64>()
    })
}

fn layer(x: &Exact, w: &Exact, b: &Exact, activation: Activation) -> Exact {
    let z = product(x, w);
    Exact::from_fn(z.shape, |i, j| activated(z.at(i, j) + b.at(0, j), activation))
}

/// [`Backend::linear`]: with and without bias, every activation, small and large.
pub fn linear<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let inputs = |n: usize, i: usize, o: usize| {
        let w = Exact::normal([i, o], 2).map_f32(|w| w / (i as f64).sqrt());
        [Exact::normal([n, i], 1), w, Exact::normal([1, o], 3)]
    };
    for activation in ACTIVATIONS {
        let operation = |x: &[Var<B>]| x[0].linear(&x[1], Some(&x[2]), activation);
        let exact = |x: &[Exact]| layer(&x[0], &x[1], &x[2], activation);
        for (n, i, o) in [(1, 1, 1), (5, 3, 4), (2, 9, 1), (1, 4, 6)] {
            suite.check(
                &backend,
                &format!("linear {activation:?}"),
                &inputs(n, i, o),
                operation,
                exact,
            )?;
        }
        let large = inputs(300, 70, 130);
        suite.check_along(
            &backend,
            &format!("linear {activation:?}, large"),
            &large,
            operation,
            exact,
        )?;
        let no_bias = |x: &[Var<B>]| x[0].linear(&x[1], None, activation);
        let exact = |x: &[Exact]| product(&x[0], &x[1]).map(|z| activated(z, activation));
        let [x, w, _] = inputs(5, 3, 4);
        suite.check(
            &backend,
            &format!("linear {activation:?}, no bias"),
            &[x, w],
            no_bias,
            exact,
        )?;
    }
    // One layer applied twice, whose weight and bias each have a gradient of two parts.
    let twice = |x: &[Var<B>]| {
        let once = x[0].linear(&x[1], Some(&x[2]), Activation::Tanh)?;
        once.linear(&x[1], Some(&x[2]), Activation::Tanh)
    };
    let exact = |x: &[Exact]| {
        let once = layer(&x[0], &x[1], &x[2], Activation::Tanh);
        layer(&once, &x[1], &x[2], Activation::Tanh)
    };
    suite.check(&backend, "linear twice", &inputs(5, 3, 3), twice, exact)?;
    let pair = [Exact::normal([4, 3], 4), Exact::normal([5, 3], 5)];
    let transposed = |y: &Exact| Exact::from_fn([y.shape[1], y.shape[0]], |i, j| y.at(j, i));
    let operation = |x: &[Var<B>]| x[0].matmul(&x[1].transpose()?);
    suite.check(&backend, "x y^T", &pair, operation, |x| product(&x[0], &transposed(&x[1])))?;
    // One matrix on both sides, whose gradient has two parts.
    let square = |x: &[Var<B>]| x[0].matmul(&x[0].transpose()?);
    suite.check(&backend, "x x^T", &pair[..1], square, |x| product(&x[0], &transposed(&x[0])))
}

/// [`Backend::layer_norm`].
pub fn layer_norm<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let exact = |x: &[Exact]| {
        let columns = x[0].shape[1] as f64;
        Exact::from_fn(x[0].shape, |i, j| {
            let row = x[0].row(i);
            let mean = row.iter().sum::<f64>() / columns;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / columns;
            let normal = (x[0].at(i, j) - mean) / (variance + 0.01).sqrt();
            x[1].at(0, j) * normal + x[2].at(0, j)
        })
    };
    let operation = |x: &[Var<B>]| x[0].layer_norm(&x[1], &x[2], 0.01);
    let inputs = |n: usize, c: usize| {
        let x = Exact::normal([n, c], 1).map_f32(|x| 2.0 * x + 3.0);
        [x, Exact::normal([1, c], 2), Exact::normal([1, c], 3)]
    };
    suite.check(&backend, "layer_norm", &inputs(4, 7), operation, exact)?;
    suite.check_along(&backend, "layer_norm, large", &inputs(300, 130), operation, exact)?;
    let twice = |x: &[Var<B>]| operation(&[operation(x)?, x[1].clone(), x[2].clone()]);
    let exact_twice = |x: &[Exact]| exact(&[exact(x), x[1].clone(), x[2].clone()]);
    suite.check(&backend, "layer_norm twice", &inputs(4, 7), twice, exact_twice)?;
    // A single column is all mean: the result is the bias, and nothing flows to the input.
    suite.check(&backend, "layer_norm of one column", &inputs(3, 1), operation, exact)
}

/// [`Backend::l2_normalize`], rows of zeros included.
pub fn l2_normalize<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    let exact = |x: &[Exact]| {
        Exact::from_fn(x[0].shape, |i, j| {
            let length = x[0].row(i).iter().map(|x| x * x).sum::<f64>().sqrt();
            x[0].at(i, j) / (length + 0.25)
        })
    };
    let operation = |x: &[Var<B>]| x[0].l2_normalize(0.25);
    let zeros = Exact::from_fn([2, 3], |_, _| 0.0);
    for x in [Exact::normal([5, 3], 1), Exact::normal([4, 1], 2), zeros] {
        suite.check(&backend, "l2_normalize", &[x], operation, exact)?;
    }
    let large = Exact::normal([301, 70], 3).map_f32(|x| 3.0 * x);
    suite.check_along(&backend, "l2_normalize, large", &[large], operation, exact)?;
    let twice = |x: &[Var<B>]| operation(&[operation(x)?.add(&x[0])?]);
    let exact_twice = |x: &[Exact]| {
        let once = exact(x);
        exact(&[Exact::from_fn(once.shape, |i, j| once.at(i, j) + x[0].at(i, j))])
    };
    suite.check(&backend, "l2_normalize twice", &[Exact::normal([4, 7], 4)], twice, exact_twice)
}

/// [`Mlp`]: its layers in order, its names, and its refusals.
pub fn perceptrons<B: Backend>(suite: &Suite<B>) -> Result<()> {
    let backend = suite.make(0);
    for activation in ACTIVATIONS {
        let mut parameters = Parameters::new(&backend);
        let settings = MlpSettings { hidden: vec![6, 4], activation, ..Default::default() };
        let mlp = Mlp::new(&mut parameters, "net", 3, &settings, 2)?;
        let snapshot = parameters.snapshot(0)?;
        let stored = |name: &str| {
            let matrix = snapshot.get(name).cloned().unwrap_or_else(|| panic!("no {name}"));
            Exact {
                shape: matrix.shape,
                values: matrix.values.into_iter().map(f64::from).collect(),
            }
        };
        let x = Exact::normal([5, 3], 1);
        let mut expected = x.clone();
        for index in 0..3 {
            let name = |part: &str| stored(&format!("net/linear_{index}/{part}"));
            let activation = if index < 2 { activation } else { Activation::Identity };
            expected = layer(&expected, &name("w"), &name("b"), activation);
        }
        let found = Exact::read(&mlp.forward(&x.var(&backend)?)?)?;
        found.assert_close(
            &expected,
            suite.tolerance.values,
            &format!("perceptron {activation:?}"),
        );
        assert_eq!(parameters.count(), 3 * 6 + 6 + 6 * 4 + 4 + 4 * 2 + 2);
    }
    let mut parameters = Parameters::new(&backend);
    let settings = MlpSettings { hidden: vec![6], layer_norm: true, ..Default::default() };
    let trunk = Mlp::trunk(&mut parameters, "trunk", 3, &settings)?;
    let rows = trunk.forward(&Exact::normal([5, 3], 1).var(&backend)?)?;
    let means = rows.mean(crate::Over::Columns)?.to_vec()?;
    assert!(means.iter().all(|mean| mean.abs() < 1e-5), "{means:?}");
    let wrong = Var::full(&backend, [5, 4], 0.0)?;
    assert!(matches!(trunk.forward(&wrong), Err(Error::Shape { operation: "linear", .. })));
    let none = MlpSettings { hidden: vec![], ..Default::default() };
    assert!(Mlp::trunk(&mut parameters, "none", 3, &none).is_err());
    let zero = MlpSettings { hidden: vec![0], ..Default::default() };
    assert!(matches!(Mlp::new(&mut parameters, "zero", 3, &zero, 2), Err(Error::Shape { .. })));
    Ok(())
}
