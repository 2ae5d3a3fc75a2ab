//! Figures, table and page of the 2-D experiment.

use std::path::Path;

use cm_envs::point_maze::PointMaze;
use cm_train::{Job, Method, PointMazeTask, RunFolder};

use super::super::output::{csv, make_folder, print_table, settings_of};
use super::super::results::{Results, Spread, Walk, draw_success, results};
use super::maps::add_maps;
use crate::figures::DataFigure;
use crate::page::Page;

/// Mean success of the authors' own script over four seeds (world, data and training redrawn), each a
/// mean of the evaluations from 60,000 to 95,000 steps, and its standard error.
fn authors(method: Method) -> Option<Spread> {
    let spread = |mean, error| Some(Spread { mean, error });
    match method {
        Method::Cmd1 => spread(0.48, 0.03),
        Method::Cmd2 => spread(0.55, 0.08),
        Method::Crl => spread(0.36, 0.05),
        Method::Qrl => spread(0.38, 0.01),
        Method::QLearning => spread(0.20, 0.02),
        Method::Gcbc => spread(0.28, 0.02),
        // Not in the authors' script.
        Method::Iql | Method::Tmd | Method::Gcivl | Method::Gciql | Method::Hiql => None,
    }
}

/// Writes everything into `out`.
pub(super) fn write(jobs: &[Job], out: &Path) -> anyhow::Result<()> {
    let figures = out.join("figures");
    make_folder(&figures)?;
    let results = results(jobs.iter())?;
    let reached = results.iter().map(Results::steps).max().unwrap_or(0);
    let from = if reached > 100_000 { 100_000 } else { reached / 2 };
    let table = table(&results, from);
    print_table(&table);
    cm_files::replace(out.join("results.csv"), csv(&table))?;

    let (success, title) = (figures.join("success.png"), "Success over training");
    draw_success(title, &results, &success)?;
    draw_success(title, &results, &figures.join("success.svg"))?;

    let Some(task) = jobs[0].settings.task.get::<PointMazeTask>() else { return Ok(()) };
    let maze = PointMaze::new(task.world.clone())?;
    let data = figures.join("data.png");
    DataFigure(&maze).save(&data)?;

    let mut page = Page::new("The 2-D navigation experiment");
    page.paragraph(
        "A plane with one-way paths. Agents learn from short random walks, none of which crosses \
         the plane, and are asked for goals far away: they have to join pieces that were never \
         seen together. CMD learns a distance that obeys the triangle inequality; the others are \
         what the paper compares it with.",
    );
    page.heading("The world (Figure 2)");
    page.figure(
        &data,
        "The paths that the world is made of, each kind in its colour. Agents move along them, in \
         the direction of the arrows.",
    )?;
    page.heading("Learned distances and paths (Figure 2)");
    for job in jobs.iter().filter(|job| job.settings.seed == jobs[0].settings.seed) {
        if job.settings.method.method().is_quasimetric()
            && RunFolder::new(&job.folder).model_file().exists()
        {
            add_maps(&mut page, job, &maze, &figures)?;
        }
    }
    page.heading("Success over training (Figure 3)");
    page.figure(
        &success,
        &format!(
            "Share of goals reached within {} steps; mean over seeds, the band is one standard \
             error.",
            maze.settings().horizon
        ),
    )?;
    page.table(&table);
    page.paragraph(
        "The last column is what the authors' own script gave over four seeds, each a mean over the \
         evaluations from 60,000 to 95,000 steps.",
    );
    page.heading("Settings");
    for job in jobs {
        let name = format!("{}, seed {}", job.settings.method.method().title(), job.settings.seed);
        page.details(&name, &settings_of(job)?);
    }
    let file = out.join("index.html");
    cm_files::replace(&file, page.to_html())?;
    println!("{}", file.display());
    Ok(())
}

fn table(results: &[Results], from: u64) -> Vec<Vec<String>> {
    let show = |spread: Option<Spread>, seeds: usize| match spread {
        None => "-".to_owned(),
        Some(Spread { mean, .. }) if seeds < 2 => format!("{mean:.2}"),
        Some(Spread { mean, error }) => format!("{mean:.2} ± {error:.2}"),
    };
    let late = results.iter().filter_map(|result| result.late(from));
    let top = late.map(|late| late.mean).fold(0.0, f64::max);
    let mean = format!("mean from step {from}");
    let titles = ["method", "seeds", "steps", &mean, "at the end", "best", "authors' script"];
    let mut table = vec![titles.map(str::to_owned).to_vec()];
    for result in results {
        let (seeds, late) = (result.seeds.len(), result.late(from));
        let mark = if late.is_some_and(|late| late.mean >= top) { "*" } else { "" };
        table.push(vec![
            result.title(),
            seeds.to_string(),
            result.steps().to_string(),
            format!("{mark}{}", show(late, seeds)),
            show(result.last(), seeds),
            show(result.best(), seeds),
            show(authors(result.method).filter(|_| result.walk == Walk::Straight), 4),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::super::results::tests::rows;
    use super::*;

    #[test]
    fn the_table_marks_the_best_and_shows_errors_where_there_are_several_seeds() {
        let results = [
            Results {
                method: Method::Cmd1,
                walk: Walk::Straight,
                seeds: vec![rows(&[0.0, 0.4, 0.6]), rows(&[0.0, 0.8, 0.8])],
            },
            Results {
                method: Method::Gcbc,
                walk: Walk::Straight,
                seeds: vec![rows(&[0.1, 0.2, 0.3])],
            },
        ];
        let table = table(&results, 1000);
        assert_eq!(table[1][..4], ["CMD-1", "2", "2000", "*0.65 ± 0.15"]);
        assert_eq!(table[1][5], "0.70 ± 0.10");
        assert_eq!(table[2][..4], ["GCBC", "1", "2000", "0.25"]);
        assert!(csv(&table).lines().nth(1).unwrap().starts_with("CMD-1,2,2000,0.65"));
    }
}
