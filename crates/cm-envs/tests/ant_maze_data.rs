//! Every documented fact of how AntMaze's data is collected.

mod ant;
mod simulator;

use ant::{at, stream};
use cm_envs::ant_maze::{
    ACTION, Cell, CellRule, Collected, Collector, Guide, Maze, Navigator, Recipe, STATE, Task,
};
use simulator::mujoco;

#[test]
fn collection_goals_and_starts_are_d4rls() {
    let cells = |cells: Vec<Cell>| -> Vec<(usize, usize)> {
        cells.into_iter().map(|cell| (cell.row, cell.column)).collect()
    };
    assert_eq!(cells(Maze::Umaze.collection_goals()), [(3, 1)]);
    assert_eq!(cells(Maze::Medium.collection_goals()), [(2, 6), (5, 1), (6, 5)]);
    let large = [(1, 6), (3, 5), (3, 10), (5, 2), (7, 4), (7, 6), (7, 9)];
    assert_eq!(cells(Maze::Large.collection_goals()), large);
    for maze in Maze::ALL {
        let (starts, goals) = (maze.collection_starts(), maze.collection_goals());
        assert_eq!(starts.len() + goals.len(), maze.free_cells().len());
        assert!(starts.contains(&Cell { row: 1, column: 1 }));
        assert!(goals.iter().all(|goal| !starts.contains(goal)));
    }
    let anywhere = Task::ALL.map(|task| (task.starts_anywhere(), task.is_diverse()));
    let (no, yes) = (false, true);
    assert_eq!(anywhere, [(no, no), (yes, yes), (yes, no), (yes, yes), (yes, no), (yes, yes)]);
}

#[test]
fn the_navigator_takes_shortest_ways() {
    for maze in Maze::ALL {
        let navigator = Navigator::new(maze);
        // Distances by relaxation, as a check.
        for goal in maze.free_cells() {
            let mut distance = vec![vec![usize::MAX; maze.columns()]; maze.rows()];
            distance[goal.row][goal.column] = 0;
            for _ in 0..maze.rows() * maze.columns() {
                for cell in maze.free_cells() {
                    let (r, c) = (cell.row, cell.column);
                    let around = [(r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)];
                    let best = around.iter().map(|&(r, c)| distance[r][c]).min().unwrap();
                    distance[r][c] = distance[r][c].min(best.saturating_add(1));
                }
            }
            for cell in maze.free_cells().into_iter().filter(|&cell| cell != goal) {
                let next = navigator.next(cell, goal);
                assert!(next.row.abs_diff(cell.row) + next.column.abs_diff(cell.column) == 1);
                let (from, to) = (distance[cell.row][cell.column], distance[next.row][next.column]);
                assert_eq!(to + 1, from, "{maze}: {cell:?} to {goal:?}");
            }
            assert_eq!(navigator.next(goal, goal), goal);
        }
        let outside = Cell { row: 99, column: 0 };
        assert_eq!(navigator.next(outside, Cell { row: 1, column: 1 }), Cell { row: 1, column: 1 });
    }
    // From a wall cell, which D4RL's rule finds, there is a way too.
    let out =
        Navigator::new(Maze::Umaze).next(Cell { row: 2, column: 2 }, Cell { row: 3, column: 1 });
    assert!(!Maze::Umaze.is_wall(out));
}

#[test]
fn cells_by_d4rls_rule_and_by_rounding() {
    for (place, floor, round) in [
        ([0.0, 0.0], (1, 1), (1, 1)),
        ([1.9, -0.1], (1, 1), (1, 1)),
        ([2.1, 3.9], (1, 1), (2, 2)),
        ([-1.9, 4.1], (2, 1), (2, 1)),
        ([-2.1, 8.0], (3, 1), (3, 0)),
        ([33.5, 25.5], (7, 9), (7, 9)),
    ] {
        let cell = |rule: CellRule| (rule.cell(place).row, rule.cell(place).column);
        assert_eq!((cell(CellRule::Floor), cell(CellRule::Round)), (floor, round), "{place:?}");
    }
    assert_eq!("floor".parse::<CellRule>().unwrap(), CellRule::Floor);
    assert!("ceiling".parse::<CellRule>().unwrap_err().to_string().contains("floor, round"));
}

