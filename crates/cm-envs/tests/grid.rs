//! What the symbols of a grid do, transition by transition.

mod common;

use cm_envs::tabular::{Grid, GridRules, Move, Wind};
use common::{assert_close, gamma};

fn grid(layout: &str, rules: &GridRules) -> Grid {
    Grid::parse(layout, rules).unwrap()
}

/// The outcomes of a move from the first cell with a symbol, as cells with probabilities.
fn outcomes(grid: &Grid, symbol: char, action: Move) -> Vec<((usize, usize), f64)> {
    let successors = grid.process().successors(grid.marked(symbol)[0], action as usize);
    successors.map(|(next, p)| (grid.cell_of(next), p)).collect()
}

#[test]
fn walls_and_edges_stop_and_cells_are_numbered_line_by_line() {
    let grid = grid("A.#\n#..", &GridRules::default());
    assert_eq!((grid.width(), grid.height(), grid.process().states()), (3, 2, 4));
    assert_eq!(grid.state_at(0, 2), None);
    assert_eq!(grid.state_at(1, 1), Some(2));
    assert_eq!(grid.state_at(1, 3), None);
    assert_eq!(grid.state_at(2, 0), None);
    for (action, cell) in Move::ALL.into_iter().zip([(0, 0), (0, 1), (0, 0), (0, 0), (0, 0)]) {
        assert_eq!(outcomes(&grid, 'A', action), [(cell, 1.0)]);
    }
    assert_eq!(grid.to_string(), "A.#\n#..\n");
}

#[test]
fn doors_are_passed_in_their_direction_only() {
    for (layout, along) in [
        ("A>B", Move::East),
        ("B<A", Move::West),
        ("A\nv\nB", Move::South),
        ("B\n^\nA", Move::North),
    ] {
        let grid = grid(layout, &GridRules::default());
        let (a, b) = (grid.marked('A')[0], grid.marked('B')[0]);
        let d = grid.process().successor_distances(gamma(0.5)).unwrap();
        assert_close(d[(a, b)], 2.0 * 2.0_f64.ln(), 1e-12);
        assert_eq!(d[(b, a)], f64::INFINITY);
        let door = 3 - a - b;
        for action in Move::ALL {
            let next = grid.process().successors(door, action as usize).next().unwrap();
            assert_eq!(next, (if action == along { b } else { door }, 1.0));
        }
    }
    // Not from the side either.
    let grid = grid(".A.\n#>#\n...", &GridRules::default());
    assert_eq!(outcomes(&grid, 'A', Move::South), [((0, 1), 1.0)]);
}

#[test]
fn slippery_cells_slip_to_both_sides() {
    let grid = grid("...\n.~.\n...", &GridRules { slip: 0.2, ..GridRules::default() });
    let expected = [((0, 1), 0.1), ((1, 2), 0.8), ((2, 1), 0.1)];
    for ((cell, p), (expected_cell, expected_p)) in
        outcomes(&grid, '~', Move::East).into_iter().zip(expected)
    {
        assert_eq!(cell, expected_cell);
        assert_close(p, expected_p, 1e-15);
    }
    assert_eq!(outcomes(&grid, '~', Move::Stay), [((1, 1), 1.0)]);
}

#[test]
fn wind_pushes_after_the_move() {
    let wind = Some(Wind { direction: Move::South, probability: 0.25 });
    let grid = grid("...\n.,.\n...", &GridRules { wind, ..GridRules::default() });
    assert_eq!(outcomes(&grid, ',', Move::East), [((1, 2), 0.75), ((2, 2), 0.25)]);
    assert_eq!(outcomes(&grid, ',', Move::Stay), [((1, 1), 0.75), ((2, 1), 0.25)]);
    // Against the wall of the grid it pushes in vain.
    assert_eq!(outcomes(&grid, ',', Move::South), [((2, 1), 1.0)]);
}

#[test]
fn teleporters_jump_with_their_probability_to_any_exit() {
    let rules = GridRules { teleport: [('t', 0.5)].into(), ..GridRules::default() };
    let grid = grid("t.T\n#u#\nT.U", &rules);
    let expected = vec![((0, 1), 0.5), ((0, 2), 0.25), ((2, 0), 0.25)];
    assert_eq!(outcomes(&grid, 't', Move::East), expected);
    assert_eq!(outcomes(&grid, 'u', Move::North), [((2, 2), 1.0)]);
}

#[test]
fn absorbing_cells_keep() {
    let grid = grid("A@B", &GridRules::default());
    let d = grid.process().successor_distances(gamma(0.9)).unwrap();
    let (a, b) = (grid.marked('A')[0], grid.marked('B')[0]);
    assert_eq!(d[(a, b)], f64::INFINITY);
    assert!(Move::ALL.iter().all(|&action| outcomes(&grid, '@', action) == [((0, 1), 1.0)]));
}

#[test]
fn greedy_paths_follow_the_policy_to_the_goal() {
    let rules = GridRules { slip: 0.3, ..GridRules::default() };
    let grid = grid("A~~~.\n.###.\n....G\n#####\n..#..", &rules);
    let (a, g) = (grid.marked('A')[0], grid.marked('G')[0]);
    let reaching = grid.process().reach(g, gamma(0.9)).unwrap();
    let path = reaching.greedy_path(grid.process(), a).unwrap().unwrap();
    assert_eq!((path[0], path[path.len() - 1]), (a, g));
    for step in path.windows(2) {
        let fall = reaching.distances()[step[0]] - reaching.distances()[step[1]];
        assert!(fall >= gamma(0.9).step_length() - 1e-12);
    }
    // Slipping costs time, so the way around the south is taken, which is as short.
    let cells: Vec<_> = path.iter().map(|&state| grid.cell_of(state)).collect();
    assert!(cells.contains(&(2, 0)), "{cells:?}");
    let enclosed = grid.state_at(4, 0).unwrap();
    assert_eq!(reaching.greedy_path(grid.process(), enclosed).unwrap(), None);
}
