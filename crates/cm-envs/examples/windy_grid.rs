//! Exact successor distances on a windy grid with a one-way door, printed and drawn.
//!
//! ```text
//! cargo run -p cm-envs --example windy_grid [folder for the pictures]
//! ```

use std::error::Error;
use std::path::PathBuf;

use cm_envs::tabular::{Discount, Grid, GridRules, HeatMap, Move, Wind};

/// From S to G the short way is through the door in the windy corridor; the way back has to go
/// around.
const LAYOUT: &str = "
    ###############
    #......#......#
    #.S....#......#
    #,,,,,,>,,,,,.#
    #,,,,,,#,,,,,.#
    #......#....G.#
    #......#......#
    #.............#
    #......#......#
    ###############
";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    let wind = Wind { direction: Move::South, probability: 0.3 };
    let grid = Grid::parse(LAYOUT, &GridRules { wind: Some(wind), ..GridRules::default() })?;
    let (start, goal) = (grid.marked('S')[0], grid.marked('G')[0]);
    let discount = Discount::new(0.95)?;

    let there = grid.process().reach(goal, discount)?;
    let back = grid.process().reach(start, discount)?;
    println!("{grid}");
    println!("log(1/gamma), the distance of one certain step: {:.4}", discount.step_length());
    for (name, reaching, from) in [("S to G", &there, start), ("G to S", &back, goal)] {
        let distance = reaching.distances()[from];
        let hops = grid.process().hops_to(reaching.goal())?[from];
        println!(
            "{name}: distance {distance:.4}, as much as {:.2} certain steps; at best {} steps",
            distance / discount.step_length(),
            hops.map_or_else(|| "no".into(), |hops| hops.to_string()),
        );
    }
    println!("\ndistance to G in certain steps, cell by cell:");
    for line in 0..grid.height() {
        for column in 0..grid.width() {
            match grid.state_at(line, column) {
                Some(state) => print!("{:6.1}", there.distances()[state] / discount.step_length()),
                None => print!("     #"),
            }
        }
        println!();
    }

    let path = there.greedy_path(grid.process(), start)?.unwrap_or_default();
    let from_start = grid.process().successor_distances_from(start, discount)?;
    let pictures = [
        ("to_goal", "Successor distance to the star", there.distances(), goal, path.as_slice()),
        ("from_start", "Successor distance from the star", &from_start, start, &[]),
    ];
    for (name, title, values, center, path) in pictures {
        for extension in ["png", "svg"] {
            let file = folder.join(format!("windy_grid_{name}.{extension}"));
            let scale = "successor distance (nats)";
            HeatMap { grid: &grid, values, title, scale, center, path }.save(&file)?;
            println!("wrote {}", file.display());
        }
    }
    Ok(())
}
