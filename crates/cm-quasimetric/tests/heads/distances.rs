//! Values against the definitions, and the axioms of a quasimetric.

use cm_quasimetric::{Head, Reduction};
use proptest::prelude::*;

use crate::common::{HEADS, WIDTH, pairwise, random, reference, rowwise, to_f32};

#[test]
fn pairwise_agrees_with_the_definition() {
    for head in HEADS {
        // Row counts on both sides of whole registers and tiles.
        for (n, m) in [(1, 1), (3, 17), (8, 16), (33, 5), (41, 70)] {
            let (x, y) = (random(1, n * WIDTH), random(2, m * WIDTH));
            let found = pairwise(head, &x, &y, WIDTH);
            let single = pairwise(head, &to_f32(&x), &to_f32(&y), WIDTH);
            for i in 0..n {
                for j in 0..m {
                    let expected =
                        reference(head, &x[i * WIDTH..][..WIDTH], &y[j * WIDTH..][..WIDTH]);
                    let place = i * m + j;
                    assert!((found[place] - expected).abs() < 1e-12, "{head} {i} {j}");
                    assert!((f64::from(single[place]) - expected).abs() < 1e-5, "{head} {i} {j}");
                }
            }
        }
    }
}

#[test]
fn rowwise_is_the_diagonal_of_pairwise() {
    for head in HEADS {
        for n in [1, 7, 16, 65] {
            let (x, y) = (random(3, n * WIDTH), random(4, n * WIDTH));
            let (rows, pairs) = (rowwise(head, &x, &y, WIDTH), pairwise(head, &x, &y, WIDTH));
            for (i, &row) in rows.iter().enumerate() {
                assert!((row - pairs[i * n + i]).abs() < 1e-12, "{head} {i}");
                let part = i * WIDTH..(i + 1) * WIDTH;
                assert_eq!(head.distance(&x[part.clone()], &y[part]).unwrap(), row, "{head} {i}");
            }
        }
    }
}

#[test]
fn widths_that_fill_no_register_and_widths_that_overfill_it() {
    let reductions = [Reduction::Sum, Reduction::Max, Reduction::Mean];
    for width in [1, 2, 3, 5, 16, 17, 33, 130] {
        let (x, y) = (random(5, 3 * width), random(6, 4 * width));
        let mut heads: Vec<Head> =
            reductions.map(|reduction| Head::Iqe { groups: 1, reduction }).to_vec();
        heads.push(Head::Max);
        if width % 2 == 0 {
            heads.push(Head::MRN);
            heads.push(Head::Mrn { components: width / 2, epsilon: 0.0 });
        }
        for head in heads {
            let found = pairwise(head, &x, &y, width);
            for i in 0..3 {
                for j in 0..4 {
                    let expected =
                        reference(head, &x[i * width..][..width], &y[j * width..][..width]);
                    assert!((found[i * 4 + j] - expected).abs() < 1e-12, "{head} width {width}");
                }
            }
        }
    }
}

#[test]
fn an_mrn_of_components_is_the_mean_of_mrns() {
    let (x, y) = (random(7, WIDTH), random(8, WIDTH));
    let together = rowwise(Head::Mrn { components: 4, epsilon: 0.0 }, &x, &y, WIDTH)[0];
    let parts = x.chunks(6).zip(y.chunks(6)).map(|(x, y)| rowwise(Head::MRN, x, y, 6)[0]);
    assert!((together - parts.sum::<f64>() / 4.0).abs() < 1e-14);
}

#[test]
fn epsilon_raises_every_squared_difference() {
    let head = Head::Mrn { components: 1, epsilon: 1e-8 };
    let x = random(9, WIDTH);
    let expected = (12.0 * 1e-8_f64).sqrt();
    assert!((rowwise(head, &x, &x, WIDTH)[0] - expected).abs() < 1e-15);
    assert!((pairwise(head, &x, &x, WIDTH)[0] - expected).abs() < 1e-15);
}

/// Features that collide often, so that ties, touching intervals and zeros all occur.
fn features() -> impl Strategy<Value = Vec<f32>> {
    let value = prop_oneof![
        3 => -2.0..2.0_f32,
        1 => (-3..3_i32).prop_map(|value| value as f32 * 0.5),
        1 => prop_oneof![Just(0.0_f32), Just(-0.0), Just(1e-40), Just(1e-20), Just(1e15), Just(-1e15)],
    ];
    prop::collection::vec(value, 3 * WIDTH)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn quasimetric_axioms(points in features(), head in prop::sample::select(&HEADS)) {
        let d = pairwise(head, &points, &points, WIDTH);
        for a in 0..3 {
            prop_assert_eq!(d[a * 3 + a], 0.0);
            for b in 0..3 {
                prop_assert!(d[a * 3 + b] >= 0.0);
                for c in 0..3 {
                    let (direct, detour) = (d[a * 3 + c], d[a * 3 + b] + d[b * 3 + c]);
                    prop_assert!(direct <= detour * (1.0 + 1e-5), "{} {} {}", head, direct, detour);
                }
            }
        }
        let rows = rowwise(head, &points, &points, WIDTH);
        prop_assert!(rows.iter().all(|&d| d == 0.0));
    }

    #[test]
    fn a_common_shift_changes_nothing(
        points in prop::collection::vec(-2.0..2.0_f64, 2 * WIDTH),
        shift in prop::collection::vec(-2.0..2.0_f64, WIDTH),
        head in prop::sample::select(&HEADS),
    ) {
        // The intervals of IQE's groups overlap, so only one shift for all features keeps their
        // union.
        let shift = |i: usize| if matches!(head, Head::Iqe { .. }) { shift[0] } else { shift[i % WIDTH] };
        let moved: Vec<f64> = points.iter().enumerate().map(|(i, value)| value + shift(i)).collect();
        let (before, after) = (pairwise(head, &points, &points, WIDTH), pairwise(head, &moved, &moved, WIDTH));
        for (before, after) in before.iter().zip(after) {
            prop_assert!((before - after).abs() < 1e-12);
        }
    }
}
