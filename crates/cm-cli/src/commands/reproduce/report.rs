//! Figures, table and page of the 2-D experiment.

use std::path::{Path, PathBuf};

use anyhow::Context;
use cm_envs::point_maze::{Nearest, PointMaze};
use cm_train::{
    EvaluationRow, Job, Method, Model, RoadMap, RunFolder, TaskSettings, read_evaluations,
};

use super::study::{Findings, links, road_map_places, study};
use crate::figures::{Chart, Curve, DataFigure, Map};
use crate::page::Page;

/// Goals of the distance maps: on each of four ways through the plane.
const GOALS: [[f32; 2]; 4] = [[20.0, 0.0], [0.0, -18.0], [-30.0, 42.0], [-14.0, 38.0]];
/// Where paths to them start.
const STARTS: [[f32; 2]; 4] = [[-20.0, 0.0], [0.0, 20.0], [-30.0, -10.0], [25.0, 35.0]];

/// Mean success from 100,000 to 220,000 steps when the authors' script is run with one seed and its default settings.
fn authors(method: Method) -> Option<f64> {
    match method {
        Method::Cmd1 => Some(0.71),
        Method::Cmd2 => Some(0.73),
        Method::Crl => Some(0.40),
        Method::Qrl => Some(0.45),
        Method::QLearning => Some(0.13),
        Method::Gcbc => Some(0.27),
        Method::Iql => None,
    }
}

/// A method's evaluations, one list for each seed.
struct Results {
    method: Method,
    seeds: Vec<Vec<EvaluationRow>>,
}

/// Mean and standard error over seeds.
#[derive(Clone, Copy)]
pub(super) struct Spread {
    pub(super) mean: f64,
    pub(super) error: f64,
}

/// Writes everything into `out`.
pub(crate) fn write(jobs: &[Job], out: &Path) -> anyhow::Result<()> {
    let figures = out.join("figures");
    std::fs::create_dir_all(&figures)
        .with_context(|| format!("{}: could not be made", figures.display()))?;
    let results = results(jobs)?;
    let reached =
        results.iter().flat_map(|result| &result.seeds).flatten().map(|row| row.step).max();
    let from = if reached.unwrap_or(0) > 100_000 { 100_000 } else { reached.unwrap_or(0) / 2 };
    let table = table(&results, from);
    print_table(&table);
    cm_files::replace(out.join("results.csv"), csv(&table))?;

    let success = figures.join("success.png");
    draw_success(&results, &success)?;
    draw_success(&results, &figures.join("success.svg"))?;

    let TaskSettings::PointMaze { world, .. } = &jobs[0].settings.task else { return Ok(()) };
    let maze = PointMaze::new(world.clone())?;
    let data = figures.join("data.png");
    DataFigure(&maze).save(&data)?;

    let mut page = Page::new("The 2-D navigation experiment");
    page.paragraph(
        "A plane with one-way paths. Agents learn from short random walks, none of which crosses the plane, and are asked for goals far away: \
         they have to join pieces that were never seen together. CMD learns a distance that obeys the triangle inequality; the others are what \
         the paper compares it with.",
    );
    page.heading("The world (Figure 2)");
    page.figure(&data, "The paths that the world is made of, each kind in its colour. Agents move along them, in the direction of the arrows.")?;
    page.heading("Learned distances and paths (Figure 2)");
    for job in jobs.iter().filter(|job| job.settings.seed == jobs[0].settings.seed) {
        let method = job.settings.method.method();
        if matches!(method, Method::Cmd1 | Method::Cmd2 | Method::Qrl)
            && RunFolder::new(&job.folder).model_file().exists()
        {
            add_maps(&mut page, job, &maze, &figures)?;
        }
    }
    page.heading("Success over training (Figure 3)");
    page.figure(&success, &format!(
        "Share of goals reached within {} steps; mean over seeds, the band is one standard error.", maze.settings().horizon
    ))?;
    page.table(&table);
    page.paragraph("The last column is what the authors' own script gave with one seed, as a mean over the evaluations from 100,000 to 220,000 steps.");
    page.heading("Settings");
    for job in jobs {
        let name = format!("{}, seed {}", job.settings.method.method().title(), job.settings.seed);
        page.details(&name, &job.settings.to_toml());
    }
    let file = out.join("index.html");
    cm_files::replace(&file, page.to_html())?;
    println!("{}", file.display());
    Ok(())
}

fn results(jobs: &[Job]) -> anyhow::Result<Vec<Results>> {
    let mut results: Vec<Results> = Vec::new();
    for job in jobs {
        let file = RunFolder::new(&job.folder).evaluations_file();
        if !file.exists() {
            continue;
        }
        let (method, rows) = (job.settings.method.method(), read_evaluations(&file)?);
        match results.iter_mut().find(|result| result.method == method) {
            Some(result) => result.seeds.push(rows),
            None => results.push(Results { method, seeds: vec![rows] }),
        }
    }
    Ok(results)
}

pub(super) fn spread(values: &[f64]) -> Option<Spread> {
    let count = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let variance =
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    Some(Spread { mean, error: (variance / count).sqrt() })
}

