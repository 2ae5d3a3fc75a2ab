//! Gradients against finite differences in double precision, and the documented subgradients.

use cm_quasimetric::{Head, Reduction};

use crate::common::{HEADS, WIDTH, random, reference, rows};

const STEP: f64 = 1e-6;

/// The gradients of `sum_ij w_ij d(x_i, y_j)` with respect to both points and the logit.
fn gradient(head: Head, x: &[f64], y: &[f64], w: &[f64], pairs: bool) -> (Vec<f64>, Vec<f64>, f64) {
    let (mut grad_x, mut grad_y) = (vec![0.0; x.len()], vec![0.0; y.len()]);
    let (x, y) = (rows(x, WIDTH), rows(y, WIDTH));
    let logit = if pairs {
        head.pairwise_backward(x, y, w, &mut grad_x, &mut grad_y)
    } else {
        head.rowwise_backward(x, y, w, &mut grad_x, &mut grad_y)
    };
    (grad_x, grad_y, logit.unwrap())
}

fn objective(head: Head, x: &[f64], y: &[f64], w: &[f64], pairs: bool) -> f64 {
    let m = y.len() / WIDTH;
    let d =
        |i: usize, j: usize| reference(head, &x[i * WIDTH..][..WIDTH], &y[j * WIDTH..][..WIDTH]);
    let terms = w.iter().enumerate();
    if pairs {
        terms.map(|(k, w)| w * d(k / m, k % m)).sum()
    } else {
        terms.map(|(k, w)| w * d(k, k)).sum()
    }
}

fn assert_gradient(expected: f64, found: f64, what: &str) {
    assert!((expected - found).abs() < 1e-6 * (1.0 + expected.abs()), "{what}: {expected} {found}");
}

#[test]
fn gradients_agree_with_finite_differences() {
    for head in HEADS.into_iter().chain([Head::Mrn { components: 2, epsilon: 0.01 }]) {
        for (n, m, pairs) in [(3, 4, true), (10, 19, true), (4, 4, false)] {
            let (x, y) = (random(11, n * WIDTH), random(12, m * WIDTH));
            let w = random(13, if pairs { n * m } else { n });
            let (grad_x, grad_y, _) = gradient(head, &x, &y, &w, pairs);
            // The first and the last rows, which lie in whole and in padded registers.
            let features = |rows: usize| (0..WIDTH).chain((rows - 1) * WIDTH..rows * WIDTH);
            for k in features(n) {
                let [up, down] = [STEP, -STEP].map(|step| {
                    let mut x = x.clone();
                    x[k] += step;
                    objective(head, &x, &y, &w, pairs)
                });
                assert_gradient((up - down) / (2.0 * STEP), grad_x[k], &format!("{head} x {k}"));
            }
            for k in features(m) {
                let [up, down] = [STEP, -STEP].map(|step| {
                    let mut y = y.clone();
                    y[k] += step;
                    objective(head, &x, &y, &w, pairs)
                });
                assert_gradient((up - down) / (2.0 * STEP), grad_y[k], &format!("{head} y {k}"));
            }
        }
    }
}

#[test]
fn logit_gradients_agree_with_finite_differences() {
    let head = |logit| Head::Iqe { groups: 3, reduction: Reduction::MaxMean { logit } };
    for (n, m, pairs) in [(5, 19, true), (6, 6, false)] {
        let (x, y) = (random(14, n * WIDTH), random(15, m * WIDTH));
        let w = random(16, if pairs { n * m } else { n });
        for logit in [-2.0, 0.0, 0.9] {
            let (.., found) = gradient(head(logit), &x, &y, &w, pairs);
            let [up, down] =
                [logit + STEP, logit - STEP].map(|logit| objective(head(logit), &x, &y, &w, pairs));
            assert_gradient((up - down) / (2.0 * STEP), found, "logit");
        }
    }
}

#[test]
fn gradients_are_added_to_what_is_there() {
    let (x, y, w) = (random(17, 2 * WIDTH), random(18, 2 * WIDTH), random(19, 4));
    for head in HEADS {
        let (grad_x, grad_y, _) = gradient(head, &x, &y, &w, true);
        let (mut twice_x, mut twice_y) = (grad_x.clone(), grad_y.clone());
        let pair = (rows(&x, WIDTH), rows(&y, WIDTH));
        head.pairwise_backward(pair.0, pair.1, &w, &mut twice_x, &mut twice_y).unwrap();
        for (once, twice) in grad_x.iter().chain(&grad_y).zip(twice_x.iter().chain(&twice_y)) {
            assert!((2.0 * once - twice).abs() < 1e-12);
        }
    }
}

