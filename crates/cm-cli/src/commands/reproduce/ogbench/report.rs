//! Table, bars, curves and page of the experiment.

use std::path::Path;

use cm_envs::ogbench::{Maze, OgTask};
use cm_train::{EvaluationRow, Job, Method, OgMazeTask, RunFolder, read_evaluations};

use super::super::output::{csv, make_folder, print_table, settings_of};
use super::super::results::{Results, Walk, draw_success, results, table_columns, title};
use super::Arguments;
use super::data::TaskData;
use super::published::published;
use crate::figures::{Bars, Group};
use crate::page::Page;

/// How many evaluations at the end count, as in OGBench.
const LAST: usize = 3;

/// Results of each task, in the order of the table.
type OfTasks = [(OgTask, Vec<Results>)];

/// Writes everything into the folder of the experiment.
pub(super) fn write(
    arguments: &Arguments,
    tasks: &[OgTask],
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
    let table = table(&of_tasks, &arguments.methods);
    let about = format!(
        "Success in per cent: the mean over {} episodes of each of five tasks, over the last three \
         evaluations, then over seeds, with the standard deviation over seeds where there are \
         several; after {} steps, trained on {}. In brackets: what has been published, by OGBench \
         (1,000,000 steps, standard deviation over 8 seeds) and for TMD and CMD by the TMD paper \
         (standard error over 6 seeds). Planned: the same policy walks a road map over the \
         learned distance. Planned for GCBC: on the map of the last model walks a policy that was \
         cloned from the data for goals nearby. A dash: not run.",
        arguments.episodes,
        arguments.steps,
        data.describe(),
    );
    println!("{about}");
    print_table(&table);
    let mut page = Page::new("OGBench's mazes");
    page.paragraph(&about);
    page.table(&table);
    page.heading("Task by task");
    for (task, results) in &of_tasks {
        if results.is_empty() {
            continue;
        }
        let file = figures.join(format!("{task}-tasks.svg"));
        Bars {
            title: &task.name(),
            y_label: "share of goals reached",
            bars: &(1..=Maze::TASKS).map(|k| format!("task {k}")).collect::<Vec<_>>(),
            groups: &results.iter().map(group).collect::<Vec<_>>(),
        }
        .save(&file)?;
        page.figure(&file, &format!("{task}: each of the five tasks, last three evaluations."))?;
    }
    page.heading("Success over training");
    for (task, results) in of_tasks.iter().filter(|(_, results)| !results.is_empty()) {
        let file = figures.join(format!("{task}.svg"));
        draw_success(&task.name(), results, &file)?;
        let caption = "share of goals reached, mean over seeds, the band is one standard error.";
        page.figure(&file, &format!("{task}: {caption}"))?;
    }
    page.heading("Settings");
    for job in jobs {
        page.details(&job.folder.display().to_string(), &settings_of(job)?);
    }
    let file = arguments.out.join("index.html");
    cm_files::replace(&file, page.to_html())?;
    println!("{}", file.display());
    Ok(())
}

/// The evaluations that count: the last three after the first step.
fn last(rows: &[EvaluationRow]) -> &[EvaluationRow] {
    let trained = rows.iter().position(|row| row.step > 0).unwrap_or(rows.len());
    let rows = &rows[trained..];
    &rows[rows.len().saturating_sub(LAST)..]
}

/// Mean and standard deviation over seeds of the mean over the last evaluations.
fn score(result: &Results) -> Option<(f64, f64)> {
    let mean = |rows: &[f64]| rows.iter().sum::<f64>() / rows.len() as f64;
    let of_seed = |rows: &Vec<EvaluationRow>| {
        let success: Vec<f64> = last(rows).iter().map(|row| row.success).collect();
        (!success.is_empty()).then(|| mean(&success))
    };
    let seeds: Vec<f64> = result.seeds.iter().filter_map(of_seed).collect();
    if seeds.is_empty() {
        return None;
    }
    let middle = mean(&seeds);
    let squares: f64 = seeds.iter().map(|seed| (seed - middle).powi(2)).sum();
    Some((middle, (squares / (seeds.len() as f64 - 1.0).max(1.0)).sqrt()))
}

/// Success of each task, averaged over the last evaluations and over seeds.
fn group(result: &Results) -> Group {
    let rows: Vec<&EvaluationRow> = result
        .seeds
        .iter()
        .flat_map(|rows| last(rows))
        .filter(|row| !row.tasks.is_empty())
        .collect();
    let mean = |task: usize| {
        let of_task = rows.iter().filter_map(|row| row.tasks.get(task));
        of_task.sum::<f64>() / rows.len().max(1) as f64
    };
    let heights = (0..Maze::TASKS).map(mean).collect();
    Group { name: result.title(), heights }
}

/// Tasks down, methods across, the best of a row marked.
fn table(of_tasks: &OfTasks, methods: &[Method]) -> Vec<Vec<String>> {
    let columns = table_columns(methods, of_tasks.iter().flat_map(|(_, results)| results));
    let titles = columns.iter().map(|&column| title(column));
    let mut table = vec![std::iter::once("task".to_owned()).chain(titles).collect::<Vec<_>>()];
    for (task, results) in of_tasks {
        let found = |column| results.iter().find(|result| result.is(column));
        let scores: Vec<_> = columns.iter().map(|&column| score(found(column)?)).collect();
        let top = scores.iter().flatten().map(|score| score.0).fold(0.0, f64::max);
        let cells = columns.iter().zip(&scores).map(|(&column, score)| {
            let known = published(*task, column.0).filter(|_| column.1 == Walk::Straight);
            let known = known.map_or(String::new(), |(mean, more)| format!(" ({mean} ± {more})"));
            let Some((mean, deviation)) = score else { return format!("-{known}") };
            let mark = if *mean >= top && top > 0.0 { "*" } else { "" };
            let several = found(column).is_some_and(|result| result.seeds.len() > 1);
            let deviation =
                if several { format!(" ± {:.1}", 100.0 * deviation) } else { String::new() };
            format!("{mark}{:.1}{deviation}{known}", 100.0 * mean)
        });
        table.push(std::iter::once(task.name()).chain(cells).collect());
    }
    table
}