#[test]
fn the_guide_shows_the_next_cell_and_adds_noise() {
    let guide = |rule, noise| Guide::new(Maze::Umaze, Recipe::Clean, rule, noise).unwrap();
    let goal = [0.5, 8.5];
    let direction = |rule, place: [f64; 2], number| {
        let direction = std::cell::Cell::new([0.0; 2]);
        guide(rule, 0.0).act(&at(place), goal, &mut stream(number), |input, _, action| {
            assert_eq!(input[..2], [0.75, 1.0]); // height, and the quaternion's first number
            direction.set([input[27], input[28]]);
            *action = [0.25; ACTION];
        });
        direction.get()
    };
    // At the start the way leads east, exactly so under rounding.
    assert_eq!(direction(CellRule::Round, [0.0, 0.0], 0), [1.0, 0.0]);
    // In the goal's cell it leads to the goal itself.
    assert_eq!(direction(CellRule::Round, [0.5, 8.0], 0), [0.0, 1.0]);
    assert_eq!(direction(CellRule::Floor, [0.5, 8.0], 0), [0.0, 1.0]);
    // D4RL's waypoints are beside the next cell's centre, drawn anew each time: up to one unit by
    // its code.
    for number in 0..200 {
        let [x, y] = direction(CellRule::Floor, [0.0, 0.0], number);
        let slope = y / x;
        assert!((0.0..0.25).contains(&slope) && (x.hypot(y) - 1.0).abs() < 1e-6);
        assert_ne!(slope, direction(CellRule::Floor, [0.0, 0.0], number + 1)[1] / x);
    }
    let act = |noise, value: f32| {
        let policy =
            |_: &[f32; STATE], _: &mut _, action: &mut [f32; ACTION]| *action = [value; ACTION];
        let mut random = stream(1);
        let guide = guide(CellRule::Round, noise);
        (0..2_000)
            .flat_map(|_| guide.act(&at([0.0; 2]), goal, &mut random, policy))
            .collect::<Vec<_>>()
    };
    assert!(act(0.0, 0.5).iter().all(|&action| action == 0.5));
    let noisy = act(0.2, 0.0);
    let variance = noisy.iter().map(|x| x * x).sum::<f32>() / noisy.len() as f32;
    assert!((variance.sqrt() - 0.2).abs() < 0.005, "{variance}");
    let clipped = act(0.2, 1.0);
    let at_limit = clipped.iter().filter(|&&action| action == 1.0).count() as f64;
    assert!((at_limit / clipped.len() as f64 - 0.5).abs() < 0.02);
    for noise in [-0.1, f32::NAN, f32::INFINITY] {
        assert!(Guide::new(Maze::Umaze, Recipe::D4rl, CellRule::Floor, noise).is_err());
    }
}

/// Up to one unit by D4RL's code, up to two by its files.
#[test]
fn waypoints_are_as_far_beside_the_centre_as_the_recipe_says() {
    for (recipe, farthest) in [(Recipe::Clean, 1.0), (Recipe::D4rlCode, 1.0), (Recipe::D4rl, 2.0)] {
        let guide = Guide::new(Maze::Umaze, recipe, CellRule::Floor, 0.0).unwrap();
        // From far west the waypoint's place in x hardly matters: its place in y can be read off.
        let offsets: Vec<f64> = (0..2_000)
            .map(|number| {
                let slope = std::cell::Cell::new(0.0);
                let policy = |input: &[f32; STATE], _: &mut _, _: &mut _| {
                    slope.set(f64::from(input[28] / input[27]));
                };
                guide.act(&at([-1e6, 0.0]), [0.5, 8.5], &mut stream(number), policy);
                1e6 * slope.get()
            })
            .collect();
        let mean = offsets.iter().sum::<f64>() / offsets.len() as f64;
        let largest = offsets.iter().copied().fold(0.0, f64::max);
        assert!((mean - farthest / 2.0).abs() < 0.05 * farthest, "{recipe}: {mean}");
        assert!((0.98 * farthest..1.01 * farthest).contains(&largest), "{recipe}: {largest}");
    }
}

#[test]
fn recipes_have_names_and_lengths() {
    for recipe in Recipe::ALL {
        assert_eq!(recipe.to_string().parse::<Recipe>().unwrap(), recipe);
        let rows = Task::ALL.map(|task| recipe.rows(task));
        let umaze = if recipe == Recipe::D4rl { 701 } else { 1001 };
        assert_eq!(rows, [umaze, 1001, 1001, 1001, 1001, 1001]);
        assert_eq!(recipe.samples_actions(), recipe != Recipe::Clean);
    }
    assert_eq!(Recipe::default(), Recipe::D4rl);
    let message = "dirty".parse::<Recipe>().unwrap_err().to_string();
    assert!(message.contains("`dirty`") && message.contains("d4rl, d4rl-code, clean"), "{message}");
}

