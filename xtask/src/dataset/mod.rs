//! `cargo xtask dataset`: the public data sets, and people's own files.

mod cache;
pub(crate) mod checksum;
mod download;
mod generate;
mod manifest;
#[cfg(test)]
mod server;
mod transfer;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{Args, Parser, Subcommand};
use cm_replay::{Dataset, ReadOptions, Summary};
use indicatif::ProgressBar;

use self::cache::{Cache, Sha256};
use self::manifest::Manifest;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Name every data set with a manifest, and say which are in the cache.
    #[command(after_help = "Example:\n  cargo xtask dataset list")]
    List,
    /// Show a data set's manifest: files, addresses, licence, citation, how to regenerate.
    #[command(after_help = "Example:\n  cargo xtask dataset info antmaze-umaze-v2")]
    Info { name: String },
    /// Download a data set into the cache (CM_DATA_DIR, or datasets/cache), resuming what is there.
    #[command(
        after_help = "Example:\n  CM_DATA_DIR=/data cargo xtask dataset download antmaze-umaze-v2"
    )]
    Download { name: String },
    /// Generate a data set of AntMaze on MuJoCo by D4RL's recipe, going on where it was cut off.
    #[command(
        after_help = "Examples:\n  cargo xtask dataset generate antmaze-umaze\n  cargo xtask dataset generate antmaze-large-play --transitions 100000 --cells round --d4rl-hdf5"
    )]
    Generate(generate::Arguments),
    /// Check a downloaded data set: checksums, then that the files hold what the manifest says.
    #[command(after_help = "Example:\n  cargo xtask dataset verify antmaze-umaze-v2")]
    Verify { name: String },
    /// Convert a file to the memory-mapped form, .cmdata.
    #[command(after_help = "Example:\n  cargo xtask dataset convert logs.csv logs.cmdata")]
    Convert {
        /// An .hdf5, .h5, .npz, .safetensors or .csv file.
        input: PathBuf,
        /// The .cmdata file to write.
        output: PathBuf,
        #[command(flatten)]
        reading: Reading,
    },
    /// Summarise a file: trajectories, lengths, ranges, NaN.
    #[command(after_help = "Example:\n  cargo xtask dataset stats antmaze.hdf5 --xy-jump 2")]
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
    /// End a trajectory also where the position (the first two observations) moves farther than this in one step.
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
    match arguments.command {
        Command::List => list(&Cache::from_environment()),
        Command::Info { name } => info(&manifest::find(&name)?, &Cache::from_environment()),
        Command::Download { name } => {
            let (manifest, cache) = (manifest::find(&name)?, Cache::from_environment());
            manifest.files.iter().try_for_each(|file| {
                download::download(file, &cache, &download::Settings::default())
            })
        }
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Verify { name } => verify(&manifest::find(&name)?, &Cache::from_environment()),
        Command::Convert { input, output, reading } => {
            convert(&input, &output, &reading.options(false))
        }
        Command::Stats { file, reading } => stats(&file, &reading.options(true)),
    }
}

/// Generates the data of `task` with every setting's default into `output`.
pub(crate) fn generate(task: &str, output: &Path) -> anyhow::Result<()> {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: generate::Arguments,
    }
    let words = ["generate".as_ref(), task.as_ref(), "--out".as_ref(), output.as_os_str()];
    generate::run(&Line::try_parse_from(words)?.arguments)
}

/// Downloads a data set of one file, unless it is in the cache, and converts it to `output`.
pub(crate) fn download_converted(name: &str, output: &Path) -> anyhow::Result<()> {
    let (manifest, cache) = (manifest::find(name)?, Cache::from_environment());
    let [file] = &manifest.files[..] else {
        bail!("{name}: expected a data set of one file, found {}", manifest.files.len());
    };
    download::download(file, &cache, &download::Settings::default())?;
    convert(&cache.path(&file.name), output, &ReadOptions::default())
}

