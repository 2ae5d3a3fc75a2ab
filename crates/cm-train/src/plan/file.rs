//! Road maps on disk, each with what it was made of.

use std::path::Path;

use bincode::{Decode, Encode};
use xxhash_rust::xxh3::Xxh3;

use super::road_map::{RoadMap, Rule};
use super::{PlanSettings, Trust};
use crate::{Error, Model, Result, Task, container};

/// `cmroads` and the version.
const MAGIC: [u8; 8] = *b"cmroads\x07";

/// The model and the data that a map is of, by their checksums and in words, and its settings.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(crate) struct Origin {
    model: u64,
    data: u64,
    /// Such as `qrl, seed 0, pointmaze-large-stitch-v0`.
    name: String,
    rows: u64,
    settings: String,
}

impl Origin {
    pub(super) fn of(model: &Model, task: &Task, settings: &PlanSettings) -> Result<Self> {
        let data = &task.data;
        let mut sum = Xxh3::new();
        for row in data.observations().iter() {
            row.iter().for_each(|number| sum.update(&number.to_le_bytes()));
        }
        data.ends().iter().for_each(|&end| sum.update(&(end as u64).to_le_bytes()));
        Ok(Self {
            model: model.checksum()?,
            data: sum.digest(),
            name: name_of(model),
            rows: data.steps() as u64,
            settings: toml::to_string(settings).map_err(|error| Error::Setting {
                setting: "plan".to_owned(),
                expected: "settings that TOML can hold",
                found: error.to_string(),
            })?,
        })
    }
}

/// What a model is called in messages.
fn name_of(model: &Model) -> String {
    let run = model.settings();
    format!("{}, seed {}, {}", run.method.method(), run.seed, run.task.describe())
}

/// A map as the file holds it.
#[derive(Encode, Decode)]
struct Stored {
    origin: Origin,
    width: u64,
    nodes: Vec<f32>,
    links: Vec<(u32, u32, f32)>,
    rule: Rule,
    trust: Option<Trust>,
}

impl RoadMap {
    /// Writes the file at `path`. Refuses a map of given places, which belongs to no data.
    ///
    /// In the file the map (bincode, standard configuration) follows 8 bytes of name and version,
    /// its length and its XXH3 checksum, 8 bytes each, little endian.
    pub fn save(&self, path: &Path) -> Result<()> {
        let Some(origin) = self.origin.clone() else {
            return Err(Error::content(path, "expected a map of data, found one of given places"));
        };
        let stored = Stored {
            origin,
            width: self.width as u64,
            nodes: self.nodes.clone(),
            links: self.links.clone(),
            rule: self.rule,
            trust: self.trust.clone(),
        };
        container::save(path, MAGIC, &stored)
    }

    /// Reads the file at `path`. Refuses a map of another model or of other data, by its name.
    pub fn load(path: &Path, model: &Model, task: &Task) -> Result<Self> {
        let map = Self::read(path, model)?;
        let settings = PlanSettings::default();
        let (found, wanted) = (map.origin(), Origin::of(model, task, &settings)?);
        match found.data == wanted.data {
            true => Ok(map),
            false => Err(Error::content(
                path,
                format!(
                    "expected a map of the data of {} ({} rows), found one of other data ({}, {} \
                     rows)",
                    wanted.name, wanted.rows, found.name, found.rows
                ),
            )),
        }
    }

    /// Reads the file at `path` without a look at the data. Refuses a map of another model, by its
    /// name.
    pub fn read(path: &Path, model: &Model) -> Result<Self> {
        let stored: Stored = container::load(path, MAGIC, "a road map")?;
        let Stored { origin, width, nodes, links, rule, trust } = stored;
        let expected = model.dimensions().state();
        if origin.model != model.checksum()? {
            let (name, found) = (name_of(model), &origin.name);
            let reason =
                format!("expected the map of this model ({name}), found that of another ({found})");
            return Err(Error::content(path, reason));
        }
        let count = nodes.len() / expected.max(1);
        let fits = |&(from, to, length): &(u32, u32, f32)| {
            (from as usize) < count && (to as usize) < count && length >= 0.0
        };
        if width != expected as u64 || !nodes.len().is_multiple_of(expected) || count == 0 {
            let reason = format!("expected states of {expected} numbers, found {width}");
            return Err(Error::content(path, reason));
        }
        if !links.iter().all(fits) {
            return Err(Error::content(path, format!("expected links between {count} nodes")));
        }
        let mut map = Self::with_links(expected, nodes, links, rule);
        (map.origin, map.trust) = (Some(origin), trust);
        Ok(map)
    }

    /// Whether it was made with these settings.
    pub fn is_of(&self, settings: &PlanSettings) -> bool {
        let wanted = toml::to_string(settings).ok();
        self.origin.as_ref().map(|origin| &origin.settings) == wanted.as_ref()
    }

    fn origin(&self) -> Origin {
        self.origin.clone().unwrap_or_else(|| Origin {
            model: 0,
            data: 0,
            name: String::new(),
            rows: 0,
            settings: String::new(),
        })
    }
}
