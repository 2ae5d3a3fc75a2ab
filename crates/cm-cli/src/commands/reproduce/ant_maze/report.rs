//! Tables, curves and page of the AntMaze experiment.

use cm_envs::ant_maze::Task;
use cm_train::{AntMazeTask, Job};

use super::super::output::{make_folder, print_table, settings_of};
use super::super::results::{Results, Spread, draw_success, results};
use super::Arguments;
use super::paper::paper;
use crate::page::Page;

/// Writes everything into the folder of the experiment.
pub(super) fn write(arguments: &Arguments, tasks: &[Task], jobs: &[Job]) -> anyhow::Result<()> {
    let figures = arguments.out.join("figures");
    make_folder(&figures)?;
    let mut of_tasks = Vec::new();
    for &task in tasks {
        of_tasks.push((task, results(jobs.iter().filter(|job| is_about(job, task)))?));
    }
    let origin = arguments.data.describe();
    let mut page = Page::new("AntMaze");
    page.paragraph(&format!(
        "Success in per cent over {} episodes, mean and standard error over seeds, trained on \
         {origin}. In brackets: the paper's table, which is about D4RL's own data, as the best \
         over training.",
        arguments.episodes
    ));
    let picks: [(&str, fn(&Results) -> Option<Spread>); 2] =
        [("Best over training", Results::best), ("At the end of training", Results::last)];
    for (title, pick) in picks {
        let table = table(arguments, &of_tasks, pick);
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
    page.heading("Settings");
    for job in jobs {
        page.details(&job.folder.display().to_string(), &settings_of(job)?);
    }
    let file = arguments.out.join("index.html");
    cm_files::replace(&file, page.to_html())?;
    println!("{}", file.display());
    Ok(())
}

fn is_about(job: &Job, task: Task) -> bool {
    job.settings.task.get::<AntMazeTask>().is_some_and(|of_job| of_job.task == task.name())
}

/// Tasks down, methods across, the best of a row marked.
fn table(
    arguments: &Arguments,
    of_tasks: &[(Task, Vec<Results>)],
    pick: fn(&Results) -> Option<Spread>,
) -> Vec<Vec<String>> {
    let titles = arguments.methods.iter().map(|method| method.title().to_owned());
    let mut table = vec![std::iter::once("task".to_owned()).chain(titles).collect::<Vec<_>>()];
    for (task, results) in of_tasks {
        let found = |method| results.iter().find(|result| result.method == method).and_then(pick);
        let means: Vec<_> = arguments.methods.iter().map(|&method| found(method)).collect();
        let top = means.iter().flatten().map(|spread| spread.mean).fold(0.0, f64::max);
        let cells = means.iter().zip(&arguments.methods).map(|(found, &method)| {
            let paper = match paper(*task, method) {
                Some((mean, Some(error))) => format!(" ({mean:.1} ± {error:.1})"),
                Some((mean, None)) => format!(" ({mean:.1})"),
                None => String::new(),
            };
            let Some(Spread { mean, error }) = found else { return format!("-{paper}") };
            let mark = if *mean >= top && top > 0.0 { "*" } else { "" };
            let error = match arguments.seeds {
                ..2 => String::new(),
                _ => format!(" ± {:.1}", 100.0 * error),
            };
            format!("{mark}{:.1}{error}{paper}", 100.0 * mean)
        });
        table.push(std::iter::once(task.name().to_owned()).chain(cells).collect());
    }
    table
}
