//! The numbers have the distributions they claim, and streams do not overlap.

use std::collections::HashSet;

use cm_random::{Philox, below_u32, below_u64, normal_pair, positive_unit_f32, unit_f32, unit_f64};
use proptest::prelude::*;
use rand::{Rng, RngExt};

/// Pearson's statistic of `counts` against equal probabilities.
fn chi_square(counts: &[u32]) -> f64 {
    let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum()
}

/// With 99 degrees of freedom the statistic is above 161 once in 10,000.
#[test]
fn uniform_numbers_fill_their_bins_evenly() {
    for seed in 0..5 {
        let philox = Philox::new(seed);
        let mut bins = [[0_u32; 100]; 4];
        for index in 0..50_000 {
            let words = philox.block(3, 1, index);
            let wide = u64::from(words[3]) << 32 | u64::from(words[2]);
            bins[0][(unit_f32(words[0]) * 100.0) as usize] += 1;
            bins[1][(unit_f64(wide) * 100.0) as usize] += 1;
            bins[2][below_u32(words[1], 100) as usize] += 1;
            bins[3][below_u64(wide.rotate_left(17), 100) as usize] += 1;
        }
        for counts in &bins {
            assert!(chi_square(counts) < 161.0, "seed {seed}: {}", chi_square(counts));
        }
    }
}

#[test]
fn normal_numbers_have_the_moments_of_the_normal_distribution() {
    let philox = Philox::new(17);
    let draws = 400_000;
    let (mut sums, mut product) = ([0.0_f64; 4], 0.0);
    let mut beyond_two = 0;
    for index in 0..draws {
        let words = philox.block(0, 0, index);
        let (x, y) = normal_pair(words[0], words[1]);
        for value in [f64::from(x), f64::from(y)] {
            for (power, sum) in sums.iter_mut().enumerate() {
                *sum += value.powi(power as i32 + 1);
            }
            beyond_two += u32::from(value.abs() > 2.0);
        }
        product += f64::from(x) * f64::from(y);
    }
    let count = 2.0 * f64::from(draws);
    // Five standard errors of each estimate; the variances of x, x^2, x^3, x^4 are 1, 2, 15, 96.
    for ((sum, expected), variance) in
        sums.into_iter().zip([0.0, 1.0, 0.0, 3.0]).zip([1.0_f64, 2.0, 15.0, 96.0])
    {
        let error = (sum / count - expected).abs();
        assert!(error < 5.0 * (variance / count).sqrt(), "{} for {expected}", sum / count);
    }
    assert!((product / f64::from(draws)).abs() < 5.0 / f64::from(draws).sqrt());
    assert!((f64::from(beyond_two) / count - 0.045_500_26).abs() < 0.001_2);
}

#[test]
fn seeds_steps_streams_and_indices_give_different_blocks() {
    let mut seen = HashSet::new();
    for value in 0..1000 {
        let wide = u64::from(value) << 32;
        assert!(seen.insert(Philox::new(u64::from(value)).block(0, 0, 0)));
        for block in [
            Philox::new(0).block(u64::from(value + 1), 0, 0),
            Philox::new(0).block(0, value + 1, 0),
            Philox::new(0).block(0, 0, value + 1),
            Philox::new(0).block(wide + (1 << 32), 0, 0),
            Philox::new(wide + (1 << 32)).block(0, 0, 0),
        ] {
            assert!(seen.insert(block));
        }
    }
}

#[test]
fn serves_as_a_generator_of_rand() {
    let mut stream = Philox::new(1).stream(2, 3);
    let mut counts = [0_u32; 6];
    for _ in 0..60_000 {
        counts[stream.random_range(0..6)] += 1;
    }
    // Five degrees of freedom: above 25.7 once in 10,000.
    assert!(chi_square(&counts) < 25.7, "{counts:?}");
}

proptest! {
    #[test]
    fn conversions_stay_in_range(word: u32, wide: u64, bound in 1_u32.., wide_bound in 1_u64..) {
        prop_assert!((0.0..1.0).contains(&unit_f32(word)));
        prop_assert!(positive_unit_f32(word) > 0.0 && positive_unit_f32(word) <= 1.0);
        prop_assert!((0.0..1.0).contains(&unit_f64(wide)));
        prop_assert!(below_u32(word, bound) < bound);
        prop_assert!(below_u64(wide, wide_bound) < wide_bound);
    }

    #[test]
    fn seeking_is_the_same_as_reading(seed: u64, step: u64, stream: u32, word in 0_u64..200) {
        let mut read = Philox::new(seed).stream(step, stream);
        for _ in 0..word {
            read.next_u32();
        }
        let mut sought = Philox::new(seed).stream(step, stream);
        sought.seek(word);
        let expected: Vec<u32> = (0..9).map(|_| read.next_u32()).collect();
        let found: Vec<u32> = (0..9).map(|_| sought.next_u32()).collect();
        prop_assert_eq!(expected, found);
    }
}
