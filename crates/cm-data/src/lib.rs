#![doc = include_str!("../README.md")]

mod cache;
mod checksum;
mod described;
mod download;
mod error;
pub mod expert;
mod files;
mod generate;
mod manifest;
pub mod mujoco;
mod ogbench;
mod output;
mod progress;

pub use cache::{Cache, Checksum};
pub use checksum::{sha256_of_bytes, sha256_of_file};
pub use described::ensure_task;
pub use download::{DownloadSettings, Downloaded, download};
pub use error::{Error, Result};
pub use files::{Verified, convert, download_converted, summarise, verify};
pub use generate::{
    Comparison, Description, GenerateSettings, Generated, Report, Statistics, generate,
    generated_name,
};
pub use manifest::{FileEntry, Manifest};
pub use ogbench::{OgFigures, OgGenerated, OgSettings, generate_ogbench, og_generated_name};
pub use output::is_unfinished;
pub use progress::{Event, Progress, Unit, silent};
