//! Random processes and comparisons that several tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]

use cm_envs::tabular::{ControlledProcess, Discount, MarkovChain, Policy};
use proptest::prelude::*;

/// A row of `entries` probabilities, about half of them zero.
fn row(entries: usize) -> impl Strategy<Value = Vec<f64>> {
    let weight = prop_oneof![Just(0.0), 0.01..1.0_f64];
    (prop::collection::vec(weight, entries), 0..entries).prop_map(|(mut row, sure)| {
        if row.iter().all(|&weight| weight == 0.0) {
            row[sure] = 1.0;
        }
        let sum: f64 = row.iter().sum();
        row.into_iter().map(|weight| weight / sum).collect()
    })
}

fn rows(count: usize, entries: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(row(entries), count).prop_map(|rows| rows.concat())
}

/// A chain of 1 to `largest` states; often some states cannot reach others.
pub(crate) fn chains(largest: usize) -> impl Strategy<Value = MarkovChain> {
    (1..=largest).prop_flat_map(|states| {
        rows(states, states).prop_map(move |rows| MarkovChain::from_dense(states, &rows).unwrap())
    })
}

/// A controlled process and a policy on it.
pub(crate) fn processes(
    largest: usize,
    actions: usize,
) -> impl Strategy<Value = (ControlledProcess, Policy)> {
    (1..=largest, 1..=actions).prop_flat_map(|(states, actions)| {
        (rows(states * actions, states), rows(states, actions)).prop_map(move |(rows, policy)| {
            let process = ControlledProcess::from_dense(states, actions, &rows).unwrap();
            (process, Policy::from_dense(actions, &policy).unwrap())
        })
    })
}

pub(crate) fn discounts() -> impl Strategy<Value = Discount> {
    prop_oneof![0.05..0.99_f64, Just(0.999)].prop_map(|value| Discount::new(value).unwrap())
}

pub(crate) fn gamma(value: f64) -> Discount {
    Discount::new(value).unwrap()
}

/// Equal infinities, or numbers within `tolerance` of each other, relative to those above 1.
#[track_caller]
pub(crate) fn assert_close(left: f64, right: f64, tolerance: f64) {
    let equal =
        left == right || (left - right).abs() <= tolerance * left.abs().max(right.abs()).max(1.0);
    assert!(equal, "{left} and {right} differ by {:e}", (left - right).abs());
}

/// Every deterministic policy of a small process.
pub(crate) fn deterministic_policies(
    states: usize,
    actions: usize,
) -> impl Iterator<Item = Policy> {
    (0..actions.pow(states as u32)).map(move |mut code| {
        let mut choices = Vec::with_capacity(states);
        for _ in 0..states {
            choices.push((code % actions) as u32);
            code /= actions;
        }
        Policy::deterministic(actions, &choices).unwrap()
    })
}

/// Distances that must form a quasimetric: positivity, identity, triangle inequality.
pub(crate) fn assert_quasimetric(size: usize, d: impl Fn(usize, usize) -> f64) {
    for x in 0..size {
        for y in 0..size {
            assert!(d(x, y) >= 0.0, "d({x}, {y}) = {}", d(x, y));
            assert_eq!(d(x, y) == 0.0, x == y, "d({x}, {y}) = {}", d(x, y));
            for z in 0..size {
                let (direct, through) = (d(x, z), d(x, y) + d(y, z));
                let slack = 1e-9 * (1.0 + if direct.is_finite() { direct } else { 0.0 });
                assert!(
                    direct <= through + slack,
                    "d({x}, {z}) = {direct} > {through} through {y}"
                );
            }
        }
    }
}