fn list(cache: &Cache) -> anyhow::Result<()> {
    for manifest in manifest::all()? {
        let here = manifest.files.iter().all(|file| cache.path(&file.name).exists());
        let mark = if here { "downloaded" } else { "" };
        println!(
            "{:<32} {:<11} {:<10} {}",
            manifest.name, manifest.format, mark, manifest.description
        );
    }
    println!("\ncache: {}", cache.folder().display());
    Ok(())
}

fn info(manifest: &Manifest, cache: &Cache) -> anyhow::Result<()> {
    println!("{}: {}", manifest.name, manifest.description);
    println!("format:     {}", manifest.format);
    println!(
        "shapes:     observations [N, {}], actions [N, {}]",
        manifest.observations, manifest.actions
    );
    println!("steps:      {}", manifest.steps.as_deref().unwrap_or("not stated"));
    println!("licence:    {}", manifest.licence);
    println!("citation:   {}", manifest.citation);
    println!("regenerate: {}", manifest.regenerate);
    for file in &manifest.files {
        let path = cache.path(&file.name);
        let state = if path.exists() { "downloaded to" } else { "would go to" };
        println!("\n{}\n  {state} {}", file.name, path.display());
        if let Some(size) = file.size {
            println!("  size {size} bytes");
        }
        match cache.expected_checksum(file)? {
            Sha256::Known(sum) => println!("  sha256 {sum}"),
            Sha256::RecordOnFirstDownload => println!("  sha256 is recorded at the first download"),
        }
        for address in &file.addresses {
            println!("  from {address}");
        }
    }
    Ok(())
}

fn verify(manifest: &Manifest, cache: &Cache) -> anyhow::Result<()> {
    for file in &manifest.files {
        let path = cache.path(&file.name);
        ensure!(
            path.exists(),
            "{} is not there; run `cargo xtask dataset download {}`",
            path.display(),
            manifest.name
        );
        let found = checksum::of_file(&path)?;
        match cache.expected_checksum(file)? {
            Sha256::Known(expected) => ensure!(
                expected == found,
                "{}: sha256 is {found}, expected {expected}",
                path.display()
            ),
            Sha256::RecordOnFirstDownload => bail!(
                "{}: no checksum is known for it; download it again to record one",
                path.display()
            ),
        }
        let data = read_with_spinner(&path, &ReadOptions::default())?;
        let widths = (data.observations().columns(), data.actions().columns());
        ensure!(
            widths == (manifest.observations, manifest.actions),
            "{}: observations and actions have widths {widths:?}, expected {:?}",
            path.display(),
            (manifest.observations, manifest.actions)
        );
        println!(
            "{}: sha256 {found}, {} trajectories, {} steps",
            file.name,
            data.trajectories(),
            data.steps()
        );
    }
    Ok(())
}

fn convert(input: &Path, output: &Path, options: &ReadOptions) -> anyhow::Result<()> {
    ensure!(
        output.extension().is_some_and(|extension| extension == "cmdata"),
        "{}: the output must end in .cmdata",
        output.display()
    );
    let data = read_with_spinner(input, options)?;
    let spinner = spinner(format!("writing {}", output.display()));
    data.save(output)?;
    spinner.finish_and_clear();
    println!("{}: {} trajectories, {} steps", output.display(), data.trajectories(), data.steps());
    Ok(())
}

fn stats(file: &Path, options: &ReadOptions) -> anyhow::Result<()> {
    // Our own form need not fit into memory.
    let mapped = file.extension().is_some_and(|extension| extension == "cmdata");
    let data = if mapped { Dataset::open(file)? } else { read_with_spinner(file, options)? };
    let spinner = spinner(format!("summarising {}", file.display()));
    let summary = Summary::of(&data);
    spinner.finish_and_clear();
    print!("{summary}");
    Ok(())
}

fn read_with_spinner(path: &Path, options: &ReadOptions) -> anyhow::Result<Dataset> {
    let spinner = spinner(format!("reading {}", path.display()));
    let data = cm_replay::read(path, options).context("could not read the data set")?;
    spinner.finish_and_clear();
    Ok(data)
}

/// Shown on a terminal, silent elsewhere.
fn spinner(message: String) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(message);
    spinner.enable_steady_tick(std::time::Duration::from_millis(120));
    spinner
}
