//! The 2-D world: what it is made of, which way it leads, and that it repeats itself.

use cm_envs::point_maze::{Collection, PointEpisode, PointMaze, PointMazeSettings};
use cm_envs::{Env, Error, Outcome, Rollout, rollout, success_rate};
use cm_random::Philox;

fn small() -> PointMaze {
    PointMaze::new(PointMazeSettings { states: 5_000, horizon: 300, ..Default::default() }).unwrap()
}

/// Walks straight at the goal.
fn straight(states: &[f32], goals: &[f32], actions: &mut [f32]) -> Result<(), Error> {
    for (action, (goal, state)) in actions.iter_mut().zip(goals.iter().zip(states)) {
        *action = goal - state;
    }
    Ok(())
}

#[test]
fn states_lead_to_states_and_are_their_own_neighbours() {
    let maze = small();
    let places = maze.states();
    assert_eq!(places.len(), 5_000);
    for state in 0..places.len() {
        let near = |other: &u32, limit: f32| {
            let other = places[*other as usize];
            (other[0] - places[state][0]).hypot(other[1] - places[state][1]) < limit
        };
        assert!(!maze.successors(state).is_empty());
        assert!(maze.neighbours(state).contains(&(state as u32)));
        // 8 steps of 0.15 with noise beyond what is within reach, and the way to the nearest state.
        assert!(maze.successors(state).iter().all(|next| near(next, 9.0)), "{state}");
        assert!(maze.neighbours(state).iter().all(|next| near(next, 6.0)), "{state}");
    }
}

/// On the way from (-20, 0) to (20, 0) every action leads east, if not equally fast.
#[test]
fn the_world_moves_the_way_its_paths_run() {
    let maze = small();
    let episodes =
        (0..50_000).map(|number| maze.begin(Philox::new(5).stream(number, 0x300)).unwrap());
    let on_the_way = |episode: &PointEpisode| {
        let [x, y] = maze.position(episode);
        (-15.0..-13.0).contains(&x) && y.abs() < 0.3
    };
    let episodes: Vec<_> = episodes.filter(on_the_way).take(20).collect();
    assert_eq!(episodes.len(), 20);
    let drift = |action: [f32; 2]| {
        let ways = episodes.iter().map(|begun| {
            let mut episode = begun.clone();
            for _ in 0..12 {
                maze.step(&mut episode, &action).unwrap();
            }
            maze.position(&episode)[0] - maze.position(begun)[0]
        });
        ways.sum::<f32>() / 20.0
    };
    let (with, against) = (drift([1.0, 0.0]), drift([-1.0, 0.0]));
    assert!(with > 0.5 && against > 0.0 && with >= against, "{with} {against}");
}

#[test]
fn the_same_seed_gives_the_same_course_on_any_number_of_threads() {
    let run = |threads: usize, seed: u64| -> (Vec<[f32; 2]>, Vec<Outcome>) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let maze = small();
            let data = Collection { trajectories: 50, seed, ..Default::default() };
            let plan = Rollout { episodes: 40, seed, paths: 40 };
            let outcomes = rollout(&maze, &plan, straight).unwrap();
            (data.collect(&maze).unwrap().observations, outcomes)
        })
    };
    assert!(run(1, 7) == run(3, 7));
    assert!(run(1, 7) != run(1, 8));
}

#[test]
fn an_episode_does_not_depend_on_its_neighbours() {
    let maze = small();
    let run =
        |episodes| rollout(&maze, &Rollout { episodes, seed: 3, paths: 2 }, straight).unwrap();
    assert_eq!(run(2), run(30)[..2]);
}

#[test]
fn an_episode_ends_near_its_goal_or_at_its_horizon() {
    let maze = small();
    let outcomes =
        rollout(&maze, &Rollout { episodes: 200, seed: 0, paths: 200 }, straight).unwrap();
    for outcome in &outcomes {
        let last = outcome.path[outcome.path.len() - 1];
        let left = (last[0] - outcome.goal[0]).hypot(last[1] - outcome.goal[1]);
        assert_eq!(outcome.success, left < 2.0);
        assert_eq!(outcome.path.len(), outcome.steps + 1);
        assert!(outcome.success || outcome.steps == 300);
    }
    let reached = outcomes.iter().filter(|outcome| outcome.success).count();
    assert!(reached > 0 && reached < 200);
    assert_eq!(success_rate(&outcomes), reached as f64 / 200.0);
}

#[test]
fn goals_are_the_farthest_of_the_candidates() {
    let mean = |goal_candidates| {
        let settings = PointMazeSettings { goal_candidates, states: 2_000, ..Default::default() };
        let maze = PointMaze::new(settings).unwrap();
        let distances = (0..300).map(|number| {
            let episode = maze.begin(Philox::new(1).stream(number, 0x300)).unwrap();
            let (here, mut goal) = (maze.position(&episode), [0.0; 2]);
            maze.goal(&episode, &mut goal);
            (here[0] - goal[0]).hypot(here[1] - goal[1])
        });
        distances.sum::<f32>() / 300.0
    };
    let (one, ten) = (mean(1), mean(10));
    assert!(ten > 1.5 * one, "{one} {ten}");
}

#[test]
fn observations_are_exact_at_first_and_noisy_later() {
    let maze = small();
    let mut episode = maze.begin(Philox::new(2).stream(0, 0x300)).unwrap();
    let mut seen = [0.0; 2];
    maze.observe(&mut episode, &mut seen);
    assert_eq!(seen, maze.position(&episode));
    maze.step(&mut episode, &[0.3, 0.4]).unwrap();
    let squares: Vec<f32> = (0..4_000)
        .flat_map(|_| {
            maze.observe(&mut episode, &mut seen);
            let here = maze.position(&episode);
            [(seen[0] - here[0]).powi(2), (seen[1] - here[1]).powi(2)]
        })
        .collect();
    let deviation = (squares.iter().sum::<f32>() / squares.len() as f32).sqrt();
    assert!((deviation - 0.2).abs() < 0.01, "{deviation}");
}

#[test]
fn trajectories_are_cut_short_and_their_actions_are_directions() {
    let data = Collection::default().collect(&small()).unwrap();
    assert_eq!(data.ends.len(), 2_000);
    let mean = data.observations.len() as f64 / 2_000.0;
    assert!((mean - 24.0).abs() < 2.0, "{mean}");
    assert!(data.actions.iter().all(|a| (a[0].hypot(a[1]) - 1.0).abs() < 1e-2));
}

#[test]
fn refuses_what_makes_no_world_and_no_step() {
    let message = |settings| PointMaze::new(settings).unwrap_err().to_string();
    let settings = PointMazeSettings { states: 10_000_000, ..Default::default() };
    assert!(message(settings).starts_with("states: expected at most"));
    let settings = PointMazeSettings { obs_noise: f32::NAN, ..Default::default() };
    assert!(message(settings).starts_with("obs_noise"));
    let settings = PointMazeSettings { nearest: 0, ..Default::default() };
    assert!(message(settings).starts_with("nearest"));

    let maze = small();
    let mut episode = maze.begin(Philox::new(0).stream(0, 0x300)).unwrap();
    assert!(matches!(maze.step(&mut episode, &[f32::NAN, 0.0]), Err(Error::Action { .. })));
    assert!(matches!(maze.step(&mut episode, &[0.0]), Err(Error::Length { .. })));
    let bad = Collection { mean_length: 0.5, ..Default::default() };
    assert!(matches!(bad.collect(&maze), Err(Error::MeanLength { .. })));
}
