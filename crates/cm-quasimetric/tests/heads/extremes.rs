//! Huge, tiny and non-finite features.

use cm_quasimetric::{Head, Reduction};
use proptest::prelude::*;

use crate::common::{HEADS, WIDTH, pairwise, random, rows, rowwise};

/// Every magnitude of `f32`, denormals included, in both signs; some so large that their difference
/// overflows.
fn any_magnitude() -> impl Strategy<Value = Vec<f32>> {
    let bits = (any::<u32>(), any::<bool>()).prop_map(|(bits, collide)| {
        let value = f32::from_bits(if collide { bits & 0xFF80_0000 } else { bits });
        if value.is_finite() { value } else { 0.0 }
    });
    let value = prop_oneof![20 => bits, 1 => prop::sample::select(&[f32::MAX, f32::MIN])];
    prop::collection::vec(value, 4 * WIDTH)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_finite_features_have_a_gradient_that_is_not(
        points in any_magnitude(),
        head in prop::sample::select(&HEADS),
    ) {
        let x = rows(&points[..2 * WIDTH], WIDTH);
        let y = rows(&points[2 * WIDTH..], WIDTH);
        let distances = pairwise(head, &points[..2 * WIDTH], &points[2 * WIDTH..], WIDTH);
        // A distance beyond the largest number is infinite; none is NaN.
        prop_assert!(distances.iter().all(|&d| d >= 0.0), "{:?}", distances);

        let (mut grad_x, mut grad_y) = (vec![0.0; 2 * WIDTH], vec![0.0; 2 * WIDTH]);
        let logit = head.pairwise_backward(x, y, &[1.0, -2.0, 0.5, 3.0], &mut grad_x, &mut grad_y).unwrap();
        prop_assert!(grad_x.iter().chain(&grad_y).all(|g| g.is_finite()), "{}", head);
        prop_assert!(logit.is_finite());
        let logit = head.rowwise_backward(x, y, &[1.0, -2.0], &mut grad_x, &mut grad_y).unwrap();
        prop_assert!(grad_x.iter().chain(&grad_y).all(|g| g.is_finite()), "{}", head);
        prop_assert!(logit.is_finite());
    }
}

#[test]
fn a_difference_that_overflows_does_not_spoil_the_gradients_of_other_pairs() {
    let x = [f32::MIN, 0.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0];
    let y = [f32::MAX, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let (mut grad_x, mut grad_y) = ([0.0; 8], [0.0; 8]);
    let pairs = (rows(&x, 4), rows(&y, 4));
    Head::MRN.pairwise_backward(pairs.0, pairs.1, &[1.0; 4], &mut grad_x, &mut grad_y).unwrap();
    // Towards both rows of y, one unit each; the last pair is the triangle of sides 3, 4 and 5.
    let expected = [-2.0, 0.0, 0.0, 0.0, -1.0 + 0.6, 0.8, 0.0, 0.0];
    for ((found, other), expected) in grad_x.iter().zip(&grad_y).zip(expected) {
        assert!(
            (found - expected).abs() < 1e-6 && (other + expected).abs() < 1e-6,
            "{grad_x:?} {grad_y:?}"
        );
    }
}

#[test]
fn the_euclidean_gradient_is_a_unit_vector_at_every_magnitude() {
    for magnitude in [1e-44_f32, 1e-39, 1e-30, 1e-18, 1.0, 1e18, 1e30, 1e38] {
        let (x, y) = ([3.0 * magnitude, 0.0, 0.0, 0.0], [0.0, -3.0 * magnitude, 0.0, 0.0]);
        for form in [Head::pairwise_backward::<f32>, Head::rowwise_backward::<f32>] {
            let (mut grad_x, mut grad_y) = ([0.0; 4], [0.0; 4]);
            form(&Head::MRN, rows(&x, 4), rows(&y, 4), &[1.0], &mut grad_x, &mut grad_y).unwrap();
            for (found, expected) in grad_x.iter().zip([0.5_f32.sqrt(), 0.5_f32.sqrt(), 0.0, 0.0]) {
                assert!((found - expected).abs() < 1e-6, "{magnitude}: {grad_x:?}");
            }
            assert_eq!(grad_y, grad_x.map(|g| -g));
        }
    }
}

#[test]
fn close_points_far_from_the_origin_keep_their_gradient() {
    // A gradient formed as a difference of matrix products would have no digit left here.
    let x = [1000.0_f32, 1000.0, 0.0, 0.0];
    let y = [1000.0_f32 + 3.0 / 4096.0, 1000.0 - 4.0 / 4096.0, 0.0, 0.0];
    let (mut grad_x, mut grad_y) = ([0.0; 4], [0.0; 4]);
    let pair = (rows(&x, 4), rows(&y, 4));
    Head::MRN.pairwise_backward(pair.0, pair.1, &[1.0], &mut grad_x, &mut grad_y).unwrap();
    assert!((grad_x[0] + 0.6).abs() < 1e-6 && (grad_x[1] - 0.8).abs() < 1e-6, "{grad_x:?}");
}

#[test]
fn tiny_distances_are_not_lost_to_underflow() {
    let x = [1e-30_f32, 0.0, 0.0, 0.0];
    let zero = [0.0; 4];
    assert_eq!(rowwise(Head::MRN, &x, &zero, 4), [1e-30]);
    assert_eq!(pairwise(Head::MRN, &x, &zero, 4), [1e-30]);
}

#[test]
fn rows_that_are_not_finite_have_distance_nan_and_spoil_no_other() {
    for head in HEADS {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut x = random(20, 3 * WIDTH);
            let y = random(21, 3 * WIDTH);
            let clean = pairwise(head, &x, &y, WIDTH);
            x[WIDTH + 5] = bad;
            let there = pairwise(head, &x, &y, WIDTH);
            let back = pairwise(head, &y, &x, WIDTH);
            for j in 0..3 {
                assert!(there[3 + j].is_nan() && back[j * 3 + 1].is_nan(), "{head} {bad}");
                assert_eq!(there[j], clean[j]);
                assert_eq!(there[6 + j], clean[6 + j]);
            }
            let row = rowwise(head, &x, &y, WIDTH);
            assert!(row[1].is_nan() && !row[0].is_nan() && !row[2].is_nan());
            let (spoiled, other) = (&x[WIDTH..2 * WIDTH], &y[..WIDTH]);
            assert!(head.distance(spoiled, other).unwrap().is_nan(), "{head} {bad}");
            assert!(head.distance(other, spoiled).unwrap().is_nan(), "{head} {bad}");
        }
    }
}

#[test]
fn a_maximum_is_not_spoiled_by_a_total_that_overflows() {
    let head = Head::Iqe { groups: 4, reduction: Reduction::Max };
    let (x, y) = ([-2e38_f32; 4], [1e38_f32; 4]);
    assert_eq!(pairwise(head, &x, &y, 4), [3e38]);
    assert_eq!(rowwise(head, &x, &y, 4), [3e38]);
}
