//! Settings of a run from a preset, a TOML file and flags, later ones overriding earlier ones.

mod plan;
mod set;
mod table;
mod task;

use std::path::PathBuf;

use anyhow::{Context, bail};
use cm_train::{Method, MethodSettings, PlanSettings, RunSettings};
use toml::{Table, Value};

pub(crate) use self::plan::PlanArguments;
pub(crate) use self::set::SetArguments;
use self::table::{merge, parse, parse_pair, parse_value, set as set_key};
pub(crate) use self::task::environments;

/// What a run is made of on the command line.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct ConfigArguments {
    /// Train in this environment, such as pointmaze; they are listed below.
    #[arg(long)]
    pub(crate) env: Option<String>,
    /// Train on these trajectories: CSV, npz, safetensors, HDF5 or cmdata.
    #[arg(long)]
    pub(crate) data: Option<PathBuf>,
    /// cmd1, cmd2, crl, qrl, q-learning, gcbc, iql, tmd, gcivl, gciql or hiql; cmd1 unless the
    /// settings say otherwise.
    #[arg(long)]
    pub(crate) method: Option<Method>,
    /// Begin with the method's settings of that name instead of the environment's: paper, code,
    /// contrastive-rl, plane, ogbench, original, antmaze, released, revised, as far as the method
    /// has them.
    #[arg(long)]
    pub(crate) preset: Option<String>,
    /// TOML file of settings, such as a run's config.toml; what it leaves out has its default.
    #[arg(long)]
    pub(crate) config: Option<PathBuf>,
    /// Seed of weights, batches and noise.
    #[arg(long)]
    seed: Option<u64>,
    /// Training steps.
    #[arg(long)]
    steps: Option<u64>,
    /// Rows of a batch.
    #[arg(long)]
    batch: Option<u64>,
    /// Discount of the goals' distribution.
    #[arg(long)]
    gamma: Option<f64>,
    /// Episodes of an evaluation.
    #[arg(long)]
    episodes: Option<u64>,
    /// Also evaluate the policy on a road map over the learned distance; `--set plan.nodes=500` and
    /// other keys of `[plan]` say how it is made.
    #[arg(long)]
    plan: bool,
    /// Any other setting by its place in the TOML file, such as `method.cmd1.twin=false`; `none`
    /// switches off what is optional.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl ConfigArguments {
    /// The settings, every one of them.
    pub(crate) fn settings(&self) -> anyhow::Result<RunSettings> {
        let mut given = match &self.config {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("{}: could not be read", path.display()))?;
                let table: Table = toml::from_str(&text)
                    .with_context(|| format!("{}: expected TOML", path.display()))?;
                table
            }
            None => Table::new(),
        };
        let named = |error: anyhow::Error| match &self.config {
            Some(path) => error.context(path.display().to_string()),
            None => error,
        };
        let method = self.method(&given).map_err(named)?;
        let task = task::task(self.env.as_deref(), self.data.as_deref(), &given).map_err(named)?;
        given.remove("task");
        let mut preset = task.preset(method);
        if let Some(name) = &self.preset {
            preset.method = MethodSettings::preset(method, name)?;
        }
        // Learning rates that fall do so over the run, unless the file or the flags say otherwise.
        let in_file = given.get("steps").and_then(Value::as_integer);
        let in_file = in_file.and_then(|steps| u64::try_from(steps).ok());
        preset.method.set_decay_steps(self.steps.or(in_file).unwrap_or(preset.steps));
        let preset = Table::try_from(preset)?;
        let mut table = merge(&preset, given, &|table| parse::<RunSettings>(&table).is_ok());
        // The file is checked by itself first, so that errors tell it from the flags.
        read(&table).map_err(named)?;
        self.override_with_flags(&mut table)?;
        read(&table)
    }

    fn method(&self, given: &Table) -> anyhow::Result<Method> {
        let in_file = given.get("method").and_then(Value::as_table);
        Ok(match (self.method, in_file.and_then(|table| table.keys().next())) {
            (Some(method), Some(name)) if method.key() != name => {
                bail!("--method {method} and the settings' [method.{name}] exclude each other")
            }
            (Some(method), _) => method,
            (None, Some(name)) => name.parse()?,
            (None, None) => Method::Cmd1,
        })
    }

    fn override_with_flags(&self, table: &mut Table) -> anyhow::Result<()> {
        let whole = |number: u64| -> anyhow::Result<Value> {
            Ok(Value::Integer(i64::try_from(number).context("expected a smaller number")?))
        };
        if self.plan {
            table.entry("plan").or_insert(Value::Table(Table::try_from(PlanSettings::default())?));
        }
        let mut set = |key: &str, value: Value| set_key(table, key, value);
        for (key, number) in [
            ("seed", self.seed),
            ("steps", self.steps),
            ("batch", self.batch),
            ("evaluation.episodes", self.episodes),
        ] {
            if let Some(number) = number {
                set(key, whole(number)?)?;
            }
        }
        if let Some(gamma) = self.gamma {
            set("goals.gamma", Value::Float(gamma))?;
        }
        for setting in &self.set {
            let (key, value) = parse_pair("--set", setting)?;
            set(key, parse_value(value))?;
        }
        Ok(())
    }
}

