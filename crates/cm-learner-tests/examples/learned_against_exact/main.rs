//! Trains CMD-1, CMD-2 and contrastive RL on trajectories of processes whose successor distance is
//! known exactly, prints how close they come, draws learned against exact distances, and fails if
//! CMD is not as close as it should be. Then TMD and QRL on processes with actions, against the
//! distance of the best policy.
//!
//! ```sh
//! cargo run --release -p cm-learner-tests --example learned_against_exact -- --out figures
//! ```

mod scatter;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use cm_learner_tests::controlled::{BUDGET, ControlledMethod, processes};
use cm_learner_tests::study::{Budget, Method, Outcome, SMALL, studies};
use indicatif::{ProgressBar, ProgressStyle};

/// Learned distances against the exact successor distance of tabular processes.
#[derive(Parser)]
#[command(after_help = "Example:\n  learned_against_exact --out figures --steps 3000 --seed 2")]
struct Arguments {
    /// Folder for `learned_against_exact.svg`; made if missing.
    #[arg(long, default_value = ".")]
    out: PathBuf,
    /// Training steps of each method.
    #[arg(long, default_value_t = 3000)]
    steps: usize,
    /// Seed of trajectories, weights and batches.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(failures) if failures.is_empty() => ExitCode::SUCCESS,
        Ok(failures) => {
            failures.iter().for_each(|failure| eprintln!("error: {failure}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Everything that was not as close as it should be.
fn run(arguments: &Arguments) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let studies = studies()?;
    let budget = Budget { steps: arguments.steps, ..SMALL };
    // Long enough for a distance to be passed back from every goal to every state.
    let controlled = Budget { steps: BUDGET.steps.max(arguments.steps), ..BUDGET };
    let total = studies.len() * Method::ALL.len() * budget.steps
        + processes()?.len() * ControlledMethod::ALL.len() * controlled.steps;
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} steps, {eta} left, {msg}")?;
    let bar = ProgressBar::new(total as u64).with_style(style);
    println!(
        "{:22} {:18} {:>6} {:>8} {:>11} {:>10}",
        "process", "method", "pairs", "rank", "mean error", "triangle"
    );
    let mut failures = Vec::new();
    let mut rows = Vec::new();
    for study in &studies {
        let outcome = |method: Method| {
            bar.set_message(format!("{}, {}", scatter::title(method), study.name));
            let backend = cm_nn::DfdxBackend::new(arguments.seed);
            study.run(&backend, method, &budget, arguments.seed, |_| bar.inc(1))
        };
        let outcomes = Method::ALL.iter().map(|&method| outcome(method));
        let outcomes = outcomes.collect::<Result<Vec<Outcome>, _>>()?;
        for (method, outcome) in Method::ALL.iter().zip(&outcomes) {
            let (rank, error) = (outcome.rank_correlation(), outcome.mean_error());
            let (method, pairs) = (scatter::title(*method), outcome.points.len());
            let triangle = outcome.worst_triangle;
            let line = format!(
                "{:22} {method:18} {pairs:6} {rank:8.4} {error:11.4} {triangle:10.1e}",
                study.name
            );
            bar.suspend(|| println!("{line}"));
        }
        for (method, outcome) in Method::ALL.iter().zip(&outcomes[..2]) {
            let lacking = outcome.failures(&outcomes[2]);
            let what = format!("{}, {}", study.name, scatter::title(*method));
            failures.extend(lacking.iter().map(|lack| format!("{what}: {lack}")));
        }
        rows.push((study.name, outcomes));
    }
    for process in processes()? {
        let outcome = |method: ControlledMethod| {
            bar.set_message(format!("{}, {}", method.title(), process.name));
            let backend = cm_nn::DfdxBackend::new(arguments.seed);
            let outcome = process.run(&backend, method, &controlled, arguments.seed)?;
            bar.inc(controlled.steps as u64);
            let (rank, error) = (outcome.rank_correlation(), outcome.mean_error());
            let (name, method) = (process.name, format!("{}, controlled", method.title()));
            let (pairs, triangle) = (outcome.points.len(), outcome.worst_triangle);
            let line =
                format!("{name:22} {method:18} {pairs:6} {rank:8.4} {error:11.4} {triangle:10.1e}");
            bar.suspend(|| println!("{line}"));
            Ok::<_, Box<dyn std::error::Error>>(outcome)
        };
        let [tmd, qrl] = [outcome(ControlledMethod::Tmd)?, outcome(ControlledMethod::Qrl)?];
        let lacks = process.lacks(&tmd, &qrl);
        failures.extend(lacks.iter().map(|lack| format!("{}: {lack}", process.name)));
    }
    bar.finish_and_clear();
    std::fs::create_dir_all(&arguments.out)
        .map_err(|error| format!("{}: {error}", arguments.out.display()))?;
    let path = arguments.out.join("learned_against_exact.svg");
    std::fs::write(&path, scatter::svg(&rows))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(failures)
}
