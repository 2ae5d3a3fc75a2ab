//! A small deterministic world with known distances, for every learner's test.
#![allow(dead_code, unreachable_pub)] // Each test file uses some of it.

use cm_learner::{Dimensions, Learner, Transitions};
use cm_nn::{DfdxBackend, MlpSettings, Var};

/// States `0..next.len()`, one-hot; a negative action leads to `next[state][0]`, a positive one to
/// `next[state][1]`.
pub struct World {
    pub next: Vec<[usize; 2]>,
    /// The sizes of the actions in the data.
    pub strides: &'static [f32],
}

impl World {
    /// A corridor: walking into its ends is staying there.
    pub fn corridor(states: usize) -> Self {
        let next = (0..states).map(|s| [s.saturating_sub(1), (s + 1).min(states - 1)]);
        Self { next: next.collect(), strides: &[1.0] }
    }

    /// A corridor with a slide from its end to its beginning, which cannot be climbed.
    pub fn slide(states: usize) -> Self {
        let mut world = Self::corridor(states);
        world.next[states - 1][1] = 0;
        world
    }

    /// A ring that can be walked one way, with a jump ahead from every other state (the others
    /// stay).
    pub fn one_way(states: usize) -> Self {
        let jump = |s: usize| if s.is_multiple_of(2) { (s + 3) % states } else { s };
        let next = (0..states).map(|s| [jump(s), (s + 1) % states]);
        Self { next: next.collect(), strides: &[1.0] }
    }

    pub fn states(&self) -> usize {
        self.next.len()
    }

    pub fn dimensions(&self) -> Dimensions {
        Dimensions::new(self.states(), 1, 0..self.states()).unwrap()
    }

    /// Steps of a shortest way, by breadth-first search.
    pub fn distance(&self, from: usize, to: usize) -> usize {
        let mut reached = vec![from];
        for steps in 0.. {
            if reached.contains(&to) {
                return steps;
            }
            reached = reached.iter().flat_map(|&s| self.next[s]).collect();
            reached.sort_unstable();
            reached.dedup();
        }
        unreachable!()
    }

    /// Every state with every goal but itself.
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        let n = self.states();
        let all = (0..n).flat_map(|s| (0..n).map(move |g| (s, g)));
        all.filter(|(s, g)| s != g).collect()
    }

    pub fn one_hot(&self, backend: &DfdxBackend, states: &[usize]) -> Var<DfdxBackend> {
        let n = self.states();
        let mut values = vec![0.0; states.len() * n];
        for (row, &state) in states.iter().enumerate() {
            values[row * n + state] = 1.0;
        }
        Var::new(backend, [states.len(), n], values).unwrap()
    }

    /// Every state with every action and every goal, once.
    pub fn batch(&self, backend: &DfdxBackend) -> Transitions<DfdxBackend> {
        let n = self.states();
        let choices = 2 * self.strides.len();
        let rows = choices * n * n;
        let states = (0..rows).map(|row| row / choices % n).collect::<Vec<_>>();
        let next = (0..rows).map(|row| self.next[states[row]][row % 2]).collect::<Vec<_>>();
        let goals = (0..rows).map(|row| row / choices / n).collect::<Vec<_>>();
        let size = |row: usize| self.strides[row / 2 % self.strides.len()];
        let action = (0..rows).map(|row| [-size(row), size(row)][row % 2]).collect();
        let action = Var::new(backend, [rows, 1], action).unwrap();
        let steps_to_goal = (0..rows).map(|row| match goals[row] {
            goal if goal == states[row] => 0.0,
            goal if goal == next[row] => 1.0,
            _ => 2.0,
        });
        Transitions {
            state: self.one_hot(backend, &states),
            action: action.clone(),
            next_state: self.one_hot(backend, &next),
            goal: self.one_hot(backend, &goals),
            goal_action: action,
            steps_to_goal: Var::new(backend, [rows, 1], steps_to_goal.collect()).unwrap(),
            actor_goals: None,
        }
    }

    pub fn train(&self, backend: &DfdxBackend, learner: &impl Learner<DfdxBackend>, steps: usize) {
        let batch = self.batch(backend);
        for _ in 0..steps {
            learner.step(&batch).unwrap();
        }
    }

    /// The pairs for which the policy's preferred action does not begin a shortest way.
    pub fn policy_mistakes(
        &self,
        backend: &DfdxBackend,
        learner: &impl Learner<DfdxBackend>,
    ) -> Vec<(usize, usize, f32)> {
        let pairs = self.pairs();
        let (states, goals): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
        let (states, goals) = (self.one_hot(backend, &states), self.one_hot(backend, &goals));
        let actions = learner.act(&states, &goals).unwrap().to_vec().unwrap();
        let rows = pairs.into_iter().zip(actions).map(|((s, g), action)| (s, g, action));
        rows.filter(|&(s, g, action)| {
            let next = self.next[s][usize::from(action > 0.0)];
            self.distance(next, g) + 1 != self.distance(s, g)
        })
        .collect()
    }
}

/// A small network that is smooth enough to train fast.
pub fn network(width: usize) -> MlpSettings {
    let activation = cm_nn::Activation::Silu;
    MlpSettings { hidden: vec![width; 2], activation, ..Default::default() }
}

/// Training twice from one seed gives the same bits; so does stopping half-way, going through a
/// file, and going on in a new learner.
pub fn check_repeats_and_resumes<L: Learner<DfdxBackend>>(make: impl Fn(&DfdxBackend) -> L) {
    use cm_nn::{Backend, Snapshot};
    let world = World::corridor(5);
    let state =
        |learner: &L| (learner.snapshot(0).unwrap(), learner.optimiser_snapshot(0).unwrap());
    let run = |steps: std::ops::Range<u64>, seed, start: Option<(Snapshot, Snapshot)>| {
        let backend = DfdxBackend::new(seed);
        let learner = make(&backend);
        if let Some((parameters, optimiser)) = start {
            learner.restore(0, &parameters).unwrap();
            learner.restore_optimiser(0, &optimiser).unwrap();
            backend.set_step(steps.start).unwrap();
        }
        world.train(&backend, &learner, steps.count());
        state(&learner)
    };
    let whole = run(0..10, 3, None);
    assert_eq!(run(0..10, 3, None), whole);
    assert_ne!(run(0..10, 4, None), whole);

    let through_a_file = |snapshot: Snapshot| {
        Snapshot::from_safetensors(&snapshot.to_safetensors().unwrap()).unwrap()
    };
    let (parameters, optimiser) = run(0..5, 3, None);
    let half = (through_a_file(parameters), through_a_file(optimiser));
    assert_eq!(run(5..10, 3, Some(half)), whole);
}
