//! OGBench's mazes against OGBench's own code, and by themselves.

mod collections;
mod files;
mod maps;
mod models;
mod protocol;
#[path = "../simulator/mod.rs"]
mod simulator;
mod teleports;
mod trajectories;
