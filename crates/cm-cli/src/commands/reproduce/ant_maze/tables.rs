//! The table of the experiment, and everything it is made of as CSV.

use std::collections::BTreeMap;
use std::path::Path;

use cm_envs::ant_maze::Task;
use cm_train::{AntMazeTask, Job, Method, RunFolder, read_evaluations};

use super::super::output::csv;
use super::super::results::{Results, Spread, Walk, table_columns, title};
use super::paper::paper;

/// Results of each task, in the order of the table.
pub(super) type OfTasks = [(Task, Vec<Results>)];

/// One number of a method's evaluations.
pub(super) type Pick = fn(&Results) -> Option<Spread>;

/// What the tables show.
pub(super) const PICKS: [(&str, Pick); 2] =
    [("Best over training", Results::best), ("At the end of training", Results::last)];

/// Tasks down, methods across, the best of a row marked; below, the mean of the tasks. Runs that have
/// not come to `steps` say how far they are.
pub(super) fn table(
    of_tasks: &OfTasks,
    methods: &[Method],
    pick: Pick,
    steps: u64,
) -> Vec<Vec<String>> {
    let columns = table_columns(methods, of_tasks.iter().flat_map(|(_, results)| results));
    let titles = columns.iter().map(|&column| title(column));
    let mut table = vec![std::iter::once("task".to_owned()).chain(titles).collect::<Vec<_>>()];
    let mut sums = vec![Some([0.0, 0.0]); columns.len()];
    for (task, results) in of_tasks {
        let found = columns.iter().map(|&column| {
            let result = results.iter().find(|result| result.is(column))?;
            Some((result, pick(result)?))
        });
        let found = found.collect::<Vec<_>>();
        let top = top(found.iter().map(|found| Some(found.as_ref()?.1.mean)));
        let mut row = vec![task.name().to_owned()];
        for ((&column, found), sum) in columns.iter().zip(found).zip(&mut sums) {
            let paper = paper(*task, column.0).filter(|_| column.1 == Walk::Straight);
            let here = found.as_ref().map(|(_, spread)| spread.mean);
            *sum = sum.zip(here).map(|([ours, theirs], here)| {
                [ours + here, theirs + paper.map_or(f64::NAN, |(mean, _)| mean)]
            });
            let paper = match paper {
                Some((mean, Some(error))) => format!(" ({mean:.1} ± {error:.1})"),
                Some((mean, None)) => format!(" ({mean:.1})"),
                None => String::new(),
            };
            let Some((result, spread)) = found else {
                row.push(format!("-{paper}"));
                continue;
            };
            let error = match result.seeds.len() {
                ..2 => String::new(),
                _ => format!(" ± {:.1}", 100.0 * spread.error),
            };
            let reached = match result.reached() {
                reached if reached < steps => format!(", to {reached}"),
                _ => String::new(),
            };
            let mark = mark(spread.mean, top);
            row.push(format!("{mark}{:.1}{error}{reached}{paper}", 100.0 * spread.mean));
        }
        table.push(row);
    }
    if of_tasks.len() > 1 {
        let count = of_tasks.len() as f64;
        let means = sums.iter().map(|sum| sum.map(|[ours, theirs]| [ours / count, theirs / count]));
        let top = top(means.clone().map(|mean| Some(mean?[0])));
        let cells = means.map(|mean| match mean {
            Some([ours, theirs]) if theirs.is_nan() => {
                format!("{}{:.1}", mark(ours, top), 100.0 * ours)
            }
            Some([ours, theirs]) => {
                format!("{}{:.1} ({theirs:.1})", mark(ours, top), 100.0 * ours)
            }
            None => "-".to_owned(),
        });
        table.push(std::iter::once("mean".to_owned()).chain(cells).collect());
    }
    table
}

/// The largest of a row's numbers.
fn top(row: impl Iterator<Item = Option<f64>>) -> f64 {
    row.flatten().fold(0.0, f64::max)
}

