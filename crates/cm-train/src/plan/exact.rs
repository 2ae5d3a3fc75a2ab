//! Road maps over exact distances of tabular processes: what planning costs when nothing is learned.

use cm_envs::tabular::{AllPairs, ControlledProcess, Discount, Grid, GridRules};

use super::RoadMap;
use super::cover::cover;
use super::graph::Way;
use super::road_map::Rule;

/// Distances between states, and a map of some of them.
struct Exact {
    /// At `[from * states + to]`.
    distances: Vec<f32>,
    states: usize,
    map: RoadMap,
}

impl Exact {
    /// Of every state if `most` allows it, with links no longer than `link`.
    fn new(states: usize, distances: Vec<f32>, most: usize, link: f32, reach: f32) -> Self {
        let d = |from: usize, to: usize| distances[from * states + to];
        let all: Vec<usize> = (0..states).collect();
        let found = cover(states, 0, most, 0.0, |some, others| {
            let others = others.unwrap_or(&all);
            let pairs = some.iter().flat_map(|&a| others.iter().map(move |&b| (a, b)));
            Ok(pairs.map(|(a, b)| d(a, b).max(d(b, a))).collect())
        })
        .unwrap();
        let mut links = Vec::new();
        for (from, &a) in found.nodes.iter().enumerate() {
            for (to, &b) in found.nodes.iter().enumerate() {
                if from != to && d(a, b) <= link {
                    links.push((from as u32, to as u32, d(a, b)));
                }
            }
        }
        let rule = Rule { link, reach, steps: 1, radius: None, noisy: false };
        let nodes = found.nodes.iter().map(|&state| state as f32).collect();
        let map = RoadMap::with_links(1, nodes, links, rule);
        Self { distances, states, map }
    }

    fn d(&self, from: usize, to: usize) -> f32 {
        self.distances[from * self.states + to]
    }

    fn node(&self, node: u32) -> usize {
        self.map.node(node as usize)[0] as usize
    }

    fn near(&self, state: usize, ends: bool) -> Vec<(u32, f32)> {
        let nodes = || (0..self.map.nodes().len() as u32).map(|node| self.node(node));
        let from: Vec<f32> = nodes().map(|node| self.d(state, node)).collect();
        let to: Vec<f32> = nodes().map(|node| self.d(node, state)).collect();
        self.map.near_by(&[state as f32], &from, &to, ends).remove(0)
    }

    fn ways(&self, goal: usize) -> Vec<Way> {
        self.map.ways(&self.near(goal, true), &std::collections::BTreeMap::new())
    }

    /// The composed distance from every state to a goal.
    fn composed(&self, goal: usize) -> Vec<f32> {
        let ways = self.ways(goal);
        let from = |start: usize| {
            let near = self.near(start, false);
            let ahead = near.iter().map(|&(node, d)| d + ways[node as usize].remaining);
            let direct = self.d(start, goal);
            let direct = if direct <= self.map.rule.link { direct } else { f32::INFINITY };
            ahead.fold(direct, f32::min)
        };
        (0..self.states).map(from).collect()
    }

    /// Where a planner sends its policy from every state: the farthest node of the path that it may
    /// be sent to, or the goal.
    fn targets(&self, goal: usize) -> Vec<usize> {
        let ways = self.ways(goal);
        let target = |state: usize| {
            if self.d(state, goal) <= self.map.rule.reach {
                return goal;
            }
            let near = self.near(state, false);
            let entry = near
                .iter()
                .map(|&(node, d)| (d + ways[node as usize].remaining, node))
                .filter(|(remaining, _)| remaining.is_finite())
                .min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((_, entry)) = entry else { return goal };
            let mut path = std::iter::successors(Some(entry), |&node| ways[node as usize].next);
            let mut best = path.next().map_or(goal, |node| self.node(node));
            for node in path.map(|node| self.node(node)) {
                if self.d(state, node) <= self.map.rule.reach {
                    best = node;
                }
            }
            if best == state { goal } else { best }
        };
        (0..self.states).map(target).collect()
    }
}

/// The chance to come to `goal` within `steps`, from each state, if `action(state)` is taken there.
fn success(
    process: &ControlledProcess,
    goal: usize,
    steps: usize,
    action: impl Fn(usize) -> usize,
) -> Vec<f64> {
    let mut chance = vec![0.0; process.states()];
    chance[goal] = 1.0;
    for _ in 0..steps {
        let after = |state: usize| match state == goal {
            true => 1.0,
            false => process.successors(state, action(state)).map(|(s, p)| p * chance[s]).sum(),
        };
        chance = (0..process.states()).map(after).collect();
    }
    chance
}

/// Of a policy that is perfect towards whatever it is sent to.
fn planned(exact: &Exact, process: &ControlledProcess, goal: usize, steps: usize) -> Vec<f64> {
    let discount = Discount::new(0.9).unwrap();
    let targets = exact.targets(goal);
    let mut policies: Vec<Option<Vec<u32>>> = vec![None; process.states()];
    for &target in &targets {
        policies[target].get_or_insert_with(|| {
            process.reach(target, discount).unwrap().greedy_actions().to_vec()
        });
    }
    success(process, goal, steps, |state| {
        policies[targets[state]].as_ref().map_or(0, |policy| policy[state] as usize)
    })
}

fn rows(all: &AllPairs) -> Vec<f32> {
    let starts = 0..all.states();
    starts.flat_map(|start| all.from_start(start).map(|d| d as f32).collect::<Vec<_>>()).collect()
}

