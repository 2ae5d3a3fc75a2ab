//! Work on data sets: a bar or a spinner on a terminal, nothing elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use cm_data::{Event, Unit};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Shows one piece of work after another; what is shown goes with it.
pub(crate) struct Bars {
    terminal: bool,
    /// Other bars that are there meanwhile.
    screen: MultiProgress,
    shown: Mutex<ProgressBar>,
}

impl Bars {
    pub(crate) fn new() -> Self {
        Self::on(MultiProgress::new())
    }

    /// Below other bars.
    pub(crate) fn on(screen: MultiProgress) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { terminal, screen, shown: Mutex::new(ProgressBar::hidden()) }
    }

    /// Prints something while no bar is there.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.screen.suspend(print);
    }

    /// To be given as the [`cm_data::Progress`] of a function.
    pub(crate) fn show(&self, event: Event<'_>) {
        let Ok(mut shown) = self.shown.lock() else { return };
        match event {
            Event::Began { what, unit, done, total } => {
                *shown = self.bar(what, unit, done, total);
            }
            Event::Busy { what } => *shown = self.spinner(what),
            Event::Advanced(by) => shown.inc(by),
            Event::Going(how) => shown.set_message(how.to_owned()),
            Event::Evaluated { steps, velocity, falls } => shown.suspend(|| {
                println!(
                    "{steps} steps: {velocity:.3} units per second along the direction, \
                     {falls:.2} falls in 1000 steps"
                );
            }),
            Event::Ended => shown.finish_and_clear(),
            _ => {}
        }
    }

    fn bar(&self, what: &str, unit: Unit, done: u64, total: Option<u64>) -> ProgressBar {
        if !self.terminal {
            return ProgressBar::hidden();
        }
        let count = match (unit, total) {
            (Unit::Bytes, Some(_)) => "{bytes}/{total_bytes} {bytes_per_sec} {eta}",
            (Unit::Bytes, None) => "{bytes} {bytes_per_sec}",
            (Unit::Rows, _) => "{pos}/{len} rows {per_sec} {eta}",
            (Unit::Steps, _) => "{pos}/{len} steps {per_sec} {eta}",
        };
        let style =
            ProgressStyle::with_template(&format!("{{prefix}} {{wide_bar}} {count} {{msg}}"))
                .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = self.screen.add(total.map_or_else(ProgressBar::no_length, ProgressBar::new));
        bar.set_style(style);
        bar.set_prefix(what.to_owned());
        bar.set_position(done);
        bar.reset_eta();
        bar
    }

    fn spinner(&self, what: &str) -> ProgressBar {
        if !self.terminal {
            return ProgressBar::hidden();
        }
        let spinner = self.screen.add(ProgressBar::new_spinner().with_message(what.to_owned()));
        spinner.enable_steady_tick(Duration::from_millis(120));
        spinner
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        if let Ok(shown) = self.shown.get_mut() {
            shown.finish_and_clear();
        }
    }
}
