//! `cm data walks`: worlds whose distances are known.

use std::path::PathBuf;

use cm_envs::walks::Course;

use crate::commands::make_parent;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// ring (walked counter-clockwise), corridor (with a one-way door) or fork (four of five turn
    /// left).
    world: Course,
    /// The CSV file to write.
    output: PathBuf,
    /// How many walks.
    #[arg(long, default_value_t = 300)]
    walks: usize,
    /// Steps of each.
    #[arg(long, default_value_t = 60)]
    length: usize,
    /// The same seed gives the same walks.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { world, output, walks, length, seed } = arguments;
    let collected = world.collect(*walks, *length, *seed)?;
    make_parent(output)?;
    cm_files::replace(output, collected.to_csv())?;
    println!("{}: {walks} walks, {} rows", output.display(), collected.observations.len());
    Ok(())
}
