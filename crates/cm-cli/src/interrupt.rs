//! Ctrl-C ends a run at its next step, with a checkpoint; a second one ends the program at once.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// Whether there was an interrupt.
pub(crate) fn is_requested() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Listens from now on. The flag is set at the first interrupt.
pub(crate) fn listen() -> &'static AtomicBool {
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("interrupted: writing a checkpoint (once more to stop at once)");
    };
    // Without a handler an interrupt just ends the program, and the last checkpoint is there to go
    // on from.
    let _ = ctrlc::set_handler(handler);
    &STOP
}
