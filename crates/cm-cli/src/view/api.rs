//! What the page asks for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cm_envs::Rollout;
use cm_train::{Model, Places, RoadMap, RunFolder, Task, read_metrics};
use serde_json::{Value, json};

use super::http::{Answer, Request};
use crate::commands::data_states;
use crate::words::{in_json, in_words, map_in_words, warning};

const SCRIPT: &str = "text/javascript; charset=utf-8";
/// Most states that are shown.
const MOST_STATES: usize = 40_000;
/// Most rows of a curve.
const MOST_ROWS: usize = 1_000;

/// The runs that were named on the command line; nothing else is ever read.
pub(super) struct Runs {
    folders: Vec<RunFolder>,
    loaded: BTreeMap<usize, Loaded>,
}

/// A model with the states that are shown.
struct Loaded {
    file: PathBuf,
    modified: Option<SystemTime>,
    model: Model,
    task: Task,
    places: Places,
    /// The road map that is kept with the model.
    map: Option<RoadMap>,
}

/// Why there is no answer.
struct Refusal(u16, String);

impl From<cm_train::Error> for Refusal {
    fn from(error: cm_train::Error) -> Self {
        Self(400, error.to_string())
    }
}

type Found = Result<Answer, Refusal>;

impl Runs {
    pub(super) fn new(folders: Vec<PathBuf>) -> Self {
        let folders = folders.into_iter().map(RunFolder::new).collect();
        Self { folders, loaded: BTreeMap::new() }
    }

    pub(super) fn answer(&mut self, request: &Request) -> Answer {
        let text = |kind, text: &str| Ok(Answer::new(kind, text));
        let found = match request.path.as_str() {
            "/" => text("text/html; charset=utf-8", include_str!("page/index.html")),
            "/page.js" => text(SCRIPT, include_str!("page/page.js")),
            "/draw.js" => text(SCRIPT, include_str!("page/draw.js")),
            "/curves.js" => text(SCRIPT, include_str!("page/curves.js")),
            "/page.css" => text("text/css; charset=utf-8", include_str!("page/page.css")),
            "/favicon.ico" => Ok(Answer::new("image/x-icon", Vec::new())),
            "/api/runs" => self.list(),
            "/api/states" => self.states(request),
            "/api/map" => self.map(request),
            "/api/distance" => self.distance(request),
            "/api/path" => self.path(request),
            "/api/curves" => self.curves(request),
            "/api/episode" => self.episode(request),
            _ => Err(Refusal(404, "there is no such page".to_owned())),
        };
        found.unwrap_or_else(|Refusal(status, reason)| Answer::refusal(status, &reason))
    }

    fn list(&mut self) -> Found {
        let all = (0..self.folders.len()).map(|index| {
            let folder = self.folders[index].path().to_owned();
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match self.load(index) {
                Ok(loaded) => {
                    let model = &loaded.model;
                    json!({
                        "name": name,
                        "ready": true,
                        "method": model.settings().method.method().title(),
                        "read_out": model.read_out().to_string(),
                        "warning": warning(model),
                        "width": model.dimensions().state(),
                        "states": loaded.places.states().len() / model.dimensions().state(),
                        "episodes": loaded.task.world.is_some(),
                        "walls": loaded.task.world.as_ref().map(|world| world.walls()),
                        "composed": model.roads().is_some() || loaded.map.is_some(),
                        "nodes": loaded.map.as_ref().map(|map| map.nodes()),
                        "links": loaded.map.as_ref().map(links),
                        "trust": loaded.map.as_ref().and_then(map_in_words),
                        "version": version(loaded.modified),
                    })
                }
                Err(Refusal(_, reason)) => json!({ "name": name, "ready": false, "why": reason }),
            }
        });
        json_answer(&Value::Array(all.collect()))
    }

    /// Every state that is shown, as little-endian f32.
    fn states(&mut self, request: &Request) -> Found {
        let loaded = self.load_for(request)?;
        Ok(numbers(loaded.places.states()))
    }

    /// The distance of every state to `to` or from `from`, as little-endian f32.
    fn map(&mut self, request: &Request) -> Found {
        let loaded = self.load_for(request)?;
        let found = match (state(request, "to", loaded), state(request, "from", loaded)) {
            (Some(to), None) => loaded.places.to(&loaded.model, &to?)?,
            (None, Some(from)) => loaded.places.from(&loaded.model, &from?)?,
            _ => return Err(Refusal(400, "expected either `to` or `from`".to_owned())),
        };
        Ok(numbers(&found))
    }

    fn distance(&mut self, request: &Request) -> Found {
        let loaded = self.load_for(request)?;
        let (from, to) = ends(request, loaded)?;
        let model = &loaded.model;
        let distance = model.distances(&from, &to)?.first().copied().unwrap_or(f32::NAN);
        json_answer(&json!({
            "distance": finite(distance),
            "words": in_words(model, distance),
            "steps": in_json(model, distance),
        }))
    }

    fn path(&mut self, request: &Request) -> Found {
        let loaded = self.load_for(request)?;
        let (from, to) = ends(request, loaded)?;
        let model = &loaded.model;
        let path = match loaded.map.as_ref().filter(|_| model.roads().is_none()) {
            Some(map) => map.paths(model, &from, &to)?.remove(0),
            None => model.path(&from, &to)?,
        };
        json_answer(&json!({
            "arrived": path.arrived,
            "states": path.states,
            "distances": path.distances.iter().map(|&distance| finite(distance)).collect::<Vec<_>>(),
            "distance": finite(path.distances[0]),
            "words": in_words(model, path.distances[0]),
        }))
    }

