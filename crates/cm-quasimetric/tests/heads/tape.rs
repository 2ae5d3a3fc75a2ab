//! The heads as operations of dfdx: gradients through its tape.

use cm_quasimetric::{Error, Head, MaxMeanIqeConfig, Reduction, pairwise, rowwise};
use dfdx::prelude::*;

use crate::common::{HEADS, WIDTH, random, reference};

type Matrix = Tensor<(usize, usize), f64, Cpu>;

fn matrix(dev: &Cpu, seed: u64, rows: usize) -> Matrix {
    dev.tensor_from_vec(random(seed, rows * WIDTH), (rows, WIDTH))
}

/// Finite differences of a function of one matrix, feature by feature.
fn numeric(dev: &Cpu, at: &Matrix, f: impl Fn(Matrix) -> f64) -> Vec<f64> {
    let (values, step) = (at.as_vec(), 1e-6);
    (0..values.len())
        .map(|k| {
            let [up, down] = [step, -step].map(|step| {
                let mut values = values.clone();
                values[k] += step;
                f(dev.tensor_from_vec(values, *at.shape()))
            });
            (up - down) / (2.0 * step)
        })
        .collect()
}

fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() < 2e-6, "{what} {k}: {found} {expected}");
    }
}

#[test]
fn gradients_reach_both_sides() {
    let dev = Cpu::default();
    let (x, y) = (matrix(&dev, 1, 3), matrix(&dev, 2, 4));
    for head in HEADS {
        let distances = pairwise(head, x.leaky_trace(), y.leaky_trace()).unwrap();
        let gradients = distances.square().mean().backward();
        let f = |x: &Matrix, y: &Matrix| {
            let (x, y) = (x.as_vec(), y.as_vec());
            let squares = x
                .chunks(WIDTH)
                .flat_map(|x| y.chunks(WIDTH).map(move |y| reference(head, x, y).powi(2)));
            squares.sum::<f64>() / 12.0
        };
        assert_close(
            &gradients.get(&x).as_vec(),
            &numeric(&dev, &x, |x| f(&x, &y)),
            &format!("{head} x"),
        );
        assert_close(
            &gradients.get(&y).as_vec(),
            &numeric(&dev, &y, |y| f(&x, &y)),
            &format!("{head} y"),
        );
    }
}

#[test]
fn x_and_y_may_share_a_parent_or_be_one_tensor() {
    let dev = Cpu::default();
    let parent = matrix(&dev, 3, 4);
    let scale = matrix(&dev, 4, 4);
    for head in HEADS {
        // y is made from x on the same tape.
        let f = |parent: Matrix| {
            let y = (parent.clone() * scale.clone()).sin();
            rowwise(head, parent.leaky_trace(), y).unwrap().sum::<Rank0, _>().array()
        };
        let x = parent.leaky_trace();
        let y = (parent.leaky_trace() * scale.clone()).sin();
        let gradients = rowwise(head, x, y).unwrap().sum().backward();
        assert_close(
            &gradients.get(&parent).as_vec(),
            &numeric(&dev, &parent, f),
            &format!("{head} shared"),
        );

        // All pairs of one tensor: the diagonal adds nothing, each other pair adds twice.
        let f = |x: Matrix| pairwise(head, x.clone(), x).unwrap().sum::<Rank0, _>().array();
        let gradients =
            pairwise(head, parent.leaky_trace(), parent.clone()).unwrap().sum().backward();
        let found = gradients.get(&parent).as_vec();
        let expected = numeric(&dev, &parent, f);
        // Finite differences move both sides of the diagonal at once, where the distance stays 0.
        assert_close(&found, &expected, &format!("{head} one tensor"));
    }
}

