//! Progress of runs: bars on a terminal, a line for each evaluation elsewhere.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cm_train::{Event, JobEvent};
use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressStyle};

use crate::bars::Bars;

/// One bar for each run, and one for all of them if there are several.
pub(crate) struct Progress {
    screen: MultiProgress,
    bars: Vec<ProgressBar>,
    all: ProgressBar,
    names: Vec<String>,
    quiet: bool,
    terminal: bool,
    started: Instant,
    /// Steps of all runs that were done before.
    resumed: AtomicU64,
}

/// More bars than this would not fit a screen: then there is the one of all runs alone.
const MOST: usize = 24;
const ALL: &str = "all";

impl Progress {
    /// Bars for runs of these names; nothing at all if `quiet`.
    pub(crate) fn new(names: Vec<String>, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let screen = MultiProgress::new();
        let width = names.iter().map(String::len).max().unwrap_or(0);
        let style = ProgressStyle::with_template(
            "{prefix} {bar:30} {pos:>7}/{len} {per_sec:>12} {eta:>4} {msg}",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = |name: &String| {
            let one_of_many = names.len() > MOST && name != ALL;
            let bar = if quiet || !terminal || one_of_many {
                ProgressBar::hidden()
            } else {
                screen.add(ProgressBar::new(0))
            };
            bar.set_style(style.clone());
            bar.set_prefix(format!("{name:width$}"));
            bar
        };
        let bars: Vec<_> = names.iter().map(bar).collect();
        let total = bar(&ALL.to_owned());
        if bars.len() < 2 {
            screen.remove(&total);
        }
        Self {
            screen,
            bars,
            all: total,
            names,
            quiet,
            terminal,
            started: Instant::now(),
            resumed: AtomicU64::new(0),
        }
    }

    /// For work on data sets meanwhile.
    pub(crate) fn bars(&self) -> Bars {
        Bars::on(self.screen.clone())
    }

    /// Shows what happened in run `index`.
    pub(crate) fn event(&self, index: usize, event: &Event) {
        let bar = &self.bars[index];
        match event {
            Event::Started { step, steps } => {
                if self.all.length().unwrap_or(0) == 0 {
                    // Runs of one call have the same number of steps.
                    self.all.set_length(*steps * self.bars.len() as u64);
                }
                self.all.inc(*step);
                self.resumed.fetch_add(*step, Ordering::Relaxed);
                bar.set_length(*steps);
                bar.set_position(*step);
                bar.reset_eta();
            }
            Event::Recorded { step } => {
                self.all.inc(step.saturating_sub(bar.position()));
                bar.set_position(*step);
            }
            Event::Validated { step, found } => {
                let (loss, accuracy) = (found.held_out.loss, 100.0 * found.held_out.accuracy);
                bar.set_message(format!("held-out loss {loss:.3}"));
                if !self.quiet && !self.terminal {
                    let seconds = self.started.elapsed().as_secs_f64();
                    let (name, steps) = (&self.names[index], bar.length().unwrap_or(*step));
                    let left =
                        seconds / (*step).max(1) as f64 * (steps.saturating_sub(*step)) as f64;
                    eprintln!(
                        "{seconds:8.1} s  {name:12} step {step:>7}  held-out loss {loss:.3}, \
                         {accuracy:.1} % right; at most {left:.0} s left"
                    );
                }
            }
            Event::Evaluated { step, success, planned } => {
                let planned = match planned {
                    Some(planned) => format!(", planned {:5.1} %", 100.0 * planned),
                    None => String::new(),
                };
                bar.set_message(format!("success {:.1} %{planned}", 100.0 * success));
                if !self.quiet && !self.terminal {
                    let (seconds, name) =
                        (self.started.elapsed().as_secs_f64(), &self.names[index]);
                    let success = 100.0 * success;
                    eprintln!(
                        "{seconds:8.1} s  {name:12} step {step:>7}  success {success:5.1} %{planned}{}",
                        self.left()
                    );
                }
            }
        }
    }

    /// How long all runs will still take, at the pace so far.
    fn left(&self) -> String {
        let (done, all) = (self.all.position(), self.all.length().unwrap_or(0));
        let here = done.saturating_sub(self.resumed.load(Ordering::Relaxed));
        if here == 0 || done >= all {
            return String::new();
        }
        let seconds = self.started.elapsed().as_secs_f64() / here as f64 * (all - done) as f64;
        format!(", {} left", HumanDuration(Duration::from_secs_f64(seconds)))
    }

    /// Shows what happened in job `index`.
    pub(crate) fn job(&self, index: usize, event: &JobEvent<'_>) {
        match event {
            JobEvent::Run(event) => self.event(index, event),
            JobEvent::Ended(Ok(_)) => self.bars[index].abandon(),
            JobEvent::Ended(Err(error)) => {
                self.bars[index].abandon_with_message(format!("failed: {error}"));
                if !self.terminal {
                    eprintln!("{}: failed: {error}", self.names[index]);
                }
            }
        }
    }
}