fn grid(slip: f64) -> Grid {
    let layout = "
        ~~~~~~#~~~~~
        ~####~#~###~
        ~#~~~~~~~~#~
        ~#~####~#~#~
        ~~~#~~~~#~~~
        ~#~#~####~#~
        ~#~~~~~~~~#~
        ~~~#~#~#~~~~
    ";
    Grid::parse(layout, &GridRules { slip, ..Default::default() }).unwrap()
}

/// By the triangle inequality chains are never shorter than the distance; the more nodes, the less
/// they are longer; with every state, and nothing left to chance, they are the distance.
#[test]
fn composed_distances_come_down_to_the_exact_one_as_nodes_grow() {
    let discount = Discount::new(0.9).unwrap();
    for slip in [0.0, 0.2] {
        let grid = grid(slip);
        let process = grid.process();
        let (states, all) = (process.states(), process.successor_distances(discount).unwrap());
        let link = 8.0 * discount.step_length() as f32;
        let excess = |most: usize| {
            let exact = Exact::new(states, rows(&all), most, link, link);
            let (mut sum, mut count, mut none) = (0.0, 0, 0);
            for goal in 0..states {
                for (start, composed) in exact.composed(goal).into_iter().enumerate() {
                    let d = exact.d(start, goal);
                    assert!(composed >= d * (1.0 - 1e-5), "{start} {goal}: {composed} {d}");
                    match composed.is_finite() {
                        true => (sum, count) = (sum + f64::from(composed - d), count + 1),
                        false => none += 1,
                    }
                }
            }
            (sum / f64::from(count), none)
        };
        let found: Vec<_> = [16, 32, states].map(excess).to_vec();
        assert!(found.iter().all(|(_, none)| *none == 0), "{found:?}");
        assert!(found.windows(2).all(|pair| pair[0].0 > pair[1].0), "slip {slip}: {found:?}");
        match slip == 0.0 {
            true => assert!(found[2].0 < 1e-5, "{found:?}"),
            false => assert!(found[2].0 < 0.05 * f64::from(link), "{found:?}"),
        }
    }
}

/// A planner that sends a perfect policy from node to node reaches goals as often as the best policy
/// does, within a few per cent.
#[test]
fn the_planner_succeeds_almost_as_often_as_the_best_policy() {
    let discount = Discount::new(0.9).unwrap();
    let grid = grid(0.2);
    let process = grid.process();
    let (states, all) = (process.states(), process.successor_distances(discount).unwrap());
    let step = discount.step_length() as f32;
    let mut means = Vec::new();
    for (most, reach) in [(32, 8.0), (states, 8.0), (states, 12.0)] {
        let exact = Exact::new(states, rows(&all), most, 8.0 * step, reach * step);
        let (mut with, mut best, mut pairs) = (0.0, 0.0, 0.0);
        for goal in (0..states).step_by(5) {
            // Not so long that everybody arrives.
            let steps = 24;
            let optimal = process.reach(goal, discount).unwrap();
            let actions = optimal.greedy_actions();
            let ideal = success(process, goal, steps, |state| actions[state] as usize);
            with += planned(&exact, process, goal, steps).iter().sum::<f64>();
            best += ideal.iter().sum::<f64>();
            pairs += states as f64;
        }
        let (with, best) = (with / pairs, best / pairs);
        assert!((0.5..0.999).contains(&best), "{best}");
        assert!(with <= best + 0.02 && with > 0.9 * best, "{most} {reach}: {with} of {best}");
        means.push(with / best);
    }
    assert!(means[1] >= means[0] - 1e-9 && means[2] > 0.95, "{means:?}");
}

/// A fork: a jump that one time in ten lands at the goal and else in a trap, or a long way round. The
/// length of the best case believes in the jump, the successor distance does not.
#[test]
fn composed_successor_distances_do_not_believe_in_lucky_jumps() {
    // 0 is the fork, 1 to 6 the way round, 7 the goal, 8 the trap.
    let (goal, trap) = (7, 8);
    let process = ControlledProcess::from_fn(9, 2, |state, action| match (state, action) {
        (0, 0) => vec![(goal, 0.1), (trap, 0.9)],
        (state, _) if state == goal || state == trap => vec![(state, 1.0)],
        (state, _) => vec![(state + 1, 1.0)],
    })
    .unwrap();
    let discount = Discount::new(0.95).unwrap();
    let (states, step) = (process.states(), discount.step_length() as f32);
    let exact = rows(&process.successor_distances(discount).unwrap());
    let hops = (0..states).map(|goal| process.hops_to(goal).unwrap()).collect::<Vec<_>>();
    let hops: Vec<f32> = (0..states * states)
        .map(|pair| hops[pair % states][pair / states].map_or(f32::INFINITY, |h| h as f32 * step))
        .collect();
    let chance = |distances: Vec<f32>| {
        let map = Exact::new(states, distances, states, 2.0 * step, 2.0 * step);
        let composed = map.composed(goal)[0];
        // The first step of the way, by whichever action leads there in the best case.
        let target = map.targets(goal)[0];
        let jumps = process.successors(0, 0).any(|(state, _)| state == target);
        let arrives = success(&process, goal, 20, |state| usize::from(state > 0 || !jumps));
        (composed / step, arrives[0])
    };
    let (length, arrives) = chance(hops);
    assert_eq!((length, arrives), (1.0, 0.1));
    let (length, arrives) = chance(exact);
    assert!((length - 7.0).abs() < 1e-3 && arrives == 1.0, "{length} {arrives}");
}