/// Writes `table.csv` and `evaluations.csv` into `folder`.
fn write_csv(folder: &Path, of_tasks: &OfTasks, jobs: &[Job]) -> anyhow::Result<()> {
    let number = |number: f64| format!("{number:.2}");
    let titles = [
        "task",
        "method",
        "planned",
        "seeds",
        "steps",
        "success",
        "deviation",
        "published",
        "plus",
    ];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for (task, results) in of_tasks {
        for result in results {
            let Some((mean, deviation)) = score(result) else { continue };
            let mut row = vec![task.name(), result.method.to_string(), result.walk.to_string()];
            row.extend([result.seeds.len().to_string(), result.steps().to_string()]);
            row.push(number(100.0 * mean));
            let several = result.seeds.len() > 1;
            row.push(if several { number(100.0 * deviation) } else { String::new() });
            let known = published(*task, result.method).filter(|_| result.walk == Walk::Straight);
            row.push(known.map_or(String::new(), |known| known.0.to_string()));
            row.push(known.map_or(String::new(), |known| known.1.to_string()));
            rows.push(row);
        }
    }
    cm_files::replace(folder.join("table.csv"), csv(&rows))?;
    let titles = ["task", "method", "planned", "seed", "step", "success", "mean_steps"];
    let mut titles = titles.map(str::to_owned).to_vec();
    titles.extend((1..=Maze::TASKS).map(|k| format!("task_{k}")));
    let mut rows = vec![titles];
    for job in jobs {
        let run = RunFolder::new(&job.folder);
        for walk in Walk::ALL {
            let file = walk.file(&run);
            if !file.exists() {
                continue;
            }
            for found in read_evaluations(&file)? {
                let task = job.settings.task.get::<OgMazeTask>().map(|task| task.task.clone());
                let method = job.settings.method.method().to_string();
                let mut row = vec![task.unwrap_or_default(), method, walk.to_string()];
                row.extend([job.settings.seed.to_string(), found.step.to_string()]);
                row.extend([found.success.to_string(), found.mean_steps.to_string()]);
                row.extend(found.tasks.iter().map(f64::to_string));
                rows.push(row);
            }
        }
    }
    cm_files::replace(folder.join("evaluations.csv"), csv(&rows))?;
    Ok(())
}

fn is_about(job: &Job, task: OgTask) -> bool {
    job.settings.task.get::<OgMazeTask>().is_some_and(|of_job| of_job.task == task.name())
}

#[cfg(test)]
mod tests {
    use super::super::super::results::tests::rows;
    use super::*;

    #[test]
    fn the_last_three_evaluations_count_and_the_published_stand_beside() {
        let seeds = vec![rows(&[0.0, 0.1, 0.6, 0.7, 0.8]), rows(&[0.0, 0.9, 0.9, 0.9, 0.9])];
        let qrl = Results { method: Method::Qrl, walk: Walk::Straight, seeds };
        let (mean, deviation) = score(&qrl).unwrap();
        assert!((mean - 0.8).abs() < 1e-12 && (deviation - 0.02_f64.sqrt()).abs() < 1e-12);
        // The evaluation before training does not count, however few there are.
        let young =
            Results { method: Method::Gcbc, walk: Walk::Straight, seeds: vec![rows(&[1.0, 0.2])] };
        assert_eq!(score(&young), Some((0.2, 0.0)));
        assert_eq!(
            score(&Results {
                method: Method::Gcbc,
                walk: Walk::Straight,
                seeds: vec![rows(&[1.0])]
            }),
            None
        );
        let task = "pointmaze-medium-navigate-v0".parse().unwrap();
        let walked =
            Results { method: Method::Qrl, walk: Walk::Planned, seeds: vec![rows(&[0.0, 0.9])] };
        let methods = [Method::Qrl, Method::Gcbc, Method::Crl];
        let table = table(&[(task, vec![qrl, walked, young])], &methods);
        assert_eq!(table[0], ["task", "QRL", "QRL, planned", "GCBC", "CRL"]);
        assert_eq!(table[1][1..3], ["80.0 ± 14.1 (82 ± 5)", "*90.0"]);
        assert_eq!(table[1][3..], ["20.0 (9 ± 6)", "- (29 ± 7)"]);
    }

    #[test]
    fn bars_are_means_of_tasks() {
        let with = |tasks: &[f64]| EvaluationRow {
            step: 10,
            success: 0.0,
            mean_steps: 0.0,
            tasks: tasks.to_vec(),
        };
        let seeds = vec![vec![with(&[0.0, 1.0, 0.5, 0.0, 0.0])], vec![with(&[1.0; 5])]];
        let bars = group(&Results { method: Method::Qrl, walk: Walk::Straight, seeds });
        assert_eq!(bars.heights, [0.5, 1.0, 0.75, 0.5, 0.5]);
    }
}
