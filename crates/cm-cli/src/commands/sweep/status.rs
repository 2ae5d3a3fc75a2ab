//! `cm sweep status`: how far every run is, and where.

use std::time::Duration;

use serde_json::json;

use super::Sweep;
use super::engine::{Engine, Place};
use super::folder::{NoteState, now};
use super::local::Local;
use super::progress::{Progress, pace};
use super::runs::PlannedRun;
use super::slurm::Slurm;

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Running,
    Queued,
    Failed,
    /// Begun, and nobody trains it now.
    Stopped,
    Waiting,
    Done,
}

impl State {
    const ALL: [Self; 6] =
        [Self::Done, Self::Running, Self::Queued, Self::Stopped, Self::Waiting, Self::Failed];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Queued => "queued",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Waiting => "not begun",
            Self::Done => "done",
        }
    }
}

/// What there is to say of a run.
pub(super) struct RunStatus<'a> {
    pub(super) run: &'a PlannedRun,
    pub(super) state: State,
    pub(super) step: u64,
    pub(super) place: Option<String>,
    pub(super) error: Option<String>,
    /// Steps per second.
    pace: Option<f64>,
}

/// Every run, and what could not be found out.
pub(super) fn statuses(sweep: &Sweep) -> (Vec<RunStatus<'_>>, Option<String>) {
    let mut places = Local { workers: None }.places(sweep).unwrap_or_default();
    let trouble = match Slurm::new(&sweep.plan.slurm).places(sweep) {
        Ok(found) => {
            places.extend(found);
            None
        }
        Err(error) => {
            Some(format!("Slurm does not answer, so this is what the files say: {error:#}"))
        }
    };
    let mut all = sweep.runs.iter().map(|run| status(sweep, run, places.get(&run.name)));
    let mut all = all.by_ref().collect::<Vec<_>>();
    if trouble.is_none() {
        super::slurm::explain(sweep, &mut all);
    }
    (all, trouble)
}

fn status<'a>(sweep: &Sweep, run: &'a PlannedRun, place: Option<&Place>) -> RunStatus<'a> {
    let progress = Progress::of(run);
    let note = sweep.folder.note(&run.name);
    let failed = note.as_ref().is_some_and(|note| note.state == NoteState::Failed);
    let state = match place {
        _ if progress.finished() => State::Done,
        Some(place) if place.running => State::Running,
        Some(_) => State::Queued,
        None if failed || progress.error.is_some() => State::Failed,
        None if progress.checkpointed > 0 || note.is_some() => State::Stopped,
        None => State::Waiting,
    };
    let running = state == State::Running;
    let step =
        if running { progress.recorded.max(progress.checkpointed) } else { progress.checkpointed };
    let pace = pace(&sweep.folder, &run.name, &progress, now()).filter(|_| running);
    let error = progress.error.or_else(|| note.and_then(|note| note.error));
    let error = error.filter(|_| state != State::Done);
    RunStatus { run, state, step, place: place.map(|place| place.name.clone()), error, pace }
}

/// Prints the state of all runs, as JSON if asked to.
pub(super) fn print(sweep: &Sweep, as_json: bool) -> anyhow::Result<()> {
    let (all, trouble) = statuses(sweep);
    if let Some(trouble) = &trouble {
        eprintln!("warning: {trouble}");
    }
    if as_json {
        let runs: Vec<_> = all.iter().map(RunStatus::as_json).collect();
        let left = time_left(&all).map(|left| left.as_secs());
        let whole = json!({ "runs": runs, "seconds_left": left, "warning": trouble });
        println!("{}", serde_json::to_string_pretty(&whole)?);
        return Ok(());
    }
    println!("{}: {}", sweep.plan.out.display(), counts(&all));
    println!("{}", bar(&all));
    let width = all.iter().map(|status| status.run.name.len()).max().unwrap_or(0);
    let mut shown: Vec<_> =
        all.iter().filter(|status| !matches!(status.state, State::Done | State::Waiting)).collect();
    shown.sort_by_key(|status| status.state);
    for status in shown {
        let (name, steps) = (&status.run.name, status.run.job.settings.steps);
        let mut line =
            format!("{name:width$}  {:7}  step {}/{steps}", status.state.name(), status.step);
        if let Some(place) = &status.place {
            line += &format!("  {place}");
        }
        if let Some(pace) = status.pace {
            line +=
                &format!("  {} left", duration(steps.saturating_sub(status.step) as f64 / pace));
        }
        if let Some(error) = &status.error {
            line += &format!("  {error}");
        }
        println!("{line}");
    }
    Ok(())
}

/// `24 runs: 10 done, 4 running`
pub(super) fn counts(all: &[RunStatus<'_>]) -> String {
    let count = |state| all.iter().filter(|status| status.state == state).count();
    let parts = State::ALL.map(|state| (count(state), state.name()));
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts = parts.map(|(count, name)| format!("{count} {name}")).collect::<Vec<_>>();
    format!("{} runs: {}", all.len(), parts.join(", "))
}

fn bar(all: &[RunStatus<'_>]) -> String {
    const WIDTH: usize = 40;
    let steps = |status: &RunStatus<'_>| status.run.job.settings.steps;
    let total: u64 = all.iter().map(steps).sum();
    let done: u64 = all.iter().map(|status| status.step.min(steps(status))).sum();
    let share = done as f64 / total.max(1) as f64;
    let full = (share * WIDTH as f64) as usize;
    let left = match time_left(all) {
        Some(left) => format!(", about {} left", duration(left.as_secs_f64())),
        None => String::new(),
    };
    format!(
        "[{}{}] {:.1} % of {total} steps{left}",
        "#".repeat(full),
        "-".repeat(WIDTH - full),
        100.0 * share
    )
}

/// At the pace of the runs under way together; unknown if none has shown its pace yet.
fn time_left(all: &[RunStatus<'_>]) -> Option<Duration> {
    let pace: f64 = all.iter().filter_map(|status| status.pace).sum();
    let open = all.iter().filter(|status| !matches!(status.state, State::Done | State::Failed));
    let left: u64 = open.map(|s| s.run.job.settings.steps.saturating_sub(s.step)).sum();
    (pace > 0.0).then(|| Duration::from_secs_f64((left as f64 / pace).min(1e9)))
}

impl RunStatus<'_> {
    fn as_json(&self) -> serde_json::Value {
        json!({
            "name": self.run.name,
            "state": self.state.name(),
            "step": self.step,
            "steps": self.run.job.settings.steps,
            "place": self.place,
            "error": self.error,
        })
    }
}

/// Seconds as one reads them.
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3_600 => format!("{} min {:02} s", whole / 60, whole % 60),
        3_600..172_800 => format!("{} h {:02} min", whole / 3_600, whole % 3_600 / 60),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}
