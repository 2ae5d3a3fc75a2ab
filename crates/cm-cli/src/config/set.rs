//! Further settings of the runs of a reproduction, from the command line.

use anyhow::bail;
use cm_train::{Method, RunSettings};
use toml::Value;

use super::table::{parse_pair, parse_value};
use super::with_keys;

/// What the commands with runs of several methods have options, or loops, of their own for.
const DECIDED: [&str; 4] = ["seed", "steps", "task", "plan"];

/// Settings for which there is no option.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct SetArguments {
    /// Any other setting by its place in a run's config.toml, such as
    /// `method.cmd1.actor.goals=own`, for all runs that have it; `none` switches off what is
    /// optional.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl SetArguments {
    /// `KEY=VALUE` taken apart. Keys of a method that is not among `methods` are refused.
    pub(crate) fn settings(&self, methods: &[Method]) -> anyhow::Result<Set> {
        let mut keys = Vec::new();
        for setting in &self.set {
            let (key, value) = parse_pair("--set", setting)?;
            let first = key.split('.').next().unwrap_or_default();
            if DECIDED.contains(&first) {
                bail!("--set {key}: `{first}` is decided by other options of this command");
            }
            if let Some(of) = of_method(key)
                && !methods.iter().any(|method| method.key() == of)
            {
                bail!("--set {key}: there are no runs of `{of}` here");
            }
            keys.push((key.to_owned(), parse_value(value)));
        }
        Ok(Set { keys })
    }
}

/// Settings by their keys.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    keys: Vec<(String, Value)>,
}

impl Set {
    /// The settings with those that are about their method, or about all.
    pub(crate) fn apply(&self, settings: &RunSettings) -> anyhow::Result<RunSettings> {
        let own = settings.method.method().key();
        let about = |key: &str| of_method(key).is_none_or(|of| of == own);
        let keys = self.keys.iter().filter(|(key, _)| about(key)).cloned().collect::<Vec<_>>();
        with_keys(settings, &keys)
    }
}

/// The key of the method that a setting is about.
fn of_method(key: &str) -> Option<&str> {
    key.strip_prefix("method.").map(|rest| rest.split('.').next().unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use cm_train::MethodSettings;

    use super::*;

    fn set(settings: &[&str], methods: &[Method]) -> anyhow::Result<Set> {
        let set = settings.iter().map(|&text| text.to_owned()).collect();
        SetArguments { set }.settings(methods)
    }

    #[test]
    fn a_method_s_settings_are_for_its_runs_alone_and_others_for_all() {
        let keys = ["method.cmd1.twin = true", "batch=7", "goals.gamma=0.5"];
        let set = set(&keys, &[Method::Cmd1, Method::Gcbc]).unwrap();
        let cmd1 = set.apply(&RunSettings::plane(Method::Cmd1)).unwrap();
        let gcbc = set.apply(&RunSettings::plane(Method::Gcbc)).unwrap();
        for settings in [&cmd1, &gcbc] {
            assert_eq!((settings.batch, settings.goals.gamma), (7, 0.5));
        }
        let MethodSettings::Cmd1(cmd1) = cmd1.method else { unreachable!() };
        assert!(cmd1.twin);
        assert_eq!(gcbc.method, RunSettings::plane(Method::Gcbc).method);
    }

    #[test]
    fn what_is_unknown_out_of_range_or_decided_elsewhere_is_refused_by_its_key() {
        let message = |setting: &str| {
            let applied = set(&[setting], &[Method::Cmd1])
                .and_then(|set| set.apply(&RunSettings::plane(Method::Cmd1)));
            format!("{:#}", applied.unwrap_err())
        };
        for (setting, wanted) in [
            ("twin", "KEY=VALUE"),
            ("method.cmd1.twins=true", "twins"),
            ("method.cmd2.margin=1", "no runs of `cmd2`"),
            ("method=cmd1", "method"),
            ("metod.cmd1.twin=true", "metod"),
            ("batch=0", "batch"),
            ("seed=3", "`seed` is decided"),
            ("task.point-maze.world.seed=3", "`task` is decided"),
        ] {
            let message = message(setting);
            assert!(message.contains(wanted), "{setting}: {message}");
        }
    }
}
