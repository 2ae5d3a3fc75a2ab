//! Tables, curves and page of the AntMaze experiment.

use cm_data::Description;
use cm_envs::ant_maze::{Recipe, Task};
use cm_train::{AntMazeTask, Job, Method};

use super::super::output::{csv, make_folder, print_table, settings_of};
use super::super::results::{draw_success, results};
use super::Arguments;
use super::data::TaskData;
use super::distances::{OfMethod, distances, draw};
use super::tables::{PICKS, table, write_csv};
use crate::page::Page;

/// Writes everything into the folder of the experiment.
pub(super) fn write(
    arguments: &Arguments,
    tasks: &[Task],
    jobs: &[Job],
    data: &TaskData,
) -> anyhow::Result<()> {
    let figures = arguments.out.join("figures");
    make_folder(&figures)?;
    let mut of_tasks = Vec::new();
    for &task in tasks {
        of_tasks.push((task, results(jobs.iter().filter(|job| is_about(job, task)))?));
    }
    write_csv(&arguments.out, &of_tasks, jobs)?;
    let origin = data.describe();
    let mut page = Page::new("AntMaze");
    page.paragraph(&format!(
        "Success in per cent over {} episodes, mean and standard error over seeds, trained on \
         {origin}. In brackets: the paper's table, which is about D4RL's own data, as the best \
         over training.",
        arguments.episodes
    ));
    page.link(DATA, "What the data has in it, beside D4RL's own.");
    let steps = jobs.iter().map(|job| job.settings.steps).max().unwrap_or(0);
    for (title, pick) in PICKS {
        let table = table(&of_tasks, &arguments.methods, pick, steps);
        println!("{title} (trained on {origin}; the paper's in brackets)");
        print_table(&table);
        page.heading(title);
        page.table(&table);
    }
    page.heading("Success over training");
    for (task, results) in &of_tasks {
        let file = figures.join(format!("{task}.svg"));
        draw_success(task.name(), results, &file)?;
        let caption = "share of goals reached, mean over seeds, the band is one standard error.";
        page.figure(&file, &format!("{task}: {caption}"))?;
    }
    compare_distances(&mut page, arguments, tasks, jobs, data)?;
    describe_data(&mut page, tasks, data)?;
    page.heading("Settings");
    for job in jobs {
        page.details(&job.folder.display().to_string(), &settings_of(job)?);
    }
    let file = arguments.out.join("index.html");
    cm_files::replace(&file, page.to_html())?;
    println!("{}", file.display());
    Ok(())
}

/// The section about learned distances and the shortest ways through the mazes, of tasks whose data
/// is there.
fn compare_distances(
    page: &mut Page,
    arguments: &Arguments,
    tasks: &[Task],
    jobs: &[Job],
    data: &TaskData,
) -> anyhow::Result<()> {
    let mut found = Vec::new();
    for &task in tasks.iter().filter(|&&task| data.file(task).exists()) {
        let jobs = jobs.iter().filter(|job| is_about(job, task)).collect::<Vec<_>>();
        let of_task = distances(task, &jobs)?;
        if !of_task.is_empty() {
            found.push((task, of_task));
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let methods = arguments.methods.iter().copied().filter(|&method| {
        found.iter().any(|(_, of_task)| of_task.iter().any(|of_method| of_method.method == method))
    });
    let methods = methods.collect::<Vec<_>>();
    let (table, rows) = (correlation_table(&found, &methods), correlation_rows(&found));
    cm_files::replace(arguments.out.join("distances.csv"), csv(&rows))?;
    let title = "Learned distances and the shortest ways through the maze";
    let meaning = "Spearman's rank correlation over pairs of states of the data, mean and standard \
                   error over seeds: 1 if the farther is always farther. The last models.";
    println!("{title}: rank correlations");
    print_table(&table);
    page.heading(title);
    page.paragraph(meaning);
    page.table(&table);
    for (task, of_task) in &found {
        let file = arguments.out.join("figures").join(format!("{task}-distances.svg"));
        draw(*task, of_task, &file)?;
        page.figure(&file, &format!("{task}: mean learned distance by the length of the way."))?;
    }
    Ok(())
}

type Found = [(Task, Vec<OfMethod>)];

/// Tasks down, methods across.
fn correlation_table(found: &Found, methods: &[Method]) -> Vec<Vec<String>> {
    let titles = methods.iter().map(|method| method.title().to_owned());
    let mut table = vec![std::iter::once("task".to_owned()).chain(titles).collect::<Vec<_>>()];
    for (task, of_task) in found {
        let cells = methods.iter().map(|&method| {
            let of_method = of_task.iter().find(|of_method| of_method.method == method);
            match of_method.and_then(|of_method| Some((of_method, of_method.correlation()?))) {
                Some((of_method, spread)) if of_method.correlations.len() > 1 => {
                    format!("{:.2} ± {:.2}", spread.mean, spread.error)
                }
                Some((_, spread)) => format!("{:.2}", spread.mean),
                None => "-".to_owned(),
            }
        });
        table.push(std::iter::once(task.name().to_owned()).chain(cells).collect());
    }
    table
}

/// A row for each run.
fn correlation_rows(found: &Found) -> Vec<Vec<String>> {
    let mut rows = vec![["task", "method", "seed", "rank_correlation"].map(str::to_owned).to_vec()];
    for (task, of_task) in found {
        for of_method in of_task {
            for (seed, correlation) in of_method.seeds.iter().zip(&of_method.correlations) {
                let method = of_method.method.to_string();
                rows.push(vec![
                    task.to_string(),
                    method,
                    seed.to_string(),
                    correlation.to_string(),
                ]);
            }
        }
    }
    rows
}

/// The section about the data, and its place on the page.
const DATA: &str = "data";

fn describe_data(page: &mut Page, tasks: &[Task], data: &TaskData) -> anyhow::Result<()> {
    page.heading_at(DATA, "The data");
    page.paragraph(&format!("All runs are trained on {}.", data.describe()));
    for &task in tasks {
        let Some(description) = data.description(task)? else { continue };
        let Description { recipe, statistics, .. } = &description;
        page.paragraph(&format!("{task}, recipe {recipe}, {} episodes:", statistics.episodes));
        page.table(&comparison(&description));
        if *recipe == Recipe::D4rl {
            page.paragraph(
                "The ranges of D4RL's data come from D4RL's published policy under the same \
                 recipe and from the rows that are known of its files (docs/antmaze.md).",
            );
        }
    }
    Ok(())
}

fn comparison(description: &Description) -> Vec<Vec<String>> {
    let titles = ["figure", "here", "D4RL's", "within"].map(str::to_owned);
    let mut table = vec![titles.to_vec()];
    for figure in description.comparison() {
        let found = figure.found.map_or("-".to_owned(), |found| format!("{found:.3}"));
        let range = format!("{} to {}", figure.target.start(), figure.target.end());
        let within = if figure.is_met() { "yes" } else { "no" };
        table.push(vec![figure.figure.to_owned(), found, range, within.to_owned()]);
    }
    table
}

fn is_about(job: &Job, task: Task) -> bool {
    job.settings.task.get::<AntMazeTask>().is_some_and(|of_job| of_job.task == task.name())
}
