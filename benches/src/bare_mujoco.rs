//! MuJoCo called directly, with nothing around it: the baseline of the simulation.

use std::ffi::{CString, c_char, c_int, c_void};

use cm_envs::ant_maze::{ACTION, STATE};
use libloading::Library;

type Handle = *mut c_void;

/// One simulation. Nothing is checked; a fatal error ends the process.
pub struct BareMujoco {
    model: Handle,
    data: Handle,
    set_state: unsafe extern "C" fn(Handle, Handle, *const f64, c_int),
    step: unsafe extern "C" fn(Handle, Handle),
    reset: unsafe extern "C" fn(Handle, Handle),
    _library: Library,
}

impl BareMujoco {
    /// A simulation of the ant that `xml` describes, by the library that `cm mujoco install`
    /// installs.
    pub fn new(xml: &str) -> Option<Self> {
        let xml = CString::new(xml).ok()?;
        // SAFETY: the library is MuJoCo of the pinned version, whose functions have these types;
        // the handles are its own.
        unsafe {
            let library = Library::new(cm_envs::mujoco::installed_library()).ok()?;
            type Parse = unsafe extern "C" fn(*const c_char, Handle, *mut c_char, c_int) -> Handle;
            type Compile = unsafe extern "C" fn(Handle, Handle) -> Handle;
            type Make = unsafe extern "C" fn(Handle) -> Handle;
            let parse = *library.get::<Parse>("mj_parseXMLString").ok()?;
            let compile = *library.get::<Compile>("mj_compile").ok()?;
            let make = *library.get::<Make>("mj_makeData").ok()?;
            let null = std::ptr::null_mut();
            let spec = parse(xml.as_ptr(), null, std::ptr::null_mut(), 0);
            let model = compile(spec, null);
            Some(Self {
                model,
                data: make(model),
                set_state: *library.get("mj_setState").ok()?,
                step: *library.get("mj_step").ok()?,
                reset: *library.get("mj_resetData").ok()?,
                _library: library,
            })
        }
    }

    /// Simulates from `state` with these actions, five steps each.
    pub fn run(&mut self, state: &[f64; STATE], actions: &[f32]) {
        /// Positions and velocities, and controls, in `mjtState` of the pinned version.
        const STATE_BITS: c_int = 0b110;
        const CONTROL_BIT: c_int = 1 << 6;
        // SAFETY: the handles are alive, and the states have the lengths that the bits ask for in a
        // model of the ant.
        unsafe {
            (self.reset)(self.model, self.data);
            (self.set_state)(self.model, self.data, state.as_ptr(), STATE_BITS);
            for action in actions.chunks_exact(ACTION) {
                let control: [f64; ACTION] = std::array::from_fn(|k| 30.0 * f64::from(action[k]));
                (self.set_state)(self.model, self.data, control.as_ptr(), CONTROL_BIT);
                for _ in 0..5 {
                    (self.step)(self.model, self.data);
                }
            }
        }
    }
}
