//! Settings of a road map from the command line.

use cm_train::PlanSettings;
use toml::Table;

use super::{parse, parse_pair, parse_value};

/// Whether policies walk a road map, and how it is made.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct PlanArguments {
    /// Also let policies walk a road map over the learned distance: every figure without and with
    /// it.
    #[arg(long)]
    pub(crate) plan: bool,
    /// A setting of the road map, such as `nodes=500` or `steps=50`; the others are those of the
    /// run's `[plan]`, or their defaults.
    #[arg(long, value_name = "KEY=VALUE", requires = "plan")]
    plan_set: Vec<String>,
}

impl PlanArguments {
    /// None without `--plan`; `given` where the command line says nothing.
    pub(crate) fn settings(
        &self,
        given: Option<PlanSettings>,
    ) -> anyhow::Result<Option<PlanSettings>> {
        if !self.plan {
            return Ok(None);
        }
        let mut plan = Table::try_from(given.unwrap_or_default())?;
        for setting in &self.plan_set {
            let (key, value) = parse_pair("--plan-set", setting)?;
            match value {
                // Chosen by the data.
                "none" => _ = plan.remove(key),
                value => {
                    let value = match parse_value(value) {
                        toml::Value::Integer(whole) if ["link", "reach"].contains(&key) => {
                            toml::Value::Float(whole as f64)
                        }
                        value => value,
                    };
                    plan.insert(key.to_owned(), value);
                }
            }
        }
        #[derive(serde::Deserialize)]
        struct Settings {
            plan: PlanSettings,
        }
        let table = Table::from_iter([("plan".to_owned(), toml::Value::Table(plan))]);
        let settings: Settings = parse(&table)?;
        settings.plan.check()?;
        Ok(Some(settings.plan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(set: &[&str], given: Option<PlanSettings>) -> anyhow::Result<PlanSettings> {
        let plan_set = set.iter().map(|&text| text.to_owned()).collect();
        let found = PlanArguments { plan: true, plan_set }.settings(given)?;
        Ok(found.unwrap())
    }

    #[test]
    fn the_command_line_overrides_the_run() {
        let run = PlanSettings { nodes: 70, link: Some(2.0), ..Default::default() };
        let found = settings(&["steps = 9", "reach=4", "link=none"], Some(run)).unwrap();
        let wanted = PlanSettings { steps: 9, reach: Some(4.0), link: None, ..run };
        assert_eq!(found, wanted);
        assert_eq!(settings(&[], None).unwrap(), PlanSettings::default());
        assert_eq!(PlanArguments::default().settings(Some(run)).unwrap(), None);
    }

    #[test]
    fn what_is_unknown_or_out_of_range_is_refused() {
        let message = |set: &str| format!("{:#}", settings(&[set], None).unwrap_err());
        assert!(message("node=3").contains("node"), "{}", message("node=3"));
        assert!(message("nodes").contains("KEY=VALUE"));
        assert!(message("nodes=1").contains("plan.nodes"));
        assert!(message("link=-1").contains("plan.link"));
    }
}