/// What stands before a number of a row whose largest is `top`; sums of the same shares may differ
/// in their last digits.
fn mark(number: f64, top: f64) -> &'static str {
    if number > 0.0 && number >= top - 1e-9 { "*" } else { "" }
}

/// Writes `table.csv`, `evaluations.csv` and `runs.csv` into `folder`.
pub(super) fn write_csv(folder: &Path, of_tasks: &OfTasks, jobs: &[Job]) -> anyhow::Result<()> {
    cm_files::replace(folder.join("table.csv"), csv(&cells(of_tasks)))?;
    cm_files::replace(folder.join("evaluations.csv"), csv(&evaluations(jobs)?))?;
    cm_files::replace(folder.join("runs.csv"), csv(&runs(jobs)?))?;
    Ok(())
}

/// A row for each cell: ours, best and last, beside the paper's, in per cent.
fn cells(of_tasks: &OfTasks) -> Vec<Vec<String>> {
    let titles = [
        "task",
        "method",
        "planned",
        "seeds",
        "steps",
        "best",
        "best_error",
        "last",
        "last_error",
        "paper",
        "paper_error",
    ];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let number = |number: Option<f64>| number.map_or(String::new(), |n| format!("{n:.2}"));
    for (task, results) in of_tasks {
        for result in results {
            let (method, planned) = (result.method.to_string(), result.walk.to_string());
            let mut row = vec![task.to_string(), method, planned];
            row.extend([result.seeds.len().to_string(), result.steps().to_string()]);
            for (_, pick) in PICKS {
                let found = pick(result);
                let error = found.filter(|_| result.seeds.len() > 1).map(|found| found.error);
                row.push(number(found.map(|found| 100.0 * found.mean)));
                row.push(number(error.map(|error| 100.0 * error)));
            }
            let paper = paper(*task, result.method).filter(|_| result.walk == Walk::Straight);
            row.push(number(paper.map(|(mean, _)| mean)));
            row.push(number(paper.and_then(|(_, error)| error)));
            rows.push(row);
        }
    }
    rows
}