fn collector(task: Task, recipe: Recipe) -> Option<Collector> {
    let guide = Guide::new(task.maze(), recipe, CellRule::Floor, Guide::NOISE).unwrap();
    Some(Collector::new(&mujoco()?, task, recipe, guide, 9).unwrap())
}

fn collect(collector: &Collector, number: u64, rows: usize) -> Collected {
    collector.collect(number, rows, |_, _, action| action.fill(0.0)).unwrap()
}

#[test]
fn play_and_diverse_are_two_draws_of_one_distribution() {
    let both = [Task::MediumPlay, Task::MediumDiverse].map(|task| collector(task, Recipe::D4rl));
    let [Some(play), Some(diverse)] = both else { return };
    assert_ne!(play.rewarded_goal(), diverse.rewarded_goal());
    let [a, b] = [&play, &diverse].map(|collector| collect(collector, 4, 3));
    assert!(a.goal != b.goal && a.observations != b.observations);
}

#[test]
fn data_is_laid_out_as_d4rls() {
    let Some(collector) = collector(Task::MediumPlay, Recipe::D4rl) else { return };
    let episode = collect(&collector, 4, 20);
    assert_eq!(episode.observations.len(), 20 * STATE);
    assert_eq!(episode.actions.len(), 20 * ACTION);
    assert_eq!(episode.rewards.len(), 20);
    // What is after one step is before the next.
    assert_eq!(episode.observations[STATE..], episode.next_states[..19 * STATE]);
    assert!(episode.actions.iter().all(|action| (-1.0..=1.0).contains(action)));
    assert_eq!(episode, collect(&collector, 4, 20));
    assert_ne!(episode.goal, collect(&collector, 5, 1).goal);
    // A shorter episode is the beginning of a longer one.
    assert_eq!(collect(&collector, 4, 7).actions, episode.actions[..7 * ACTION]);
    let [x, y] = collector.rewarded_goal();
    assert!((20.0..23.0).contains(&x) && (20.0..23.0).contains(&y));
}

#[test]
fn data_starts_and_is_sent_where_the_task_says() {
    for (task, recipe) in Task::ALL.into_iter().flat_map(|task| Recipe::ALL.map(|r| (task, r))) {
        let Some(collector) = collector(task, recipe) else { return };
        let episodes: Vec<_> = (0..150).map(|number| collect(&collector, number, 1)).collect();
        let maze = task.maze();
        let widest = if recipe == Recipe::D4rl { 3.00001 } else { 1.50001 };
        let mut offsets = Vec::new();
        let cell_of = |place: [f64; 2]| CellRule::Round.cell(place);
        let mut goal_cells = std::collections::HashSet::new();
        let mut start_cells = std::collections::HashSet::new();
        for episode in &episodes {
            let goal = episode.goal.map(f64::from);
            let start = [episode.observations[0], episode.observations[1]].map(f64::from);
            // Goals lie beyond their cell's centre, by D4RL's files up to three units.
            let goal_cell = CellRule::Floor.cell(goal);
            goal_cells.insert(goal_cell);
            start_cells.insert(cell_of(start));
            let offset = |place: [f64; 2], axis: usize| place[axis] - cell_of(place).center()[axis];
            offsets.extend((0..2).map(|axis| goal[axis] - goal_cell.center()[axis]));
            let limits = if task.starts_anywhere() { -1e-5..1.00001 } else { -0.1..0.1 };
            assert!((0..2).all(|axis| limits.contains(&offset(start, axis))), "{start:?}");
        }
        assert!(offsets.iter().all(|offset| (-1e-5..=widest).contains(offset)), "{task} {recipe}");
        let mean = offsets.iter().sum::<f64>() / offsets.len() as f64;
        assert!((mean - widest / 2.0).abs() < 0.07 * widest, "{task} {recipe}: {mean}");
        let anywhere = recipe == Recipe::Clean && task.is_diverse();
        let goals = if anywhere { maze.free_cells() } else { maze.collection_goals() };
        let starts = maze.collection_starts();
        let starts = if task.starts_anywhere() { starts } else { vec![Cell { row: 1, column: 1 }] };
        assert!(goal_cells.iter().all(|cell| goals.contains(cell)), "{task}");
        assert!(start_cells.iter().all(|cell| starts.contains(cell)), "{task}");
        // All of them, or nearly: 150 draws miss one of 46 cells with probability 0.04.
        assert!(goal_cells.len() + 6 >= goals.len() && start_cells.len() + 6 >= starts.len());
    }
}
