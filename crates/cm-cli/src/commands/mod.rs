//! One file per command.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod data;
pub(crate) mod distance;
pub(crate) mod eval;
pub(crate) mod expert;
pub(crate) mod inspect;
pub(crate) mod mujoco;
pub(crate) mod plan;
pub(crate) mod plot;
pub(crate) mod reproduce;
pub(crate) mod sweep;
pub(crate) mod train;
pub(crate) mod view;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use cm_train::{Device, Model, PlanSettings, RoadMap, RunFolder, Task};

/// The device to train on, which can be used; says on stderr what `auto` has become, and which GPU
/// it is.
pub(crate) fn device(wanted: Device) -> anyhow::Result<Device> {
    let (device, what) = wanted.resolve()?;
    if wanted != Device::Cpu {
        eprintln!("training on {device}: {what}");
    }
    Ok(device)
}

/// A run on the command line, and which of its models.
#[derive(clap::Args)]
pub(crate) struct RunArguments {
    /// Folder of the run.
    run: PathBuf,
    /// The model of the last checkpoint instead of the best one.
    #[arg(long)]
    last: bool,
}

impl RunArguments {
    pub(crate) fn folder(&self) -> RunFolder {
        RunFolder::new(&self.run)
    }

    pub(crate) fn model(&self) -> anyhow::Result<Model> {
        if !self.folder().settings_file().exists() {
            bail!(
                "{}: expected the folder of a run, found no config.toml in it",
                self.run.display()
            );
        }
        Ok(Model::load(&self.folder(), !self.last)?)
    }

    /// The model of another run, the best one or the last as of this one.
    pub(crate) fn other(&self, run: &Path) -> anyhow::Result<Model> {
        Self { run: run.to_owned(), last: self.last }.model()
    }

    /// Where the road map of the model is kept.
    pub(crate) fn map_file(&self) -> PathBuf {
        let folder = self.folder();
        folder.map_file(!self.last && folder.best_file().exists())
    }

    /// The road map that is kept with the model, if there is one. One of another model is refused.
    pub(crate) fn kept_map(&self, model: &Model) -> anyhow::Result<Option<RoadMap>> {
        let file = self.map_file();
        Ok(if file.exists() { Some(RoadMap::read(&file, model)?) } else { None })
    }

    /// The road map that is kept with the model if it is of this model, of its data and of these
    /// settings; else a new one, made on the device, which is kept in its place.
    pub(crate) fn road_map(
        &self,
        device: Device,
        model: &Model,
        task: &Task,
        settings: &PlanSettings,
    ) -> anyhow::Result<RoadMap> {
        let file = self.map_file();
        if file.exists() {
            match RoadMap::load(&file, model, task) {
                Ok(map) if map.is_of(settings) => return Ok(map),
                Ok(_) => eprintln!("{}: other settings; the map is made anew", file.display()),
                Err(error) => eprintln!("{error}; the map is made anew"),
            }
        }
        let started = Instant::now();
        let map = device.road_map(model, task, settings)?;
        let seconds = started.elapsed().as_secs_f64();
        map.save(&file)?;
        let (nodes, links) = (map.nodes().len() / model.dimensions().state(), map.links().len());
        let (device, _) = device.resolve()?;
        let file = file.display();
        eprintln!("{file}: {nodes} nodes, {links} links in {seconds:.1} s on {device}");
        Ok(map)
    }
}

/// The states of a task's data in their own units, at most `limit` of them, spread evenly.
pub(crate) fn data_states(model: &Model, task: &Task, limit: usize) -> Vec<Vec<f32>> {
    if let Some(places) = task.world.as_ref().and_then(|world| world.places()) {
        return places.iter().map(|place| place.to_vec()).collect();
    }
    let observations = task.data.observations();
    let every = observations.rows().div_ceil(limit).max(1);
    let rows = (0..observations.rows()).step_by(every);
    rows.map(|row| model.unscaled(observations.row(row))).collect()
}

/// Where a picture shows a state: two of its coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axes(pub(crate) [usize; 2]);

impl std::str::FromStr for Axes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<_> = text.split(',').map(|part| part.trim().parse::<usize>()).collect();
        match parts.as_slice() {
            [Ok(x), Ok(y)] => Ok(Self([*x, *y])),
            _ => Err(format!("expected two coordinates such as `0,1`, found `{text}`")),
        }
    }
}

impl Axes {
    pub(crate) fn check(self, width: usize) -> anyhow::Result<()> {
        if let Some(beyond) = self.0.into_iter().find(|&axis| axis >= width) {
            bail!("axes: expected coordinates below {width}, found {beyond}");
        }
        Ok(())
    }

    pub(crate) fn of(self, state: &[f32]) -> [f32; 2] {
        self.0.map(|axis| state[axis])
    }
}

/// Makes the folder that a file will be in.
pub(crate) fn make_parent(file: &Path) -> anyhow::Result<()> {
    match file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => std::fs::create_dir_all(folder)
            .with_context(|| format!("{}: could not be made", folder.display())),
        None => Ok(()),
    }
}