/// The settings with other values under these dotted keys.
pub(crate) fn with_keys(
    settings: &RunSettings,
    keys: &[(String, Value)],
) -> anyhow::Result<RunSettings> {
    let mut table = Table::try_from(settings)?;
    keys.iter().try_for_each(|(key, value)| set_key(&mut table, key, value.clone()))?;
    read(&table)
}

fn read(table: &Table) -> anyhow::Result<RunSettings> {
    let settings: RunSettings = parse(table)?;
    settings.check()?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use cm_nn::Decay;
    use cm_train::{AntMazeTask, PointMazeTask};

    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        config: ConfigArguments,
    }

    fn settings(arguments: &[&str]) -> anyhow::Result<RunSettings> {
        let program = Program::try_parse_from([&["cm"], arguments].concat())?;
        program.config.settings()
    }

    #[test]
    fn flags_override_the_file_and_the_file_overrides_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings.toml");
        std::fs::write(&file, "steps = 70\nbatch = 32\n[method.cmd2]\nmargin = 0.5\n[task.point-maze.world]\nstates = 900\n").unwrap();
        let file = file.to_str().unwrap();
        let found =
            settings(&["--config", file, "--steps", "9", "--set", "method.cmd2.initial_lambda=2"])
                .unwrap();
        let mut wanted = RunSettings::plane(Method::Cmd2);
        (wanted.steps, wanted.batch) = (9, 32);
        let cm_train::MethodSettings::Cmd2(cmd2) = &mut wanted.method else { unreachable!() };
        (cmd2.margin, cmd2.initial_lambda) = (0.5, 2.0);
        let mut task = PointMazeTask::default();
        task.world.states = 900;
        wanted.task = task.into();
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_is_printed_can_be_read_back() {
        for method in Method::ALL {
            let method = ["--method", method.key()];
            for task in [["--env", "pointmaze"], ["--data", "walks.csv"]] {
                let printed = settings(&[method, task].concat()).unwrap();
                assert_eq!(read_back(&printed), printed);
            }
        }
    }

    #[test]
    fn learning_rates_fall_over_the_run_unless_told_otherwise() {
        let decay = |further: &[&str]| {
            let start = ["--env", "pointmaze", "--method", "qrl", "--preset", "original"];
            let found = settings(&[&start, further].concat()).unwrap();
            assert_eq!(read_back(&found), found);
            let MethodSettings::Qrl(qrl) = found.method else { unreachable!() };
            (qrl.adam.decay, qrl.actor.adam.decay)
        };
        let cosine = |steps| Decay::Cosine { steps, to: 0.0 };
        assert_eq!(decay(&["--steps", "900"]), (cosine(900), cosine(900)));
        let set = ["--steps", "900", "--set", "method.qrl.adam.decay.cosine.steps=70"];
        assert_eq!(decay(&set), (cosine(70), cosine(900)));
        let none = ["--steps", "900", "--set", "method.qrl.adam.decay=none"];
        assert_eq!(decay(&none), (Decay::None, cosine(900)));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings.toml");
        std::fs::write(&file, "steps = 70\n").unwrap();
        assert_eq!(decay(&["--config", file.to_str().unwrap()]), (cosine(70), cosine(70)));
    }

    #[test]
    fn every_preset_of_the_ant_maze_can_be_read_back() {
        for method in Method::ALL {
            let (task, file) = ("antmaze-umaze-v2".to_owned(), "umaze.cmdata".into());
            let whole = RunSettings::ant_maze(method, AntMazeTask { task, file, scale: true });
            assert_eq!(read_back(&whole), whole);
            let small = RunSettings { method: MethodSettings::ant_maze_small(method), ..whole };
            assert_eq!(read_back(&small), small);
        }
    }

    /// Every choice of a setting over every other.
    #[test]
    fn a_choice_in_the_file_replaces_the_preset_s() {
        let heads =
            ["\"max\"", "{ mrn = { components = 2 } }", "{ iqe = { groups = 8 } }"].map(|head| {
                let folder = tempfile::tempdir().unwrap();
                let file = folder.path().join("settings.toml");
                let text = format!(
                    "[task.point-maze]\n[method.qrl.quasimetric]\nfeatures = 64\nhead = {head}\n"
                );
                std::fs::write(&file, text).unwrap();
                settings(&["--config", file.to_str().unwrap()]).unwrap()
            });
        for found in &heads {
            assert_eq!(read_back(found), *found);
        }
        let [max, mrn, iqe] = heads.map(|settings| settings.to_toml());
        assert!(max.contains("head = \"max\""), "{max}");
        assert!(mrn.contains("quasimetric.head.mrn]") && !mrn.contains("iqe"), "{mrn}");
        assert!(iqe.contains("quasimetric.head.iqe]") && !iqe.contains("mrn"), "{iqe}");
    }

    #[test]
    fn what_is_optional_can_be_switched_off() {
        let clip = "method.gcbc.adam.clip";
        let own = ["--data", "walks.csv", "--method", "gcbc"];
        let with = |setting: &str| settings(&[&own[..], &["--set", setting]].concat());
        let (on, off) = (settings(&own).unwrap(), with(&format!("{clip}=none")).unwrap());
        assert!(on.to_toml().contains("clip = 1.0") && off.to_toml().contains("clip = \"none\""));
        assert_eq!(read_back(&off), off);
        let message = format!("{:#}", with(&format!("{clip}=never")).unwrap_err());
        assert!(message.contains("clip") && message.contains("\"none\""), "{message}");
    }

    #[test]
    fn what_files_leave_out_is_switched_off_by_none() {
        let own = ["--data", "walks.csv", "--method", "cmd1", "--plan", "--set", "plan.link=2.0"];
        let with = |set: &[&str]| settings(&[&own[..], set].concat()).unwrap();
        let goals = ["--set", "goals.actor.random=0.5"];
        let actor = ["--set", "goals.actor={random=0.0}"];
        let on = with(&[&actor[..], &goals[..]].concat());
        assert_eq!(on.goals.actor.unwrap().random, 0.5);
        assert_eq!(on.plan.unwrap().link, Some(2.0));
        let off = [&actor[..], &["--set", "goals.actor=none", "--set", "plan.link=none"]].concat();
        let off = with(&off);
        assert_eq!((off.goals.actor, off.plan.unwrap().link), (None, None));
        assert_eq!(with(&["--set", "plan=none"]).plan, None);
        assert_eq!(read_back(&off), off);
    }

    /// The settings that the file of some gives.
    fn read_back(printed: &RunSettings) -> RunSettings {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings.toml");
        std::fs::write(&file, printed.to_toml()).unwrap();
        settings(&["--config", file.to_str().unwrap()]).unwrap()
    }

    #[test]
    fn refusals_name_the_key() {
        let message = |arguments: &[&str]| format!("{:#}", settings(arguments).unwrap_err());
        let set = |setting: &str| message(&["--env", "pointmaze", "--set", setting]);
        assert!(
            set("method.cmd1.twins=true").contains("twins"),
            "{}",
            set("method.cmd1.twins=true")
        );
        assert!(set("metod.cmd1.twin=true").contains("metod"));
        assert!(set("steps=soon").contains("steps"));
        assert!(set("steps=0").contains("steps: expected at least 1"));
        assert!(set("twin").contains("KEY=VALUE"));
        let old =
            message(&["--env", "pointmaze", "--method", "cmd2", "--set", "method.cmd2.dual=adam"]);
        assert!(old.contains("[method.cmd2] dual = \"adam\": expected a table"), "{old}");
        assert!(message(&[]).contains("--data"));
        assert!(message(&["--config", "nowhere.toml"]).contains("nowhere.toml"));
    }
}
