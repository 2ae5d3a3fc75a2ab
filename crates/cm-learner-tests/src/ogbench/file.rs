//! Files that hold one update of a learner of OGBench or of the TMD release.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cm_learner::{ActorGoals, Dimensions, Transitions};
use cm_nn::{Backend, Var};
use safetensors::SafeTensors;
use serde_json::Value;

use super::names::Theirs;

pub(super) struct File {
    pub(super) name: String,
    config: Value,
    losses: Value,
    tensors: BTreeMap<String, Tensor>,
}

struct Tensor {
    shape: Vec<usize>,
    values: Vec<f32>,
}

/// Every file of a learner in the folder `ogbench` of the fixtures; others lie there too.
pub(super) fn files() -> Vec<File> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/ogbench");
    let given = std::env::var_os("CM_FIXTURES").map(|folder| PathBuf::from(folder).join("ogbench"));
    let folder = given.filter(|folder| folder.is_dir()).unwrap_or(own);
    let entries = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("fixtures {}: {error}", folder.display()));
    let mut paths = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "safetensors"))
        .collect::<Vec<_>>();
    paths.sort();
    paths.iter().filter_map(|path| File::read(path)).collect()
}

impl File {
    /// None if the file is not of a learner.
    fn read(path: &Path) -> Option<Self> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let metadata = header.metadata().clone()?;
        let json = |key: &str| serde_json::from_str::<Value>(metadata.get(key)?).ok();
        let (config, losses) = (json("config")?, json("losses")?);
        config.get("agent_name")?;
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = tensors.iter().map(|(name, view)| {
            let values = view.data().chunks_exact(4);
            let values = values.map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
            let tensor = Tensor { shape: view.shape().to_vec(), values: values.collect() };
            (name.to_owned(), tensor)
        });
        Some(Self { name, config, losses, tensors: tensors.collect() })
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.config.get(key).is_some()
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        self.config[key].as_bool().unwrap_or_else(|| panic!("{}: {key}", self.name))
    }

    pub(super) fn number(&self, key: &str) -> f32 {
        self.config[key].as_f64().unwrap_or_else(|| panic!("{}: {key}", self.name)) as f32
    }

    pub(super) fn size(&self, key: &str) -> usize {
        self.config[key].as_u64().unwrap_or_else(|| panic!("{}: {key}", self.name)) as usize
    }

    pub(super) fn sizes(&self, key: &str) -> Vec<usize> {
        let sizes = self.config[key].as_array().unwrap_or_else(|| panic!("{}: {key}", self.name));
        sizes.iter().map(|size| size.as_u64().unwrap() as usize).collect()
    }

    pub(super) fn text(&self, key: &str) -> &str {
        self.config[key].as_str().unwrap_or_else(|| panic!("{}: {key}", self.name))
    }

    pub(super) fn is_null(&self, key: &str) -> bool {
        self.config[key].is_null()
    }

    /// The sum of these numbers that their learner reports.
    pub(super) fn loss(&self, keys: &[&str]) -> f64 {
        let each = keys
            .iter()
            .map(|key| self.losses[key].as_f64().unwrap_or_else(|| panic!("{}: {key}", self.name)));
        each.sum()
    }

    pub(super) fn dimensions(&self) -> Dimensions {
        let columns = |name: &str| self.tensor(name).shape[1];
        let (state, action) = (columns("batch/observations"), columns("batch/actions"));
        Dimensions::new(state, action, 0..state).unwrap()
    }

    pub(super) fn batch<B: Backend>(&self, backend: &B) -> Transitions<B> {
        let var = |name: &str| {
            let Tensor { shape, values } = self.tensor(&format!("batch/{name}"));
            let shape = [shape[0], shape.get(1).copied().unwrap_or(1)];
            Var::new(backend, shape, values.clone()).unwrap()
        };
        let [goals, low, high] = match self.tensors.contains_key("batch/high_actor_goals") {
            true => ["high_actor_goals", "low_actor_goals", "high_actor_targets"].map(Some),
            false => [Some("actor_goals"), None, None],
        };
        let actor_goals = [goals, low, high].into_iter().flatten().map(var).collect();
        let (masks, rewards) = (var("masks"), var("rewards"));
        let reached = if self.flag("gc_negative") { 0.0 } else { 1.0 };
        let consistent = masks
            .to_vec()
            .unwrap()
            .iter()
            .zip(rewards.to_vec().unwrap())
            .all(|(&mask, reward)| reward == reached - mask);
        assert!(consistent, "{}: rewards that are not those of the masks", self.name);
        Transitions {
            state: var("observations"),
            action: var("actions"),
            next_state: var("next_observations"),
            goal: var("value_goals"),
            // Their learners know neither: a mask is 0 where the state is its goal.
            goal_action: var("actions"),
            steps_to_goal: masks,
            actor_goals: ActorGoals::from_states(actor_goals).unwrap(),
        }
    }

    /// What is stored of ours under `kind`; none if there is nothing.
    pub(super) fn of(&self, kind: &str, theirs: &Theirs) -> Option<Vec<f32>> {
        let Tensor { shape, values } = self.tensors.get(&format!("{kind}/{}", theirs.name))?;
        let (shape, values) = match theirs.member {
            Some(member) => {
                let length = values.len() / shape[0];
                (&shape[1..], &values[member * length..(member + 1) * length])
            }
            None => (&shape[..], &values[..]),
        };
        let columns = shape.last().copied().unwrap_or(1);
        Some(theirs.convert(values, columns))
    }

    /// A whole tensor; none if it is empty or missing.
    pub(super) fn output(&self, name: &str) -> Option<&[f32]> {
        let values = &self.tensors.get(name)?.values;
        (!values.is_empty()).then_some(values)
    }

    /// Every name under `kind`.
    pub(super) fn names(&self, kind: &str) -> Vec<String> {
        let prefix = format!("{kind}/");
        self.tensors
            .keys()
            .filter_map(|name| Some(name.strip_prefix(&prefix)?.to_owned()))
            .collect()
    }

    fn tensor(&self, name: &str) -> &Tensor {
        self.tensors.get(name).unwrap_or_else(|| panic!("{}: no tensor {name}", self.name))
    }
}
