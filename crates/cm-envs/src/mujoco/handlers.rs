//! What happens when MuJoCo fails or warns: an error for the caller instead of a process exit and a
//! log file.
//!
//! MuJoCo calls a handler on a fatal error and is written on the assumption that the handler does
//! not return; its own handler ends the process. The one here unwinds to [`guarded`], which turns
//! it into an error. What is passed over on the way are frames of C without anything to clean up
//! but the stack allocator inside the data, which a reset restores. A program built with
//! `panic = "abort"` cannot unwind: there a fatal error still ends the process.

use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

use libloading::Library;

use super::api::{Handler, symbol};

thread_local! {
    /// The first warning since the last call of [`guarded`] began.
    static WARNING: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What unwinds out of a failing call.
struct Fatal(String);

/// How a call into MuJoCo went wrong.
pub(super) enum Failure {
    /// It did not come to its end.
    Fatal(String),
    /// It did, but warned.
    Warning(String),
}

/// Makes `library` report to this module. Libraries that are loaded twice are changed once.
///
/// # Safety
///
/// `library` must be MuJoCo.
pub(super) unsafe fn install(library: &Library) -> Result<(), String> {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _guard = INSTALLING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for (name, handler) in
        [("mju_user_error", on_error as Handler), ("mju_user_warning", on_warning as Handler)]
    {
        // SAFETY: in MuJoCo these are global variables that hold a function pointer or null. Only
        // this function writes them, one thread at a time, and only before anything of the library
        // was called through this crate, or not at all.
        unsafe {
            let place: *mut Option<Handler> = symbol(library, name)?;
            if (*place).is_none_or(|present| !std::ptr::fn_addr_eq(present, handler)) {
                *place = Some(handler);
            }
        }
    }
    Ok(())
}

/// Runs `call`, which calls MuJoCo, and reports a fatal error or the first warning.
pub(super) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, Failure> {
    WARNING.set(None);
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => match WARNING.take() {
            None => Ok(value),
            Some(warning) => Err(Failure::Warning(warning)),
        },
        Err(payload) => match payload.downcast::<Fatal>() {
            Ok(fatal) => Err(Failure::Fatal(fatal.0)),
            Err(other) => resume_unwind(other),
        },
    }
}

unsafe extern "C-unwind" fn on_error(message: *const c_char) {
    // Not `panic!`, which would also print.
    resume_unwind(Box::new(Fatal(text(message))))
}

unsafe extern "C-unwind" fn on_warning(message: *const c_char) {
    WARNING.with_borrow_mut(|warning| {
        warning.get_or_insert_with(|| text(message));
    });
}

fn text(message: *const c_char) -> String {
    if message.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: MuJoCo passes a terminated string that lives through the call.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().trim().to_owned()
}