fn table(results: &[Results], from: u64) -> Vec<Vec<String>> {
    let show = |spread: Option<Spread>, seeds: usize| match spread {
        None => "-".to_owned(),
        Some(Spread { mean, .. }) if seeds < 2 => format!("{mean:.2}"),
        Some(Spread { mean, error }) => format!("{mean:.2} ± {error:.2}"),
    };
    let late = |result: &Results| {
        let means: Vec<f64> = result
            .seeds
            .iter()
            .filter_map(|rows| {
                let late: Vec<f64> =
                    rows.iter().filter(|row| row.step >= from).map(|row| row.success).collect();
                spread(&late).map(|late| late.mean)
            })
            .collect();
        spread(&means)
    };
    let best =
        results.iter().filter_map(|result| late(result).map(|late| late.mean)).fold(0.0, f64::max);
    let mut table = vec![
        [
            "method",
            "seeds",
            "steps",
            &format!("mean from step {from}"),
            "at the end",
            "best",
            "authors' script",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for result in results {
        let seeds = result.seeds.len();
        let last = |pick: &dyn Fn(&Vec<EvaluationRow>) -> Option<f64>| {
            spread(&result.seeds.iter().filter_map(pick).collect::<Vec<_>>())
        };
        let late = late(result);
        let mark = if late.is_some_and(|late| late.mean >= best) { "*" } else { "" };
        let steps = result.seeds.iter().filter_map(|rows| rows.last()).map(|row| row.step).max();
        table.push(vec![
            result.method.title().to_owned(),
            seeds.to_string(),
            steps.unwrap_or(0).to_string(),
            format!("{mark}{}", show(late, seeds)),
            show(last(&|rows| rows.last().map(|row| row.success)), seeds),
            show(last(&|rows| rows.iter().map(|row| row.success).reduce(f64::max)), seeds),
            authors(result.method).map_or("-".to_owned(), |mean| format!("{mean:.2}")),
        ]);
    }
    table
}

pub(super) fn print_table(table: &[Vec<String>]) {
    let columns = table[0].len();
    let width =
        |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    for row in table {
        let cells =
            (0..columns).map(|column| format!("{:>width$}", row[column], width = width(column)));
        println!("{}", cells.collect::<Vec<_>>().join("  "));
    }
}

fn csv(table: &[Vec<String>]) -> String {
    let lines = table.iter().map(|row| {
        row.iter().map(|cell| cell.trim_start_matches('*').to_owned()).collect::<Vec<_>>().join(",")
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

fn draw_success(results: &[Results], file: &Path) -> anyhow::Result<()> {
    let curves: Vec<Curve> = results
        .iter()
        .map(|result| {
            let mut steps: Vec<u64> = result.seeds.iter().flatten().map(|row| row.step).collect();
            steps.sort_unstable();
            steps.dedup();
            let point = |step: u64| {
                let at = result.seeds.iter().flatten().filter(|row| row.step == step);
                let values: Vec<f64> = at.map(|row| row.success).collect();
                spread(&values).map(|Spread { mean, error }| [step as f64, mean, error])
            };
            let points = steps.into_iter().filter_map(point).collect();
            Curve { name: result.method.title().to_owned(), points }
        })
        .collect();
    let chart = Chart {
        title: "Success over training",
        x_label: "training steps",
        y_label: "share of goals reached",
        y_range: Some((0.0, 1.0)),
        curves: &curves,
    };
    Ok(chart.save(file)?)
}

/// Maps of one method's distance with paths by it, and what was found about it.
fn add_maps(page: &mut Page, job: &Job, maze: &PointMaze, figures: &Path) -> anyhow::Result<()> {
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
        let paths = map.paths(&starts, goal)?;
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
            goals: &[*goal],
            paths: &paths,
        }
        .save(&file)?;
        files.push(file);
    }
    let caption = format!(
        "{}: the colour is the learned distance to the goal; the lines are the shortest paths by it, of moves no longer than {} units and no farther than {} by \
         the learned distance.",
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
        "{violated} of {triples} random triples violate the triangle inequality; of {pairs} goals that the paths connect, greedy paths reach {composed:.0} % by \
         distances composed of short ones and {alone:.0} % by the distance to the goal alone; of {on_one_path} pairs on one path, {farther_back} are farther apart against its direction than with it{lengths}."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[f64]) -> Vec<EvaluationRow> {
        let row = |(index, &success): (usize, &f64)| EvaluationRow {
            step: 1000 * index as u64,
            success,
            mean_steps: 1.0,
        };
        values.iter().enumerate().map(row).collect()
    }

    #[test]
    fn the_table_averages_evaluations_first_and_seeds_then() {
        let results = [
            Results {
                method: Method::Cmd1,
                seeds: vec![rows(&[0.0, 0.4, 0.6]), rows(&[0.0, 0.8, 0.8])],
            },
            Results { method: Method::Gcbc, seeds: vec![rows(&[0.1, 0.2, 0.3])] },
        ];
        let table = table(&results, 1000);
        assert_eq!(table[1][..4], ["CMD-1", "2", "2000", "*0.65 ± 0.15"]);
        assert_eq!(table[1][5], "0.70 ± 0.10");
        assert_eq!(table[2][..4], ["GCBC", "1", "2000", "0.25"]);
        assert!(csv(&table).lines().nth(1).unwrap().starts_with("CMD-1,2,2000,0.65"));
    }
}