#[test]
fn broadcast_and_permuted_tensors_are_understood() {
    let dev = Cpu::default();
    let goal: Tensor<(usize,), f64, _> = dev.tensor_from_vec(random(5, WIDTH), (WIDTH,));
    let columns: Tensor<(usize, usize), f64, _> =
        dev.tensor_from_vec(random(6, 3 * WIDTH), (WIDTH, 3));
    let goals = goal.leaky_trace().broadcast_like::<_, Axis<0>>(&(3, WIDTH));
    let states = columns.leaky_trace().permute::<(usize, usize), Axes2<1, 0>>();
    let distances = rowwise(Head::MRN, states, goals).unwrap();

    let transposed = columns.clone().permute::<(usize, usize), Axes2<1, 0>>().as_vec();
    let f = |goal: &[f64]| -> f64 {
        transposed.chunks(WIDTH).map(|x| reference(Head::MRN, x, goal)).sum()
    };
    assert!((distances.as_vec().iter().sum::<f64>() - f(&goal.as_vec())).abs() < 1e-12);
    let gradients = distances.sum().backward();
    let step = 1e-6;
    for (k, &found) in gradients.get(&goal).as_vec().iter().enumerate() {
        let [up, down] = [step, -step].map(|step| {
            let mut goal = goal.as_vec();
            goal[k] += step;
            f(&goal)
        });
        assert!((found - (up - down) / (2.0 * step)).abs() < 2e-6);
    }
    // Feature 7 of the second state.
    let found = gradients.get(&columns)[[7, 1]];
    let [up, down] = [step, -step].map(|step| {
        let mut x = transposed[WIDTH..2 * WIDTH].to_vec();
        x[7] += step;
        reference(Head::MRN, &x, &goal.as_vec())
    });
    assert!((found - (up - down) / (2.0 * step)).abs() < 2e-6);
}

#[test]
fn the_module_learns_its_logit() {
    let dev = Cpu::default();
    let mut module = dev.build_module::<MaxMeanIqeConfig<3>, f64>();
    assert_eq!(module.logit.array(), [0.0]);
    module.logit = dev.tensor([0.4]);
    let (x, y) = (matrix(&dev, 7, 4), matrix(&dev, 8, 4));
    assert_eq!(module.num_trainable_params(), 1);

    let f = |logit: f64, pairs: bool| {
        let head = Head::Iqe { groups: 3, reduction: Reduction::MaxMean { logit } };
        if pairs {
            pairwise(head, x.clone(), y.clone()).unwrap().sum::<Rank0, _>().array()
        } else {
            rowwise(head, x.clone(), y.clone()).unwrap().sum::<Rank0, _>().array()
        }
    };
    let slope = |pairs| (f(0.4 + 1e-6, pairs) - f(0.4 - 1e-6, pairs)) / 2e-6;
    let gradients = module.forward((x.leaky_trace(), y.clone())).sum().backward();
    assert!((gradients.get(&module.logit).array()[0] - slope(true)).abs() < 1e-7);
    let gradients = module.rowwise(x.leaky_trace(), y.clone()).unwrap().sum().backward();
    assert!((gradients.get(&module.logit).array()[0] - slope(false)).abs() < 1e-7);

    let single = module.to_dtype::<f32>();
    assert_eq!(single.logit.array(), [0.4_f32]);
}

#[test]
fn sizes_known_at_compile_time_work_as_well() {
    let dev = Cpu::default();
    let x: Tensor<Rank2<3, 8>, f32, _> = dev.sample_normal();
    let y: Tensor<Rank2<5, 8>, f32, _> = dev.sample_normal();
    let distances: Tensor<Rank2<3, 5>, f32, _, _> =
        pairwise(Head::MRN, x.leaky_trace(), y).unwrap();
    let gradients = distances.mean().backward();
    assert!(gradients.get(&x).array().iter().flatten().any(|&g| g != 0.0));
}

#[test]
fn tensors_of_the_wrong_shape_are_errors_too() {
    let dev = Cpu::default();
    let tensor = |n, d| dev.zeros_like(&(n, d));
    let x: Tensor<(usize, usize), f32, _> = tensor(2, 4);
    let wide: Tensor<(usize, usize), f32, _> = tensor(2, 6);
    let empty: Tensor<(usize, usize), f32, _> = tensor(0, 4);
    let odd: Tensor<(usize, usize), f32, _> = tensor(2, 3);
    assert!(matches!(pairwise(Head::Max, x.clone(), wide.clone()), Err(Error::Width { .. })));
    assert!(matches!(rowwise(Head::Max, x.clone(), wide), Err(Error::Width { .. })));
    assert!(matches!(pairwise(Head::Max, x.clone(), empty.clone()), Err(Error::Empty { .. })));
    assert!(matches!(
        rowwise(Head::Max, x, empty),
        Err(Error::RowCount { .. } | Error::Empty { .. })
    ));
    assert!(matches!(pairwise(Head::MRN, odd.clone(), odd), Err(Error::Indivisible { .. })));
}
