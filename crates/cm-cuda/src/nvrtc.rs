//! CUDA's run-time compiler, found when first needed.
//!
//! It is not looked up by cudarc, which would panic where it is missing and knows neither the name
//! of version 13's library nor where Python packages keep it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;

use libloading::Library;

use crate::{Error, Result};

type Program = *mut c_void;

/// The loaded compiler.
pub(crate) struct Compiler {
    path: String,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    log: Getter,
    cubin: Getter,
    ptx: Getter,
    architectures: Vec<u32>,
    version: (i32, i32),
    // Last, so that the functions above go first.
    _library: Library,
}

/// A function for the size of something and one for the thing.
struct Getter {
    size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    content: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
}

/// What the compiler is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    /// Machine code.
    Cubin,
    /// Assembly that the driver compiles for its device.
    Ptx,
}

impl Compiler {
    /// Looks for the library: `CM_NVRTC` alone if it is set, else the loader's names and the usual
    /// places.
    pub(crate) fn find() -> Result<Self> {
        let candidates = candidates();
        for path in &candidates {
            // SAFETY: loading NVIDIA's compiler runs its initialisers only.
            if let Ok(library) = unsafe { Library::new(path) } {
                return Self::new(library, path.display().to_string());
            }
        }
        let names = candidates.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        Err(Error::NoCompiler { looked_for: names.join(", ") })
    }

    fn new(library: Library, path: String) -> Result<Self> {
        let missing = |error: libloading::Error| Error::BadCompiler {
            library: path.clone(),
            reason: error.to_string(),
        };
        // SAFETY: these are the types of the functions in nvrtc.h, the same since version 11.2.
        unsafe {
            let getter = |size: &[u8], content: &[u8]| -> Result<Getter, libloading::Error> {
                Ok(Getter { size: *library.get(size)?, content: *library.get(content)? })
            };
            let versions: unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int =
                *library.get(b"nvrtcVersion\0").map_err(missing)?;
            let count: unsafe extern "C" fn(*mut c_int) -> c_int =
                *library.get(b"nvrtcGetNumSupportedArchs\0").map_err(missing)?;
            let list: unsafe extern "C" fn(*mut c_int) -> c_int =
                *library.get(b"nvrtcGetSupportedArchs\0").map_err(missing)?;
            let (mut version, mut architectures) = ((0, 0), 0);
            versions(&mut version.0, &mut version.1);
            count(&mut architectures);
            let mut found = vec![0; usize::try_from(architectures).unwrap_or(0)];
            list(found.as_mut_ptr());
            Ok(Self {
                create: *library.get(b"nvrtcCreateProgram\0").map_err(missing)?,
                compile: *library.get(b"nvrtcCompileProgram\0").map_err(missing)?,
                destroy: *library.get(b"nvrtcDestroyProgram\0").map_err(missing)?,
                log: getter(b"nvrtcGetProgramLogSize\0", b"nvrtcGetProgramLog\0")
                    .map_err(missing)?,
                cubin: getter(b"nvrtcGetCUBINSize\0", b"nvrtcGetCUBIN\0").map_err(missing)?,
                ptx: getter(b"nvrtcGetPTXSize\0", b"nvrtcGetPTX\0").map_err(missing)?,
                architectures: found.into_iter().filter_map(|x| u32::try_from(x).ok()).collect(),
                version,
                path: path.clone(),
                _library: library,
            })
        }
    }

    /// Where it was found, and its version.
    pub(crate) fn name(&self) -> String {
        format!("{} ({}.{})", self.path, self.version.0, self.version.1)
    }

    /// The compute capabilities it knows, as 80 for 8.0.
    pub(crate) fn architectures(&self) -> &[u32] {
        &self.architectures
    }

    /// Compiles; the error is what the compiler said.
    pub(crate) fn compile(
        &self,
        source: &str,
        name: &str,
        options: &[String],
        product: Product,
    ) -> Result<Vec<u8>, String> {
        let text = |text: &str| CString::new(text).map_err(|error| error.to_string());
        let (source, name) = (text(source)?, text(name)?);
        let options = options.iter().map(|option| text(option)).collect::<Result<Vec<_>, _>>()?;
        let options = options.iter().map(|option| option.as_ptr()).collect::<Vec<_>>();
        let mut program = std::ptr::null_mut();
        let none = std::ptr::null();
        // SAFETY: all strings end with a zero and outlive the calls; the program is destroyed once.
        unsafe {
            let created =
                (self.create)(&mut program, source.as_ptr(), name.as_ptr(), 0, none, none);
            if created != 0 {
                return Err(format!("{} could not begin (error {created})", self.path));
            }
            let result = (self.compile)(program, options.len() as c_int, options.as_ptr());
            let answer = match (result, product) {
                (0, Product::Cubin) => self.cubin.get(program),
                (0, Product::Ptx) => self.ptx.get(program),
                _ => None,
            };
            let log = self.log.get(program).unwrap_or_default();
            (self.destroy)(&mut program);
            answer.ok_or_else(|| {
                let log = CStr::from_bytes_until_nul(&log).map(CStr::to_string_lossy);
                format!("{} (error {result})", log.unwrap_or_default().trim_end())
            })
        }
    }
}

impl Getter {
    /// # Safety
    /// The program must be one of the same compiler's.
    unsafe fn get(&self, program: Program) -> Option<Vec<u8>> {
        let mut size = 0;
        // SAFETY: the pointer is to a local variable.
        if unsafe { (self.size)(program, &mut size) } != 0 {
            return None;
        }
        let mut content = vec![0_u8; size];
        // SAFETY: there is room for as many bytes as the compiler said.
        (unsafe { (self.content)(program, content.as_mut_ptr().cast()) } == 0).then_some(content)
    }
}

fn candidates() -> Vec<PathBuf> {
    if let Some(path) = std::env::var_os("CM_NVRTC") {
        return vec![path.into()];
    }
    let names = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "nvrtc64_130_0.dll"];
    let mut candidates = names.map(PathBuf::from).to_vec();
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os);
    let homes = homes.map(PathBuf::from).chain([PathBuf::from("/usr/local/cuda")]);
    candidates.extend(homes.map(|home| home.join("lib64").join("libnvrtc.so")));
    candidates
}
