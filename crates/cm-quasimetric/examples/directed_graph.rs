//! Learns the shortest-path distances of a directed graph with an MRN head on a small dfdx network.
//!
//! The graph is a one-way ring with a few one-way shortcuts, so going there and coming back differ.
//! A quarter of the pairs are never shown; the head fills them in, because it cannot break the
//! triangle inequality.
//!
//! Run with `cargo run --release --example directed_graph`.

use std::collections::VecDeque;

use cm_quasimetric::{Head, pairwise};
use dfdx::optim::{Adam, AdamConfig};
use dfdx::prelude::*;

const NODES: usize = 30;
const FEATURES: usize = 128;
const STEPS: usize = 2000;
const SHORTCUTS: [(usize, usize); 4] = [(2, 17), (11, 25), (20, 5), (27, 14)];

type Network = ((Linear<NODES, 96>, ReLU), Linear<96, FEATURES>);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dev = Cpu::seed_from_u64(0);
    let exact: Vec<f32> = (0..NODES).flat_map(shortest_paths).collect();
    // A fixed pseudo-random three quarters of the pairs is shown.
    let shown: Vec<f32> =
        (0..NODES * NODES).map(|pair| if (pair * 7919) % 101 < 75 { 1.0 } else { 0.0 }).collect();

    let identity: Vec<f32> =
        (0..NODES * NODES).map(|k| if k / NODES == k % NODES { 1.0 } else { 0.0 }).collect();
    let nodes: Tensor<(usize, Const<NODES>), f32, _> =
        dev.tensor_from_vec(identity, (NODES, Const::<NODES>));
    let target = dev.tensor_from_vec(exact.clone(), (NODES, NODES));
    let mask = dev.tensor_from_vec(shown.clone(), (NODES, NODES));

    let mut network = dev.build_module::<Network, f32>();
    let mut adam = Adam::new(&network, AdamConfig { lr: 1e-3, ..Default::default() });
    let mut gradients = network.alloc_grads();
    for step in 0..=STEPS {
        let features = network.forward_mut(nodes.trace(gradients));
        let goals = features.with_empty_tape();
        // Both sides come from one network, so both receive gradients.
        let distances = pairwise(Head::MRN, features, goals)?;
        let loss = ((distances - target.clone()) * mask.clone()).square().mean();
        if step % 500 == 0 {
            println!("step {step:4}  loss on the shown pairs {:.5}", loss.array());
        }
        gradients = loss.backward();
        adam.update(&mut network, &gradients)?;
        network.zero_grads(&mut gradients);
    }

    let features = network.forward(nodes);
    let distances = pairwise(Head::MRN, features.clone(), features)?.as_vec();
    let error = |wanted: f32| {
        let pairs = distances.iter().zip(&exact).zip(&shown).filter(|(_, shown)| **shown == wanted);
        let (sum, count) =
            pairs.fold((0.0, 0), |(sum, n), ((d, e), _)| (sum + (d - e).abs(), n + 1));
        sum / count as f32
    };
    println!("mean error in steps: shown pairs {:.3}, hidden pairs {:.3}", error(1.0), error(0.0));
    println!(
        "from node 0 to 1: {:.2} (exact 1), back: {:.2} (exact {})",
        distances[1], distances[NODES], exact[NODES]
    );

    let d = |a: usize, b: usize| distances[a * NODES + b];
    let worst = (0..NODES.pow(3))
        .map(|k| (k / NODES / NODES, k / NODES % NODES, k % NODES))
        .map(|(a, b, c)| d(a, c) - d(a, b) - d(b, c))
        .fold(f32::NEG_INFINITY, f32::max);
    println!("largest d(a,c) - d(a,b) - d(b,c) over all {} triples: {worst:.1e}", NODES.pow(3));
    if worst > 1e-4 {
        return Err("a triangle is violated".into());
    }
    println!("no triangle is violated");
    Ok(())
}

/// Steps from `start` to every node, by breadth-first search.
fn shortest_paths(start: usize) -> Vec<f32> {
    let mut steps = vec![f32::INFINITY; NODES];
    steps[start] = 0.0;
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        let shortcuts = SHORTCUTS.iter().filter(|(from, _)| *from == node).map(|(_, to)| *to);
        for next in shortcuts.chain([(node + 1) % NODES]) {
            if steps[next].is_infinite() {
                steps[next] = steps[node] + 1.0;
                queue.push_back(next);
            }
        }
    }
    steps
}
