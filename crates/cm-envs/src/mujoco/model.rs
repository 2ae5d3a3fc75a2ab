//! A compiled model.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::Arc;

use super::Mujoco;
use super::api::{Api, Handle};
use super::handlers::{Failure, guarded};
use crate::Error;

/// What is simulated: bodies, joints, contacts, motors. Never changes, so any number of
/// [`Data`](super::Data) share it.
pub struct Model {
    mujoco: Mujoco,
    handle: Handle,
    positions: usize,
    velocities: usize,
    controls: usize,
    control_bit: c_int,
}

// SAFETY: an mjModel is plain memory that MuJoCo only reads once it is compiled, from any number of
// threads.
unsafe impl Send for Model {}
// SAFETY: as above.
unsafe impl Sync for Model {}

/// Bits of `mjtState`. They have been these since `mj_getState` exists.
const POSITIONS: c_int = 1 << 1;
const VELOCITIES: c_int = 1 << 2;
/// What positions and velocities are together.
pub(super) const STATE: c_int = POSITIONS | VELOCITIES;

impl Model {
    /// Compiles a model from its description in MJCF.
    pub fn from_xml(mujoco: &Mujoco, xml: &str) -> Result<Arc<Self>, Error> {
        let api = &*mujoco.api;
        let text = CString::new(xml)
            .map_err(|_| Error::Simulator { reason: "the model's XML holds a zero byte".into() })?;
        let mut compiled = Err(String::new());
        let outcome = guarded(|| compiled = compile(api, &text));
        // From here on dropping frees the model, also one that MuJoCo warned of.
        let model = compiled.map(|handle| Self {
            mujoco: mujoco.clone(),
            handle,
            positions: 0,
            velocities: 0,
            controls: 0,
            control_bit: 0,
        });
        if let Err(Failure::Fatal(reason) | Failure::Warning(reason)) = outcome {
            return Err(Error::Simulator { reason: format!("the model's XML: {reason}") });
        }
        let mut model = model.map_err(|reason| Error::Simulator { reason })?;
        model.positions = model.size(POSITIONS)?;
        model.velocities = model.size(VELOCITIES)?;
        model.control_bit = model.find_control_bit()?;
        model.controls = model.size(model.control_bit)?;
        Ok(Arc::new(model))
    }

    /// Numbers in a position, `nq`.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Numbers in a velocity, `nv`.
    pub fn velocities(&self) -> usize {
        self.velocities
    }

    /// Numbers in a control, `nu`.
    pub fn controls(&self) -> usize {
        self.controls
    }

    /// Every number of the compiled model in MuJoCo's own textual form, for inspection and
    /// comparison.
    pub fn describe(&self) -> Result<String, Error> {
        // MuJoCo prints to files only.
        let file = tempfile::NamedTempFile::new()
            .map_err(|cause| Error::File { path: std::env::temp_dir(), cause })?;
        let path = file.path().to_owned();
        let failed = |cause| Error::File { path: path.clone(), cause };
        let name = CString::new(path.as_os_str().as_encoded_bytes())
            .map_err(|error| failed(error.into()))?;
        // SAFETY: the model lives as long as `self`, both strings through the call; the format is
        // for one double.
        guarded(|| unsafe {
            (self.api().print_model)(self.handle, name.as_ptr(), c"%-26.17g".as_ptr())
        })?;
        std::fs::read_to_string(&path).map_err(failed)
    }

    pub(super) fn api(&self) -> &Api {
        &self.mujoco.api
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle
    }

    pub(super) fn control_bit(&self) -> c_int {
        self.control_bit
    }

    fn size(&self, bits: c_int) -> Result<usize, Error> {
        // SAFETY: the model lives as long as `self`; bits MuJoCo does not know are a fatal error
        // that `guarded` catches.
        let size = guarded(|| unsafe { (self.api().state_size)(self.handle, bits) })?;
        usize::try_from(size)
            .map_err(|_| Error::Simulator { reason: format!("a state of size {size}") })
    }

    /// The bit of `mjtState` for controls: 6 since histories of sensors are part of the state, 5
    /// before. Bit 7 tells which: it stands for forces on the `nv` degrees of freedom now, and
    /// stood for six numbers on each body, world included, which are always more.
    fn find_control_bit(&self) -> Result<c_int, Error> {
        let with_histories = self.size(1 << 7)? == self.velocities;
        Ok(if with_histories { 1 << 6 } else { 1 << 5 })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: the handle came from `compile` and nothing refers to it any more: data hold the
        // model in an `Arc`.
        let _ = guarded(|| unsafe { (self.api().delete_model)(self.handle) });
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Model({}, {}, {})", self.positions, self.velocities, self.controls)
    }
}

fn compile(api: &Api, xml: &CStr) -> Result<Handle, String> {
    let mut message: [c_char; 1024] = [0; 1024];
    // SAFETY: `xml` is terminated, no virtual file system is given, and MuJoCo writes at most as
    // many bytes as it is told, terminated.
    let spec = unsafe {
        let size = message.len() as c_int;
        (api.parse_xml_string)(xml.as_ptr(), std::ptr::null(), message.as_mut_ptr(), size)
    };
    // SAFETY: the buffer is terminated: by MuJoCo, or by the zeros it was made of.
    let message = unsafe { CStr::from_ptr(message.as_ptr()) }.to_string_lossy();
    if spec.is_null() {
        return Err(format!("the model's XML: {}", message.trim()));
    }
    // SAFETY: the specification came from MuJoCo and is deleted after its last use; its error text
    // lives as long as it does.
    unsafe {
        let model = (api.compile)(spec, std::ptr::null());
        let reason = (api.spec_error)(spec);
        let outcome = if !model.is_null() {
            Ok(model)
        } else if reason.is_null() {
            Err("the model's XML does not compile".to_owned())
        } else {
            Err(format!("the model's XML: {}", CStr::from_ptr(reason).to_string_lossy().trim()))
        };
        (api.delete_spec)(spec);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mujoco::Data;

    /// A fatal error of MuJoCo, which would end the process: a state that does not exist.
    #[test]
    fn fatal_errors_come_back_as_errors() {
        let Ok(mujoco) = Mujoco::find() else { return };
        let model = Model::from_xml(&mujoco, "<mujoco/>").unwrap();
        for _ in 0..3 {
            let error = model.size(1 << 28).unwrap_err().to_string();
            assert!(error.contains("MuJoCo") && error.contains("state"), "{error}");
        }
        Data::new(&model).unwrap().step(1).unwrap();
    }
}
