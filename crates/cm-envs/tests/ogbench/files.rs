//! The files of numbers made by OGBench's code.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use cm_envs::mujoco::{Model, Mujoco};
use cm_envs::ogbench::{Agent, Maze, mjcf};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde_json::Value;

/// Every file with this ending, in order.
fn files(ending: &str) -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ogbench");
    let named = std::env::var_os("CM_FIXTURES").map(|folder| Path::new(&folder).join("ogbench"));
    let folder = named.filter(|folder| folder.is_dir()).unwrap_or(own);
    let entries = std::fs::read_dir(&folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == ending));
    files.sort();
    files
}

/// The JSON files that have a key; at least one.
pub(crate) fn json_files(key: &str) -> Vec<(String, Value)> {
    let read = |file: &PathBuf| {
        let content: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        (file.display().to_string(), content)
    };
    let mut found: Vec<_> = files("json").iter().map(read).collect();
    found.retain(|(_, content)| content.get(key).is_some());
    assert!(!found.is_empty(), "no file with `{key}`");
    found
}

/// A file of tensors.
pub(crate) struct Tensors {
    pub(crate) name: String,
    pub(crate) metadata: BTreeMap<String, String>,
    bytes: Vec<u8>,
}

impl Tensors {
    /// The files that pass; at least one.
    pub(crate) fn files(wanted: impl Fn(&Self) -> bool) -> Vec<Self> {
        let read = |file: &PathBuf| {
            let bytes = std::fs::read(file).unwrap();
            let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
            let metadata = header.metadata().clone().unwrap_or_default().into_iter().collect();
            Self { name: file.display().to_string(), metadata, bytes }
        };
        let mut found: Vec<_> = files("safetensors").iter().map(read).collect();
        found.retain(wanted);
        assert!(!found.is_empty(), "no such file");
        found
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.tensors().tensor(name).is_ok()
    }

    /// Numbers of 64 bits.
    pub(crate) fn doubles(&self, name: &str) -> Vec<f64> {
        self.numbers(name, f64::from_le_bytes)
    }

    /// Numbers of 32 bits.
    pub(crate) fn floats(&self, name: &str) -> Vec<f32> {
        self.numbers(name, f32::from_le_bytes)
    }

    /// Bytes.
    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        self.numbers(name, |[byte]| byte)
    }

    fn numbers<T, const N: usize>(&self, name: &str, read: impl Fn([u8; N]) -> T) -> Vec<T> {
        let tensors = self.tensors();
        let tensor: TensorView<'_> = tensors.tensor(name).unwrap();
        assert_eq!(tensor.dtype().bitsize(), 8 * N, "{}: {name}", self.name);
        tensor.data().chunks_exact(N).map(|bytes| read(bytes.try_into().unwrap())).collect()
    }

    fn tensors(&self) -> SafeTensors<'_> {
        SafeTensors::deserialize(&self.bytes).unwrap()
    }
}

/// The agent and the maze of a name such as `antmaze-giant-v0`; none, said aloud, of a humanoid.
pub(crate) fn world(name: &str, file: &str) -> Option<(Agent, Maze)> {
    let mut parts = name.split('-');
    let (agent, maze) = (parts.next().unwrap(), parts.next().unwrap());
    if agent.starts_with("humanoid") {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED {file}: there is no humanoid here, whose data needs an expert of 40 M steps"
        );
        return None;
    }
    let agent = Agent::ALL.into_iter().find(|found| found.name() == agent);
    let maze = Maze::ALL.into_iter().find(|found| found.name() == maze);
    Some((agent.unwrap_or_else(|| panic!("{file}: {name}")), maze.unwrap()))
}

/// The model for a file that was made with a version of MuJoCo: the margins of floor and walls,
/// which OGBench has at 0.01, count differently since 3.5 (see `cm_envs::ogbench`). None, said
/// aloud, where this MuJoCo cannot do as that one did.
pub(crate) fn model_as_of(
    mujoco: &Mujoco,
    version: &str,
    file: &str,
    agent: Agent,
    maze: Maze,
) -> Option<std::sync::Arc<Model>> {
    let number = |version: &str| -> Vec<u32> {
        version.split('.').map(|part| part.parse().unwrap()).collect()
    };
    let adds = |version: &str| number(version) >= vec![3, 5];
    let mut xml = mjcf(agent, maze);
    if agent == Agent::Ant && adds(version) {
        if !adds(&mujoco.version().to_string()) {
            let _ = writeln!(std::io::stderr(), "SKIPPED {file}: margins do not add up before 3.5");
            return None;
        }
        xml = xml.replace("margin=\"0\"", "margin=\"0.01\"");
    }
    Some(Model::from_xml(mujoco, &xml).unwrap())
}