    /// Losses and looks at held-out trajectories so far.
    fn curves(&mut self, request: &Request) -> Found {
        let index = self.index(request)?;
        let folder = &self.folders[index];
        let mut curves = serde_json::Map::new();
        let files = [folder.metrics_file(), folder.validations_file(), folder.evaluations_file()];
        for file in files.iter().filter(|file| file.exists()) {
            // A row that is being written may be cut short.
            let Ok(rows) = read_metrics(file) else { continue };
            let every = rows.len().div_ceil(MOST_ROWS).max(1);
            for row in rows.iter().step_by(every) {
                for (name, value) in &row.values {
                    let curve = curves.entry(name.clone()).or_insert_with(|| json!([]));
                    if let (Value::Array(points), true) = (curve, value.is_finite()) {
                        points.push(json!([row.step, value]));
                    }
                }
            }
        }
        json_answer(&Value::Object(curves))
    }

    /// An episode of the policy in its world.
    fn episode(&mut self, request: &Request) -> Found {
        let loaded = self.load_for(request)?;
        let seed = number(request, "seed")?.unwrap_or(0);
        let plan = Rollout { episodes: 1, seed, paths: 1 };
        let world = loaded.task.world()?;
        let found = match &loaded.map {
            Some(map) => loaded.model.evaluate_on(map, world, &plan)?,
            None => loaded.model.evaluate(world, &plan)?,
        };
        let outcome = found.outcomes.first();
        let outcome = outcome.ok_or_else(|| Refusal(400, "there is no episode".to_owned()))?;
        json_answer(&json!({
            "success": outcome.success,
            "steps": outcome.steps,
            "goal": [outcome.goal[0], outcome.goal[1]],
            "path": outcome.path,
        }))
    }

    fn index(&self, request: &Request) -> Result<usize, Refusal> {
        let count = self.folders.len();
        let index = number(request, "run")?.unwrap_or(0);
        usize::try_from(index)
            .ok()
            .filter(|&index| index < count)
            .ok_or_else(|| Refusal(404, format!("run: expected a number below {count}")))
    }

    fn load_for(&mut self, request: &Request) -> Result<&mut Loaded, Refusal> {
        let index = self.index(request)?;
        self.load(index)
    }

    /// The run's model, read again if it has changed.
    fn load(&mut self, index: usize) -> Result<&mut Loaded, Refusal> {
        let folder = &self.folders[index];
        let file = match folder.best_file() {
            best if best.exists() => best,
            _ => folder.model_file(),
        };
        let modified = modified(&file);
        let fresh = self
            .loaded
            .get(&index)
            .is_some_and(|loaded| loaded.file == file && loaded.modified == modified);
        if !fresh {
            let model = Model::load(folder, true)?;
            let task = match self.loaded.remove(&index) {
                Some(loaded) => loaded.task,
                None => model.settings().task.open()?,
            };
            let states = data_states(&model, &task, MOST_STATES).concat();
            let places = Places::new(&model, states)?;
            // A map that was made for an earlier model is none of this one.
            let kept = folder.map_file(file == folder.best_file());
            let map = RoadMap::read(&kept, &model).ok();
            self.loaded.insert(index, Loaded { file, modified, model, task, places, map });
        }
        self.loaded
            .get_mut(&index)
            .ok_or_else(|| Refusal(500, "the run could not be kept".to_owned()))
    }
}

/// The two nodes of every link, one after another.
fn links(map: &RoadMap) -> Vec<u32> {
    map.links().iter().flat_map(|&(from, to, _)| [from, to]).collect()
}

fn modified(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|file| file.modified()).ok()
}

/// A number that changes with the model.
fn version(modified: Option<SystemTime>) -> u64 {
    let since = modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_millis() as u64)
}

fn get<'a>(request: &'a Request, key: &str) -> Option<&'a str> {
    request.query.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

fn number(request: &Request, key: &str) -> Result<Option<u64>, Refusal> {
    let text = get(request, key);
    text.map(|text| {
        text.parse().map_err(|_| Refusal(400, format!("{key}: expected a number, found `{text}`")))
    })
    .transpose()
}

/// A state of the query: finite numbers, as many as the model's states have.
fn state(request: &Request, key: &str, loaded: &Loaded) -> Option<Result<Vec<f32>, Refusal>> {
    let width = loaded.model.dimensions().state();
    let refuse =
        || Refusal(400, format!("{key}: expected {width} finite numbers separated by commas"));
    get(request, key).map(|text| {
        let numbers: Result<Vec<f32>, _> = text.split(',').map(str::parse).collect();
        let numbers = numbers.map_err(|_| refuse())?;
        let fits = numbers.len() == width && numbers.iter().all(|number| number.is_finite());
        if fits { Ok(numbers) } else { Err(refuse()) }
    })
}

fn ends(request: &Request, loaded: &Loaded) -> Result<(Vec<f32>, Vec<f32>), Refusal> {
    match (state(request, "from", loaded), state(request, "to", loaded)) {
        (Some(from), Some(to)) => Ok((from?, to?)),
        _ => Err(Refusal(400, "expected `from` and `to`".to_owned())),
    }
}

fn finite(number: f32) -> Value {
    if number.is_finite() { json!(number) } else { Value::Null }
}

fn numbers(values: &[f32]) -> Answer {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Answer::new("application/octet-stream", bytes)
}

fn json_answer(value: &Value) -> Found {
    Ok(Answer::new("application/json", value.to_string()))
}
