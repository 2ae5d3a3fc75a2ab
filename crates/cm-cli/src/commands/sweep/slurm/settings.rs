//! What a plan and the flags say of Slurm.

use anyhow::bail;
use cm_train::Device;
use serde::Deserialize;

/// The table `[slurm]` of a plan. What is left out is the cluster's default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SlurmSettings {
    /// Partition (queue).
    pub(crate) partition: Option<String>,
    /// Account that is charged.
    pub(crate) account: Option<String>,
    /// Time limit of a task, as `sbatch --time` takes it.
    pub(crate) time: Option<String>,
    /// GPUs of a task; 1 if the plan's device is one.
    pub(crate) gpus: Option<u32>,
    /// Processors of a task; 1 if not given.
    pub(crate) cpus: Option<u32>,
    /// Memory of a task, such as `8G`.
    pub(crate) memory: Option<String>,
    /// Tasks that may run at the same time; all if not given.
    pub(crate) at_once: Option<u32>,
    /// Runs in one task: on a GPU seeds that are trained together (8 if not given), on processors
    /// runs one after another (1 if not given).
    pub(crate) pack: Option<usize>,
    /// Seconds before the time limit at which a task writes its checkpoint and goes back to the
    /// queue; 120 if not given.
    pub(crate) warning: Option<u32>,
    /// Lines of shell before `cm`, such as `module load cuda`.
    pub(crate) setup: Vec<String>,
    /// More arguments of `sbatch`, such as `--constraint=a100`.
    pub(crate) arguments: Vec<String>,
}

/// Flags that override the plan.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SlurmFlags {
    /// Slurm: partition (queue).
    #[arg(long)]
    partition: Option<String>,
    /// Slurm: account that is charged.
    #[arg(long)]
    account: Option<String>,
    /// Slurm: time limit of a task, such as 4:00:00.
    #[arg(long)]
    time: Option<String>,
    /// Slurm: GPUs of a task.
    #[arg(long)]
    gpus: Option<u32>,
    /// Slurm: processors of a task.
    #[arg(long)]
    cpus: Option<u32>,
    /// Slurm: memory of a task, such as 8G.
    #[arg(long)]
    memory: Option<String>,
    /// Slurm: tasks that may run at the same time.
    #[arg(long)]
    at_once: Option<u32>,
    /// Slurm: one more argument of sbatch, such as --sbatch=--constraint=a100.
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    sbatch: Vec<String>,
}

impl SlurmFlags {
    pub(crate) fn apply(&self, settings: &mut SlurmSettings) {
        fn over<T: Clone>(setting: &mut Option<T>, flag: &Option<T>) {
            if flag.is_some() {
                setting.clone_from(flag);
            }
        }
        over(&mut settings.partition, &self.partition);
        over(&mut settings.account, &self.account);
        over(&mut settings.time, &self.time);
        over(&mut settings.gpus, &self.gpus);
        over(&mut settings.cpus, &self.cpus);
        over(&mut settings.memory, &self.memory);
        over(&mut settings.at_once, &self.at_once);
        settings.arguments.extend(self.sbatch.iter().cloned());
    }
}

impl SlurmSettings {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let zero = [
            ("at_once", self.at_once == Some(0)),
            ("cpus", self.cpus == Some(0)),
            ("pack", self.pack == Some(0)),
            ("warning", self.warning == Some(0)),
        ];
        if let Some((key, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
            bail!("slurm.{key}: expected at least 1, found 0");
        }
        if let Some(time) = &self.time {
            let Some(limit) = seconds(time) else {
                bail!("slurm.time: expected a limit such as 4:00:00, found `{time}`");
            };
            // Else Slurm would warn a task as soon as it begins.
            if limit <= u64::from(self.warning()) {
                bail!(
                    "slurm.time: expected more than slurm.warning ({} s), found {limit} s",
                    self.warning()
                );
            }
        }
        Ok(())
    }

    pub(super) fn warning(&self) -> u32 {
        self.warning.unwrap_or(120)
    }

    pub(super) fn pack(&self, device: Device) -> usize {
        self.pack.unwrap_or(if device == Device::Cpu { 1 } else { 8 })
    }

    /// Arguments of `sbatch` for the tasks.
    pub(super) fn of_tasks(&self, device: Device) -> Vec<String> {
        let gpus = self.gpus.or((device != Device::Cpu).then_some(1)).filter(|&gpus| gpus > 0);
        let mut all = self.of_site();
        all.push(format!("--cpus-per-task={}", self.cpus.unwrap_or(1)));
        all.extend(self.time.as_ref().map(|time| format!("--time={time}")));
        all.extend(gpus.map(|gpus| format!("--gpus={gpus}")));
        all.extend(self.memory.as_ref().map(|memory| format!("--mem={memory}")));
        all.extend(self.arguments.iter().cloned());
        all
    }

    /// Arguments of `sbatch` for every job, the report's too.
    pub(super) fn of_site(&self) -> Vec<String> {
        let partition = self.partition.as_ref().map(|name| format!("--partition={name}"));
        let account = self.account.as_ref().map(|name| format!("--account={name}"));
        partition.into_iter().chain(account).collect()
    }
}

/// Slurm's forms of a time limit: `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`.
fn seconds(text: &str) -> Option<u64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (days.parse::<u64>().ok()?, rest),
        None => (0, text),
    };
    let parts = rest.split(':').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<_>>>()?;
    let [hours, minutes, seconds] = match (text.contains('-'), parts.as_slice()) {
        (false, &[minutes]) => [0, minutes, 0],
        (false, &[minutes, seconds]) => [0, minutes, seconds],
        (true, &[hours]) => [hours, 0, 0],
        (true, &[hours, minutes]) => [hours, minutes, 0],
        (_, &[hours, minutes, seconds]) => [hours, minutes, seconds],
        _ => return None,
    };
    days.checked_mul(24)?
        .checked_add(hours)?
        .checked_mul(60)?
        .checked_add(minutes)?
        .checked_mul(60)?
        .checked_add(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limits_are_read_as_slurm_reads_them() {
        let cases = [
            ("90", 5_400),
            ("2:30", 150),
            ("1:00:00", 3_600),
            ("1-0", 86_400),
            ("1-1:30", 91_800),
            ("2-0:0:1", 172_801),
        ];
        for (text, wanted) in cases {
            assert_eq!(seconds(text), Some(wanted), "{text}");
        }
        for bad in ["", "soon", "1:2:3:4", "-1", "1-", "99999999999999999999-0"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
        let short = SlurmSettings { time: Some("2:00".into()), ..Default::default() };
        assert!(short.check().unwrap_err().to_string().contains("slurm.warning"));
        let fits = SlurmSettings { warning: Some(30), ..short };
        fits.check().unwrap();
    }
}
