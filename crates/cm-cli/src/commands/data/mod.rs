//! `cm data`: the public data sets, generated ones, and people's own files.

mod generate;
mod print;
mod walks;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use cm_data::{Cache, DownloadSettings, Manifest};
use cm_replay::ReadOptions;

pub(crate) use self::generate::{print as print_generated, print_ogbench};
use crate::bars::Bars;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Name every data set with a manifest, and say which are downloaded.
    #[command(after_help = "Example:\n  cm data list")]
    List,
    /// Show a data set's manifest: files, addresses, licence, citation, how to regenerate.
    #[command(after_help = "Example:\n  cm data info antmaze-umaze-v2")]
    Info {
        /// The data set, as `cm data list` names it.
        name: String,
    },
    /// Download a data set, resuming what is there, and check it.
    ///
    /// It goes into CM_DATA_DIR, or `datasets/cache` of the checkout one stands in, or the user's
    /// folder for data.
    #[command(after_help = "Examples:\n  cm data download antmaze-umaze-v2\n  \
            CM_DATA_DIR=/data cm data download antmaze-umaze-v2")]
    Download {
        /// The data set, as `cm data list` names it.
        name: String,
    },
    /// Generate a data set of AntMaze by D4RL's recipe, or of OGBench's mazes by OGBench's, on
    /// MuJoCo, resuming where it was cut off.
    #[command(after_help = "Examples:\n  cm data generate antmaze-umaze\n  \
            cm data generate antmaze-large-play --transitions 100000 --cells round --d4rl-hdf5\n  \
            cm data generate pointmaze-medium-navigate-v0 --npz")]
    Generate(generate::Arguments),
    /// Write walks through a small world whose distances are known, as CSV: something to try
    /// `cm train --data` on.
    #[command(after_help = "Example:\n  cm data walks ring ring.csv")]
    Walks(walks::Arguments),
    /// Check a downloaded data set: checksums, then that the files hold what the manifest says.
    #[command(after_help = "Example:\n  cm data verify antmaze-umaze-v2")]
    Verify {
        /// The data set, as `cm data list` names it.
        name: String,
    },
    /// Convert a file to the memory-mapped form, .cmdata.
    #[command(after_help = "Example:\n  cm data convert logs.csv logs.cmdata")]
    Convert {
        /// An .hdf5, .h5, .npz, .safetensors or .csv file.
        input: PathBuf,
        /// The .cmdata file to write.
        output: PathBuf,
        #[command(flatten)]
        reading: Reading,
    },
    /// Summarise a file: trajectories, lengths, ranges, NaN.
    #[command(after_help = "Example:\n  cm data stats antmaze.hdf5 --xy-jump 2")]
    Stats {
        /// An .hdf5, .h5, .npz, .safetensors, .csv or .cmdata file.
        file: PathBuf,
        #[command(flatten)]
        reading: Reading,
    },
}

#[derive(Args)]
struct Reading {
    /// Keep this further array too, such as rewards or infos/qpos (may be repeated).
    #[arg(long = "extra", value_name = "NAME")]
    extras: Vec<String>,
    /// End a trajectory also where the position (the first two observations) moves farther than
    /// this in one step.
    #[arg(long, value_name = "DISTANCE")]
    xy_jump: Option<f32>,
}

impl Reading {
    fn options(self, allow_not_finite: bool) -> ReadOptions {
        let Self { extras, xy_jump } = self;
        ReadOptions { extras, xy_jump, allow_not_finite, ..ReadOptions::default() }
    }
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let cache = Cache::from_environment();
    match arguments.command {
        Command::List => print::list(&cache),
        Command::Info { name } => print::info(&Manifest::find(&name, &cache)?, &cache),
        Command::Download { name } => download(&Manifest::find(&name, &cache)?, &cache),
        Command::Generate(arguments) => generate::run(&arguments, &cache),
        Command::Walks(arguments) => walks::run(&arguments),
        Command::Verify { name } => verify(&Manifest::find(&name, &cache)?, &cache),
        Command::Convert { input, output, reading } => {
            convert(&input, &output, &reading.options(false))
        }
        Command::Stats { file, reading } => stats(&file, &reading.options(true)),
    }
}

fn download(manifest: &Manifest, cache: &Cache) -> anyhow::Result<()> {
    let bars = Bars::new();
    for file in &manifest.files {
        let settings = DownloadSettings::default();
        let done = cm_data::download(file, cache, &settings, &|event| bars.show(event))?;
        print::downloaded(&done, cache, file)?;
    }
    Ok(())
}

fn verify(manifest: &Manifest, cache: &Cache) -> anyhow::Result<()> {
    let bars = Bars::new();
    let verified = cm_data::verify(manifest, cache, &|event| bars.show(event))?;
    drop(bars);
    for file in verified {
        let (trajectories, steps) = (file.trajectories, file.steps);
        println!(
            "{}: sha256 {}, {trajectories} trajectories, {steps} steps",
            file.name, file.sha256
        );
    }
    Ok(())
}

fn convert(input: &Path, output: &Path, options: &ReadOptions) -> anyhow::Result<()> {
    let bars = Bars::new();
    let data = cm_data::convert(input, output, options, &|event| bars.show(event))?;
    drop(bars);
    println!("{}: {} trajectories, {} steps", output.display(), data.trajectories(), data.steps());
    Ok(())
}

fn stats(file: &Path, options: &ReadOptions) -> anyhow::Result<()> {
    let bars = Bars::new();
    let summary = cm_data::summarise(file, options, &|event| bars.show(event))?;
    drop(bars);
    print!("{summary}");
    Ok(())
}
