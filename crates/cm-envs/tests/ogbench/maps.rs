//! Maps, tasks, ways.

use cm_envs::ogbench::{Cell, Maze, Navigator};
use serde_json::Value;

use crate::files::json_files;

fn cell(value: &Value) -> Cell {
    let [row, column] = [0, 1].map(|index| value[index].as_u64().unwrap() as usize);
    Cell { row, column }
}

fn cells(value: &Value) -> Vec<Cell> {
    value.as_array().unwrap().iter().map(cell).collect()
}

fn place(value: &Value) -> [f64; 2] {
    [0, 1].map(|index| value[index].as_f64().unwrap())
}

#[test]
fn maps_tasks_and_teleports_are_those_of_ogbench() {
    for (file, content) in json_files("mazes") {
        for (name, wanted) in content["mazes"].as_object().unwrap() {
            let Some(maze) = Maze::ALL.into_iter().find(|maze| maze.name() == name) else {
                panic!("{file}: no maze {name}");
            };
            let rows = wanted["map"].as_array().unwrap();
            assert_eq!(
                (rows.len(), rows[0].as_str().unwrap().len()),
                (maze.rows(), maze.columns())
            );
            for cell in maze.cells() {
                let symbol = rows[cell.row].as_str().unwrap().as_bytes()[cell.column];
                assert_eq!(maze.is_wall(cell), symbol == b'#', "{name} {cell:?}");
            }
            assert_eq!(maze.free_cells().len() as u64, wanted["free_cells"].as_u64().unwrap());
            assert_eq!(maze.vertex_cells(), cells(&wanted["vertex_cells"]), "{name}");
            let tasks = wanted["tasks"].as_array().unwrap();
            assert_eq!(tasks.len(), Maze::TASKS);
            for (number, task) in tasks.iter().enumerate() {
                let [start, goal] = maze.task(number);
                assert_eq!([start, goal], [cell(&task["init_ij"]), cell(&task["goal_ij"])]);
                let places = [place(&task["init_xy"]), place(&task["goal_xy"])];
                assert_eq!([start.center(), goal.center()], places);
            }
            match maze.teleports() {
                None => assert!(wanted["teleport"].is_null(), "{name}"),
                Some(teleports) => {
                    let wanted = &wanted["teleport"];
                    assert_eq!(teleports.entrances.to_vec(), cells(&wanted["teleport_in_ijs"]));
                    assert_eq!(teleports.exits.to_vec(), cells(&wanted["teleport_out_ijs"]));
                    let radius = wanted["teleport_radius"].as_f64().unwrap();
                    assert_eq!(teleports.reach, 1.5 * radius);
                }
            }
        }
    }
}

#[test]
fn the_oracle_goes_where_ogbenchs_goes() {
    for (_, content) in json_files("mazes") {
        for maze in Maze::ALL {
            let (wanted, navigator) = (&content["mazes"][maze.name()], Navigator::new(maze));
            let subgoals = wanted["subgoals"].as_array().unwrap();
            assert!(!subgoals.is_empty());
            for case in subgoals {
                let (from, to) = (place(&case[0]), place(&case[1]));
                assert_eq!(navigator.subgoal(from, to), place(&case[2]), "{maze} {from:?} {to:?}");
                assert_eq!(maze.cell(from), cell(&case[3]));
                let [x, y] = navigator.direction(from, to);
                assert!(x.hypot(y) <= 1.0);
            }
            let goals = wanted["stitch_goals"].as_object().unwrap();
            assert_eq!(goals.len(), maze.free_cells().len());
            for (start, goals) in goals {
                let (row, column) = start.split_once(',').unwrap();
                let start = Cell { row: row.parse().unwrap(), column: column.parse().unwrap() };
                assert_eq!(navigator.at_distance(start, 4), cells(goals), "{maze} {start:?}");
            }
        }
    }
}

#[test]
fn there_is_no_way_out_of_the_trap() {
    let navigator = Navigator::new(Maze::Teleport);
    let [trap, goal] = [Cell { row: 1, column: 7 }, Cell { row: 7, column: 1 }];
    assert_eq!(navigator.steps(trap, goal), None);
    // Whoever is there stays there.
    assert_eq!(navigator.subgoal([24.3, 0.4], goal.center()), trap.center());
    assert_eq!(navigator.steps(goal, Cell { row: 99, column: 1 }), None);
}
