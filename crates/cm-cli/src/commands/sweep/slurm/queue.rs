//! What Slurm says of the tasks of job arrays.

use std::time::Duration;

use super::command::{call, is_forgotten};

const LIMIT: Duration = Duration::from_secs(30);

/// A task of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    /// The array's job.
    pub(super) job: u64,
    /// Its place in the array.
    pub(super) index: usize,
    /// As Slurm writes it: `RUNNING`.
    pub(super) state: String,
    /// The node it runs on, or why it waits or ended.
    pub(super) detail: String,
}

/// The tasks of `jobs` that are running or waiting.
pub(super) fn active(jobs: &[u64]) -> anyhow::Result<Vec<Task>> {
    let jobs = jobs.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let arguments = ["--noheader", "--array", "--format=%i|%T|%N|%r", "--jobs"];
    let mut arguments = arguments.map(str::to_owned).to_vec();
    arguments.push(jobs);
    match call("squeue", &arguments, LIMIT) {
        Ok(text) => Ok(text.lines().filter_map(parse_queue).collect()),
        Err(error) if is_forgotten(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// `17_3|RUNNING|node1|None`
fn parse_queue(line: &str) -> Option<Task> {
    let mut cells = line.trim().split('|');
    let (job, index) = parse_id(cells.next()?)?;
    let (state, node, reason) = (cells.next()?, cells.next()?, cells.next()?);
    let detail = if node.is_empty() { reason } else { node };
    Some(Task { job, index, state: state.to_owned(), detail: detail.to_owned() })
}

/// `17_3`; the report's job has no index, and is none of the array's.
fn parse_id(text: &str) -> Option<(u64, usize)> {
    let (job, index) = text.split_once('_')?;
    Some((job.parse().ok()?, index.parse().ok()?))
}

/// How tasks of `job` ended, from the accounting or, where there is none, from what the controller
/// still remembers. Nothing if neither answers: this is only for explanations.
pub(super) fn ended(job: u64) -> Vec<Task> {
    let job = job.to_string();
    let accounting =
        ["--parsable2", "--noheader", "--allocations", "--format=JobID,State,ExitCode"];
    let mut arguments = accounting.map(str::to_owned).to_vec();
    arguments.extend(["--jobs".to_owned(), job.clone()]);
    let found = call("sacct", &arguments, LIMIT).unwrap_or_default();
    let tasks = found.lines().filter_map(parse_accounting).collect::<Vec<_>>();
    if !tasks.is_empty() {
        return tasks;
    }
    let arguments = ["--oneliner", "show", "job"].map(str::to_owned).into_iter().chain([job]);
    let found = call("scontrol", &arguments.collect::<Vec<_>>(), LIMIT).unwrap_or_default();
    found.lines().filter_map(parse_control).collect()
}

/// `17_3|OUT_OF_MEMORY|0:125`, `17_4|CANCELLED by 1000|0:0`
fn parse_accounting(line: &str) -> Option<Task> {
    let mut cells = line.trim().split('|');
    let (job, index) = parse_id(cells.next()?)?;
    let state = cells.next()?.split(' ').next()?.to_owned();
    Some(Task { job, index, state, detail: format!("exit code {}", cells.next()?) })
}

/// `JobId=20 ArrayJobId=17 ArrayTaskId=3 JobName=x ... JobState=FAILED Reason=NonZeroExitCode ...
/// ExitCode=0:9 ...`
fn parse_control(line: &str) -> Option<Task> {
    let get = |key: &str| {
        line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    };
    Some(Task {
        job: get("ArrayJobId")?.parse().ok()?,
        index: get("ArrayTaskId")?.parse().ok()?,
        state: get("JobState")?.to_owned(),
        detail: format!("{}, exit code {}", get("Reason")?, get("ExitCode")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(job: u64, index: usize, state: &str, detail: &str) -> Option<Task> {
        Some(Task { job, index, state: state.to_owned(), detail: detail.to_owned() })
    }

    #[test]
    fn lines_of_slurm_s_commands_are_read() {
        assert_eq!(parse_queue("17_3|RUNNING|node1|None"), task(17, 3, "RUNNING", "node1"));
        let pending = parse_queue("17_4|PENDING||Resources\n");
        assert_eq!(pending, task(17, 4, "PENDING", "Resources"));
        assert_eq!(parse_queue("18|PENDING||Dependency"), None);
        assert_eq!(parse_queue(""), None);
        let killed = parse_accounting("17_3|OUT_OF_MEMORY|0:125");
        assert_eq!(killed, task(17, 3, "OUT_OF_MEMORY", "exit code 0:125"));
        let cancelled = parse_accounting("17_4|CANCELLED by 1000|0:0");
        assert_eq!(cancelled.unwrap().state, "CANCELLED");
        assert_eq!(parse_accounting("17_[5-9]|PENDING|0:0"), None);
        let line = "JobId=20 ArrayJobId=17 ArrayTaskId=3 JobName=x JobState=FAILED \
                    Reason=NonZeroExitCode Dependency=(null) Requeue=1 ExitCode=0:9";
        let found = parse_control(line);
        assert_eq!(found, task(17, 3, "FAILED", "NonZeroExitCode, exit code 0:9"));
        assert_eq!(parse_control("JobId=21 JobName=report JobState=PENDING"), None);
    }
}
