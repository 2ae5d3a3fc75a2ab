//! Maps of learned distances with paths by them (Figure 2).

use std::path::{Path, PathBuf};

use cm_envs::point_maze::{Nearest, PointMaze};
use cm_train::{Job, Model, RoadMap, RunFolder};

use super::study::{Findings, links, road_map_places, study};
use crate::figures::Map;
use crate::page::Page;

/// Goals of the distance maps: on each of four ways through the plane.
const GOALS: [[f32; 2]; 4] = [[20.0, 0.0], [0.0, -18.0], [-30.0, 42.0], [-14.0, 38.0]];
/// Where paths to them start.
const STARTS: [[f32; 2]; 4] = [[-20.0, 0.0], [0.0, 20.0], [-30.0, -10.0], [25.0, 35.0]];

/// Maps of one method's distance with paths by it, and what was found about it.
pub(super) fn add_maps(
    page: &mut Page,
    job: &Job,
    maze: &PointMaze,
    figures: &Path,
) -> anyhow::Result<()> {
    let model = Model::load(&RunFolder::new(&job.folder), false)?;
    let method = job.settings.method.method();
    let (places, crossings) = (maze.states().as_flattened(), road_map_places(maze));
    let links = links(method);
    let map = RoadMap::new(&model, &crossings, links)?;
    let mut files: Vec<PathBuf> = Vec::new();
    for (number, goal) in on_paths(maze, &GOALS).iter().enumerate() {
        let starts: Vec<_> = on_paths(maze, &STARTS)
            .iter()
            .filter(|start| (start[0] - goal[0]).hypot(start[1] - goal[1]) > 10.0)
            .flatten()
            .copied()
            .collect();
        let paths = map.paths(&model, &starts, goal)?;
        let paths: Vec<Vec<[f32; 2]>> = paths
            .iter()
            .map(|path| path.states.iter().map(|state| [state[0], state[1]]).collect())
            .collect();
        let file = figures.join(format!("distance-{method}-{}.png", number + 1));
        Map {
            // Adding zero makes a rounded -0 a 0.
            title: &format!(
                "{}: distance to ({}, {})",
                method.title(),
                goal[0].round() + 0.0,
                goal[1].round() + 0.0
            ),
            places: maze.states(),
            values: Some(&model.distances_to(places, goal)?),
            steps: None,
            roads: &[],
            walls: &[],
            goals: &[*goal],
            paths: &paths,
        }
        .save(&file)?;
        files.push(file);
    }
    let caption = format!(
        "{}: the colour is the learned distance to the goal; the lines are the shortest paths by \
         it, of moves no longer than {} units and no farther than {} by the learned distance.",
        method.title(),
        links.radius,
        links.longest
    );
    let shown: Vec<_> = files.iter().map(|file| (file.as_path(), caption.as_str())).collect();
    page.figures(&shown)?;
    let text = sentence(&study(&model, maze)?);
    println!("{}: {text}", method.title());
    page.paragraph(&format!("{}: {text}", method.title()));
    Ok(())
}

/// The states nearest to some places.
fn on_paths(maze: &PointMaze, places: &[[f32; 2]]) -> Vec<[f32; 2]> {
    let nearest = Nearest::new(maze.states());
    places.iter().filter_map(|&place| Some(maze.states()[nearest.nearest(place)?])).collect()
}

fn sentence(findings: &Findings) -> String {
    let Findings { triples, violated, pairs, on_one_path, farther_back, .. } = findings;
    let share = |arrived: usize| 100.0 * arrived as f64 / (*pairs).max(1) as f64;
    let (composed, alone) = (share(findings.arrived_by_links), share(findings.arrived));
    let lengths = match findings.lengths {
        Some([with, against]) => {
            format!("; their paths are {with:.0} long with the direction, {against:.0} against it")
        }
        None => String::new(),
    };
    format!(
        "{violated} of {triples} random triples violate the triangle inequality; of {pairs} goals \
         that the paths connect, greedy paths reach {composed:.0} % by distances composed of short \
         ones and {alone:.0} % by the distance to the goal alone; of {on_one_path} pairs on one \
         path, {farther_back} are farther apart against its direction than with it{lengths}."
    )
}