/// Every evaluation of every run.
fn evaluations(jobs: &[Job]) -> anyhow::Result<Vec<Vec<String>>> {
    let titles = ["task", "method", "seed", "planned", "step", "success", "mean_steps"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for job in jobs {
        let run = RunFolder::new(&job.folder);
        for walk in Walk::ALL {
            let file = walk.file(&run);
            if !file.exists() {
                continue;
            }
            for found in read_evaluations(&file)? {
                let mut row = of_run(job).to_vec();
                row.extend([walk.to_string(), found.step.to_string()]);
                row.extend([found.success.to_string(), found.mean_steps.to_string()]);
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// Every setting of every run that was begun, one column for each key; those of the method begin
/// with its name.
fn runs(jobs: &[Job]) -> anyhow::Result<Vec<Vec<String>>> {
    let mut found = Vec::new();
    for job in jobs {
        let folder = RunFolder::new(&job.folder);
        if !folder.evaluations_file().exists() {
            continue;
        }
        let devices = folder.devices()?.into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        let mut settings = BTreeMap::new();
        let all: toml::Table = toml::from_str(&job.settings.to_toml())?;
        flatten("", &toml::Value::Table(all), &mut settings);
        found.push((job, devices.join(" "), settings));
    }
    let mut keys: Vec<String> =
        found.iter().flat_map(|(.., settings)| settings.keys().cloned()).collect();
    keys.sort_unstable();
    keys.dedup();
    let titles = ["task", "method", "seed", "devices"].map(str::to_owned).into_iter();
    let mut rows = vec![titles.chain(keys.clone()).collect::<Vec<_>>()];
    for (job, devices, settings) in found {
        let values = keys.iter().map(|key| settings.get(key).cloned().unwrap_or_default());
        rows.push(of_run(job).into_iter().chain([devices]).chain(values).collect());
    }
    Ok(rows)
}

fn of_run(job: &Job) -> [String; 3] {
    let task = job.settings.task.get::<AntMazeTask>().map(|of_job| of_job.task.clone());
    let task = task.unwrap_or_default();
    [task, job.settings.method.method().to_string(), job.settings.seed.to_string()]
}

/// Keys with dots between their parts.
fn flatten(key: &str, value: &toml::Value, into: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                let dot = if key.is_empty() { "" } else { "." };
                flatten(&format!("{key}{dot}{name}"), value, into);
            }
        }
        toml::Value::String(text) => _ = into.insert(key.to_owned(), text.clone()),
        other => _ = into.insert(key.to_owned(), other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::results::tests::rows;
    use super::*;

    #[test]
    fn best_and_last_stand_beside_the_papers() {
        let seeds = vec![rows(&[0.0, 0.9, 0.6]), rows(&[0.0, 0.7, 0.7])];
        let of_tasks = [(
            Task::LargePlay,
            vec![
                Results { method: Method::Cmd1, walk: Walk::Straight, seeds },
                Results {
                    method: Method::Iql,
                    walk: Walk::Straight,
                    seeds: vec![rows(&[0.1, 0.2, 0.3])],
                },
            ],
        )];
        let methods = [Method::Cmd1, Method::Iql, Method::Qrl];
        let best = table(&of_tasks, &methods, Results::best, 2000);
        assert_eq!(best[0], ["task", "CMD-1", "IQL", "QRL"]);
        assert_eq!(best[1][1..3], ["*80.0 ± 10.0 (68.0 ± 2.1)", "30.0 (39.6)"]);
        assert_eq!(best[1][3], "- (52.9 ± 2.8)");
        assert_eq!(best.len(), 2, "no mean of one task");
        let last = table(&of_tasks, &methods, Results::last, 3000);
        assert_eq!(last[1][1], "*65.0 ± 5.0, to 2000 (68.0 ± 2.1)");
        let cells = csv(&cells(&of_tasks));
        let lines: Vec<_> = cells.lines().collect();
        let cmd1 = "antmaze-large-play-v2,cmd1,false,2,2000,80.00,10.00,65.00,5.00,68.00,2.10";
        let iql = "antmaze-large-play-v2,iql,false,1,2000,30.00,,30.00,,39.60,";
        assert_eq!(lines[1..], [cmd1, iql]);
    }

    #[test]
    fn the_mean_is_of_methods_that_have_every_task() {
        let result = |method, shares: &[f64]| Results {
            method,
            walk: Walk::Straight,
            seeds: shares.iter().map(|&share| rows(&[share])).collect(),
        };
        let of_tasks = [
            (
                Task::Umaze,
                vec![result(Method::Cmd1, &[0.1, 0.2]), result(Method::Gcbc, &[0.2, 0.1])],
            ),
            (Task::LargePlay, vec![result(Method::Cmd1, &[0.5, 0.5])]),
        ];
        let found = table(&of_tasks, &[Method::Cmd1, Method::Gcbc], Results::best, 0);
        assert!(found[1][1].starts_with("*15.0") && found[1][2].starts_with("*15.0"), "a tie");
        assert_eq!(found[3], ["mean", "*32.5 (79.2)", "-"]);
    }

    #[test]
    fn settings_become_columns() {
        let mut into = BTreeMap::new();
        let value: toml::Table = toml::from_str("a = 1\n[b.c]\nd = [1, 2]\ne = \"x\"").unwrap();
        flatten("", &toml::Value::Table(value), &mut into);
        let found: Vec<_> = into.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(found, ["a=1", "b.c.d=[1, 2]", "b.c.e=x"]);
        let row = vec!["[1, 2]".to_owned(), "say \"x\"".to_owned(), "*y".to_owned()];
        assert_eq!(csv(&[row]), "\"[1, 2]\",\"say \"\"x\"\"\",y\n");
    }
}