#[test]
fn a_record_changes_nothing() {
    let heads = HEADS.into_iter().chain([Head::Mrn { components: 4, epsilon: 0.01 }]);
    for (head, (n, m)) in
        heads.flat_map(|head| [(1, 1), (5, 3), (37, 50), (64, 32)].map(|shape| (head, shape)))
    {
        let to_f32 = |values: Vec<f64>| values.iter().map(|&x| x as f32).collect::<Vec<_>>();
        let (mut x, mut y) = (to_f32(random(21, n * WIDTH)), to_f32(random(22, m * WIDTH)));
        // Points that are equal, too close and too far apart to square the difference, and not
        // points at all.
        x[..WIDTH].fill(0.0);
        y[..WIDTH].fill(0.0);
        if n > 4 && m > 2 {
            x[WIDTH..2 * WIDTH].fill(1e-30);
            y[WIDTH..2 * WIDTH].fill(-2e30);
            x[2 * WIDTH] = f32::NAN;
        }
        let w = to_f32(random(23, n * m));
        let (x, y) = (rows(&x, WIDTH), rows(&y, WIDTH));
        let (mut plain, mut distances) = (vec![0.0; n * m], vec![7.0; n * m]);
        head.pairwise(x, y, &mut plain).unwrap();
        let recorded = head.pairwise_recorded(x, y, &mut distances).unwrap();
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&distances), bits(&plain), "{head} {n} {m}");

        let [mut first, mut second] =
            [(); 2].map(|()| (vec![0.5; n * WIDTH], vec![0.5; m * WIDTH]));
        let logit = head.pairwise_backward(x, y, &w, &mut first.0, &mut first.1).unwrap();
        let again = recorded.backward(x, y, &w, &mut second.0, &mut second.1).unwrap();
        assert_eq!(logit.to_bits(), again.to_bits());
        assert_eq!(bits(&first.0), bits(&second.0), "{head} {n} {m}");
        assert_eq!(bits(&first.1), bits(&second.1), "{head} {n} {m}");
        assert!(recorded.backward(y, x, &w, &mut second.1, &mut second.0).is_err() || n == m);
    }
}

/// Gradient of one distance between points of few features, by both forms, which must agree.
fn subgradient(head: Head, x: &[f32], y: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let (mut grad_x, mut grad_y) = (vec![0.0; x.len()], vec![0.0; y.len()]);
    let pair = (rows(x, x.len()), rows(y, y.len()));
    head.pairwise_backward(pair.0, pair.1, &[1.0], &mut grad_x, &mut grad_y).unwrap();
    let (mut row_x, mut row_y) = (vec![0.0; x.len()], vec![0.0; y.len()]);
    head.rowwise_backward(pair.0, pair.1, &[1.0], &mut row_x, &mut row_y).unwrap();
    assert_eq!((&grad_x, &grad_y), (&row_x, &row_y));
    (grad_x, grad_y)
}

#[test]
fn the_first_of_equal_maxima_takes_the_whole_gradient() {
    let (grad_x, grad_y) = subgradient(Head::Max, &[1.0, 3.0, 3.0, 0.0], &[0.0, 1.0, 1.0, 5.0]);
    assert_eq!(grad_x, [0.0, 1.0, 0.0, 0.0]);
    assert_eq!(grad_y, [0.0, -1.0, 0.0, 0.0]);
}

#[test]
fn a_maximum_of_zero_has_no_gradient() {
    let (grad_x, grad_y) = subgradient(Head::Max, &[1.0, 2.0], &[1.0, 5.0]);
    assert_eq!((grad_x, grad_y), (vec![0.0; 2], vec![0.0; 2]));
}

#[test]
fn the_gradient_between_equal_points_is_zero() {
    for head in HEADS {
        let x = [0.25; WIDTH];
        assert_eq!(subgradient(head, &x, &x), (vec![0.0; WIDTH], vec![0.0; WIDTH]));
    }
}

#[test]
fn intervals_that_touch_count_as_two_and_hidden_ones_have_no_gradient() {
    let sum = Head::Iqe { groups: 1, reduction: Reduction::Sum };
    // [0, 1] and [1, 2] touch; [0.25, 0.5] is hidden; the last is empty.
    let (grad_x, grad_y) = subgradient(sum, &[0.0, 1.0, 0.25, 3.0], &[1.0, 2.0, 0.5, 2.5]);
    assert_eq!(grad_x, [-1.0, -1.0, 0.0, 0.0]);
    assert_eq!(grad_y, [1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn of_equal_groups_the_first_takes_the_gradient_of_the_maximum() {
    let max = Head::Iqe { groups: 2, reduction: Reduction::Max };
    let (grad_x, grad_y) = subgradient(max, &[0.0, 0.0], &[2.0, 2.0]);
    assert_eq!((grad_x, grad_y), (vec![-1.0, 0.0], vec![1.0, 0.0]));
}
