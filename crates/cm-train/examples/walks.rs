//! Trains on walks through continuous worlds whose distances are known, with the settings that data
//! of one's own gets, and compares every read-out with the truth. Fails if the default one is not as
//! close as it should be.
//!
//! ```sh
//! cargo run --release -p cm-train --example walks -- --world ring
//! ```

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use clap::Parser;
use cm_envs::walks::{Course, ExactDistances};
use cm_random::{Philox, below_u64};
use cm_train::{
    Device, Event, Method, Model, ReadOut, RunFolder, RunSettings, rank_correlation, train,
};
use rand_core::Rng;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Learned distances against the truth of continuous worlds.
#[derive(Parser)]
struct Arguments {
    /// ring, corridor or fork; all of them if not given.
    #[arg(long)]
    world: Vec<Course>,
    /// cmd1, cmd2 or qrl.
    #[arg(long, default_value = "cmd1")]
    method: Method,
    /// Seed of walks and training.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder for data and runs.
    #[arg(long, default_value = "target/walks")]
    out: PathBuf,
    /// Compare the runs that are there.
    #[arg(long)]
    again: bool,
    /// A file of settings in TOML in the place of the preset's, `task` apart.
    #[arg(long)]
    settings: Option<PathBuf>,
}

/// The least rank correlation with the exact distance.
const WANTED: f64 = 0.95;

/// Random pairs of states that are compared.
const PAIRS: usize = 4_000;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let worlds =
        if arguments.world.is_empty() { Course::ALL.to_vec() } else { arguments.world.clone() };
    println!(
        "{:9} {:13} {:>7} {:>7} {:>9} {:>8}",
        "world", "read-out", "exact", "steps", "behind", "back"
    );
    let mut exit = ExitCode::SUCCESS;
    for world in worlds {
        match run(&arguments, world) {
            Ok(rank) if rank >= WANTED => {}
            Ok(rank) => {
                eprintln!("error: {world}: rank correlation {rank:.3} is below {WANTED}");
                exit = ExitCode::FAILURE;
            }
            Err(error) => {
                eprintln!("error: {world}: {error}");
                exit = ExitCode::FAILURE;
            }
        }
    }
    exit
}

/// The rank correlation of the default read-out with the exact distance.
fn run(arguments: &Arguments, world: Course) -> Result<f64> {
    let walks = world.collect(300, 60, arguments.seed)?;
    std::fs::create_dir_all(&arguments.out)?;
    let file = arguments.out.join(format!("{world}-{}.csv", arguments.seed));
    std::fs::write(&file, walks.to_csv())?;
    let mut settings = RunSettings::own_data(arguments.method, file);
    if let Some(path) = &arguments.settings {
        let task = settings.task.clone();
        settings = RunSettings { task, ..RunSettings::load(path)? };
    }
    settings.seed = arguments.seed;
    let name = format!("{world}-{}-{}", arguments.method, arguments.seed);
    let folder = RunFolder::new(arguments.out.join(name));
    if folder.path().exists() && !arguments.again {
        std::fs::remove_dir_all(folder.path())?;
    }
    let task = settings.task.open()?;
    let started = Instant::now();
    let is_seen = std::io::stderr().is_terminal();
    let report = train(Device::Cpu, &settings, &task, &folder, &AtomicBool::new(false), |event| {
        if let Event::Validated { step, found } = event
            && is_seen
        {
            let (held_out, training) = (found.held_out.loss, found.training.loss);
            eprint!("\rstep {step}: held-out loss {held_out:.3}, trained on {training:.3}  ");
        }
    })?;
    if is_seen {
        eprintln!();
    }
    print!("{world}: {} steps in {:.1} s", report.step, started.elapsed().as_secs_f64());
    match report.held_out {
        Some((step, loss)) => println!(", held-out loss least at step {step}: {loss:.3}"),
        None => println!(),
    }
    let exact = world.exact(settings.goals.gamma)?;
    let mut random = Philox::new(9).stream(0, 0x7f0);
    let mut row = || {
        let number = below_u64(random.next_u64(), walks.observations.len() as u64);
        walks.observations[number as usize]
    };
    let pairs: Vec<_> = (0..PAIRS).map(|_| (row(), row())).collect();
    let default = Model::load(&folder, true)?.read_out();
    let mut of_default = f64::NAN;
    let read_outs = [ReadOut::NoAction, ReadOut::DataActions, ReadOut::States, ReadOut::Composed];
    for read_out in read_outs {
        let model = Model::load(&folder, true)?.with_read_out(read_out);
        let rank = compare(&model, world, &exact, &pairs)?;
        if read_out == default {
            of_default = rank;
        }
    }
    Ok(of_default)
}

/// A number's text, or a dash if there is no such number.
fn known(number: f64, text: String) -> String {
    if number.is_nan() { "-".to_owned() } else { text }
}

fn compare(
    model: &Model,
    world: Course,
    exact: &ExactDistances,
    pairs: &[([f32; 2], [f32; 2])],
) -> Result<f64> {
    let from: Vec<f32> = pairs.iter().flat_map(|pair| pair.0).collect();
    let to: Vec<f32> = pairs.iter().flat_map(|pair| pair.1).collect();
    let found: Vec<f64> = model.distances(&from, &to)?.into_iter().map(f64::from).collect();
    let truth: Vec<f64> = pairs.iter().map(|pair| exact.distance(pair.0, pair.1)).collect();
    let steps: Option<Vec<f64>> = pairs.iter().map(|pair| world.steps(pair.0, pair.1)).collect();
    let rank = rank_correlation(&found, &truth);
    let by_steps = steps.as_ref().map_or(f64::NAN, |steps| rank_correlation(&found, steps));
    // Of pairs a nearly whole turn apart, those that look nearer than pairs 40 steps apart.
    let behind = steps.map_or(f64::NAN, |steps| {
        let within = |low: f64, high: f64| {
            let mut values: Vec<f64> = found
                .iter()
                .zip(&steps)
                .filter(|(_, steps)| (low..high).contains(*steps))
                .map(|(found, _)| *found)
                .collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let forty = within(39.0, 41.0);
        let far = within(57.0, 62.8);
        far.iter().filter(|&&far| far < forty[forty.len() / 2]).count() as f64 / far.len() as f64
    });
    let back = model.distances(&to, &from)?;
    let both =
        found.iter().zip(back).zip(&truth).filter(|((a, b), _)| a.is_finite() && b.is_finite());
    let asymmetry =
        both.map(|((a, b), _)| (a - f64::from(b)).abs()).sum::<f64>() / found.len() as f64;
    println!(
        "{:9} {:13} {rank:7.3} {:>7} {:>9} {asymmetry:8.2}",
        world.key(),
        model.read_out().to_string(),
        known(by_steps, format!("{by_steps:.3}")),
        known(behind, format!("{:.1}%", 100.0 * behind))
    );
    Ok(rank)
}
