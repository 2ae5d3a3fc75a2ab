//! The functions of the C library that are used, with handles of which nothing is known.

use std::ffi::{c_char, c_int, c_void};

use libloading::Library;

/// An `mjModel`, `mjData` or `mjSpec`.
pub(super) type Handle = *mut c_void;
pub(super) type ConstHandle = *const c_void;

/// What MuJoCo calls with the text of an error or a warning.
pub(super) type Handler = unsafe extern "C-unwind" fn(*const c_char);

/// Function pointers into a library that is kept loaded as long as they live.
///
/// They are `C-unwind` because the error handler leaves a failing call by unwinding through it (see
/// [`super::handlers`]).
pub(super) struct Api {
    pub(super) parse_xml_string:
        unsafe extern "C-unwind" fn(*const c_char, ConstHandle, *mut c_char, c_int) -> Handle,
    pub(super) compile: unsafe extern "C-unwind" fn(Handle, ConstHandle) -> Handle,
    pub(super) spec_error: unsafe extern "C-unwind" fn(Handle) -> *const c_char,
    pub(super) delete_spec: unsafe extern "C-unwind" fn(Handle),
    pub(super) delete_model: unsafe extern "C-unwind" fn(Handle),
    pub(super) print_model: unsafe extern "C-unwind" fn(ConstHandle, *const c_char, *const c_char),
    pub(super) make_data: unsafe extern "C-unwind" fn(ConstHandle) -> Handle,
    pub(super) delete_data: unsafe extern "C-unwind" fn(Handle),
    pub(super) reset_data: unsafe extern "C-unwind" fn(ConstHandle, Handle),
    pub(super) forward: unsafe extern "C-unwind" fn(ConstHandle, Handle),
    pub(super) step: unsafe extern "C-unwind" fn(ConstHandle, Handle),
    pub(super) state_size: unsafe extern "C-unwind" fn(ConstHandle, c_int) -> c_int,
    pub(super) get_state: unsafe extern "C-unwind" fn(ConstHandle, ConstHandle, *mut f64, c_int),
    pub(super) set_state: unsafe extern "C-unwind" fn(ConstHandle, Handle, *const f64, c_int),
    _library: Library,
}

impl Api {
    /// Finds every function in `library`; the error names the first that is missing.
    ///
    /// # Safety
    ///
    /// `library` must be MuJoCo, of a version whose functions have these signatures.
    pub(super) unsafe fn new(library: Library) -> Result<Self, String> {
        // SAFETY: the caller vouches for the library, and with it for the types of its functions.
        unsafe {
            Ok(Self {
                parse_xml_string: symbol(&library, "mj_parseXMLString")?,
                compile: symbol(&library, "mj_compile")?,
                spec_error: symbol(&library, "mjs_getError")?,
                delete_spec: symbol(&library, "mj_deleteSpec")?,
                delete_model: symbol(&library, "mj_deleteModel")?,
                print_model: symbol(&library, "mj_printFormattedModel")?,
                make_data: symbol(&library, "mj_makeData")?,
                delete_data: symbol(&library, "mj_deleteData")?,
                reset_data: symbol(&library, "mj_resetData")?,
                forward: symbol(&library, "mj_forward")?,
                step: symbol(&library, "mj_step")?,
                state_size: symbol(&library, "mj_stateSize")?,
                get_state: symbol(&library, "mj_getState")?,
                set_state: symbol(&library, "mj_setState")?,
                _library: library,
            })
        }
    }
}

/// What `library` holds under `name`; the error names it.
///
/// # Safety
///
/// `T` must be the type of a function of that name, or a pointer to a variable of that name.
pub(super) unsafe fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: the caller vouches for the type.
    let symbol = unsafe { library.get::<T>(name) };
    symbol.map(|symbol| *symbol).map_err(|_| format!("it has no `{name}`"))
}
