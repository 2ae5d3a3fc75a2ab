//! Kernels from source to machine code, once per device and version.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::nvrtc::{Compiler, Product};
use crate::{Error, Precision, Result};

/// One file of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub(crate) enum Module {
    /// Functions of one and two numbers.
    Chain,
    Data,
    Density,
    Elementwise,
    InfoNce,
    /// IQE with groups of any size, by pairs with groups of eight, by rows with at most 32.
    Iqe,
    IqeEights,
    IqeRows,
    LayerNorm,
    Layout,
    /// Matrices put together, and operands of products on Hopper.
    Operands(Precision),
    Optimise,
    Product(Precision),
    Random,
    Reduce,
    /// MRN and Max by rows, by pairs, and the gradients of the latter.
    Residual,
    ResidualPairs,
    ResidualDifferences,
    ResidualGradient,
    /// Products on Hopper.
    Warpgroups(Precision),
}

const COMMON: &str = include_str!("../kernels/common.cuh");
const FINISH: &str = include_str!("../kernels/finish.cuh");
const FUNCTIONS: &str = include_str!("../kernels/functions.cuh");
const INFO_NCE: &str = include_str!("../kernels/info_nce.cuh");
const IQE: &str = include_str!("../kernels/iqe.cuh");
const OPERAND: &str = include_str!("../kernels/operand.cuh");
const RESIDUAL: &str = include_str!("../kernels/residual.cuh");
const RESIDUAL_PAIRS: &str = include_str!("../kernels/residual_pairs.cuh");
const PHILOX: &str = include_str!("../kernels/philox.cuh");
const PTX: &str = include_str!("../kernels/ptx.cuh");
const WGMMA: &str = include_str!("../kernels/wgmma.cuh");

impl Module {
    /// All there are.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 25] = [
        Self::Chain,
        Self::Data,
        Self::Density,
        Self::Elementwise,
        Self::InfoNce,
        Self::Iqe,
        Self::IqeEights,
        Self::IqeRows,
        Self::LayerNorm,
        Self::Layout,
        Self::Operands(Precision::Highest),
        Self::Operands(Precision::Tf32),
        Self::Operands(Precision::Bf16),
        Self::Optimise,
        Self::Product(Precision::Highest),
        Self::Product(Precision::Tf32),
        Self::Product(Precision::Bf16),
        Self::Random,
        Self::Reduce,
        Self::Residual,
        Self::ResidualPairs,
        Self::ResidualDifferences,
        Self::ResidualGradient,
        Self::Warpgroups(Precision::Tf32),
        Self::Warpgroups(Precision::Bf16),
    ];

    /// The file's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chain => "chain.cu",
            Self::Data => "data.cu",
            Self::Density => "density.cu",
            Self::Elementwise => "elementwise.cu",
            Self::InfoNce => "info_nce.cu",
            Self::Iqe => "iqe.cu",
            Self::IqeEights => "iqe_eights.cu",
            Self::IqeRows => "iqe_rows.cu",
            Self::LayerNorm => "layer_norm.cu",
            Self::Layout => "layout.cu",
            Self::Operands(_) => "operands.cu",
            Self::Optimise => "optimise.cu",
            Self::Product(_) => "gemm.cu",
            Self::Random => "random.cu",
            Self::Reduce => "reduce.cu",
            Self::Residual => "residual.cu",
            Self::ResidualPairs => "residual_pairs.cu",
            Self::ResidualDifferences => "residual_differences.cu",
            Self::ResidualGradient => "residual_gradient.cu",
            Self::Warpgroups(_) => "hopper.cu",
        }
    }

    /// The whole text that is compiled.
    pub(crate) fn source(self) -> String {
        let (before, own): (&[&str], _) = match self {
            Self::Chain => (&[FUNCTIONS], include_str!("../kernels/chain.cu")),
            Self::Data => (&[PHILOX], include_str!("../kernels/data.cu")),
            Self::Density => (&[], include_str!("../kernels/density.cu")),
            Self::Elementwise => (&[], include_str!("../kernels/elementwise.cu")),
            Self::InfoNce => (&[INFO_NCE], include_str!("../kernels/info_nce.cu")),
            Self::Iqe => (&[IQE], include_str!("../kernels/iqe.cu")),
            Self::IqeEights => (&[IQE], include_str!("../kernels/iqe_eights.cu")),
            Self::IqeRows => (&[IQE], include_str!("../kernels/iqe_rows.cu")),
            Self::LayerNorm => (&[], include_str!("../kernels/layer_norm.cu")),
            Self::Layout => (&[], include_str!("../kernels/layout.cu")),
            Self::Operands(_) => (&[PTX, OPERAND, IQE], include_str!("../kernels/operands.cu")),
            Self::Optimise => (&[], include_str!("../kernels/optimise.cu")),
            Self::Product(_) => (&[FUNCTIONS, PTX], include_str!("../kernels/gemm.cu")),
            Self::Random => (&[PHILOX], include_str!("../kernels/random.cu")),
            Self::Reduce => (&[], include_str!("../kernels/reduce.cu")),
            Self::Residual => (&[RESIDUAL], include_str!("../kernels/residual.cu")),
            Self::ResidualPairs => {
                let before = &[PTX, RESIDUAL, INFO_NCE, RESIDUAL_PAIRS];
                (before, include_str!("../kernels/residual_pairs.cu"))
            }
            Self::ResidualDifferences => {
                (&[PTX, RESIDUAL], include_str!("../kernels/residual_differences.cu"))
            }
            Self::ResidualGradient => {
                let before = &[PTX, OPERAND, RESIDUAL, INFO_NCE];
                (before, include_str!("../kernels/residual_gradient.cu"))
            }
            Self::Warpgroups(_) => {
                (&[FUNCTIONS, PTX, OPERAND, WGMMA, FINISH], include_str!("../kernels/hopper.cu"))
            }
        };
        format!("{COMMON}\n{}\n#line 1 \"{}\"\n{own}", before.concat(), self.name())
    }

    fn definitions(self) -> Vec<String> {
        match self {
            Self::Operands(precision) | Self::Product(precision) | Self::Warpgroups(precision) => {
                vec![format!("-DPRECISION={}", precision as u32)]
            }
            // Its operands are of TF32 whatever those of layers are.
            Self::ResidualGradient => vec![format!("-DPRECISION={}", Precision::Tf32 as u32)],
            _ => Vec::new(),
        }
    }
}

/// What kernels are compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// As the compiler's option has it, such as `sm_90a`.
    pub(crate) architecture: String,
    pub(crate) product: Product,
}

/// Hopper with its own instructions.
const HOPPER: &str = "sm_90a";

impl Target {
    /// Machine code for a device of compute capability `capability` if the compiler knows it, else
    /// assembly for the newest older one it knows, which the driver finishes.
    pub(crate) fn new((major, minor): (u32, u32), known: &[u32]) -> Self {
        let wanted = 10 * major + minor;
        if known.contains(&wanted) {
            let architecture = if wanted == 90 { HOPPER.into() } else { format!("sm_{wanted}") };
            return Self { architecture, product: Product::Cubin };
        }
        let older = known.iter().filter(|&&known| known < wanted).max().unwrap_or(&80);
        Self { architecture: format!("compute_{older}"), product: Product::Ptx }
    }
}

/// The compiler, what it compiles for, and where results are kept.
pub(crate) struct Kernels {
    compiler: Result<Compiler, String>,
    target: Target,
    cache: Option<PathBuf>,
    /// Versions that machine code depends on.
    versions: String,
}

impl Kernels {
    /// For a device; the compiler may be missing as long as everything is in the cache.
    pub(crate) fn new(capability: (u32, u32), driver: (u32, u32), cache: Option<PathBuf>) -> Self {
        let compiler = Compiler::find().map_err(|error| error.to_string());
        let (target, name) = match &compiler {
            Ok(compiler) => (Target::new(capability, compiler.architectures()), compiler.name()),
            Err(_) => (Target::new(capability, &[]), "none".into()),
        };
        let versions = format!("driver {driver:?}, compiler {name}");
        Self { compiler, target, cache, versions }
    }

    /// Whether [`Module::Warpgroups`] can be compiled for the device.
    pub(crate) fn has_warpgroups(&self) -> bool {
        self.target.architecture == HOPPER
    }

    /// The machine code (or assembly) of one file of kernels.
    pub(crate) fn image(&self, module: Module) -> Result<Vec<u8>> {
        let source = module.source();
        let options = self.options(module);
        let key = format!("{}\n{}\n{}", self.versions, options.join(" "), source);
        let place = self.cache.as_ref().map(|cache| cache.join(entry_name(module, &key)));
        // One at a time, so that threads that need the same kernels find them in the cache.
        static COMPILING: Mutex<()> = Mutex::new(());
        let _compiling = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(image) = place.as_deref().and_then(|place| read_entry(place, &key)) {
            return Ok(image);
        }
        let compiler = match &self.compiler {
            Ok(compiler) => compiler,
            // Looked for again, so that the error has its own kind.
            Err(_) => &Compiler::find()?,
        };
        let image = compiler
            .compile(&source, module.name(), &options, self.target.product)
            .map_err(|log| {
                let target = self.target.architecture.clone();
                Error::Compile { module: module.name(), target, log }
            })?;
        if let Some(place) = place {
            write_entry(&place, &key, &image);
        }
        Ok(image)
    }

    fn options(&self, module: Module) -> Vec<String> {
        let mut options = module.definitions();
        options.push(format!("--gpu-architecture={}", self.target.architecture));
        options.push("--std=c++17".into());
        // Not every file uses everything of the common ones.
        options.push("--diag-suppress=177".into());
        options
    }
}

/// Where compiled kernels are kept: `CM_CUDA_CACHE`, or the user's cache directory.
pub(crate) fn cache_directory() -> Option<PathBuf> {
    let under = |variable: &str, rest: &str| {
        let base = std::env::var_os(variable).filter(|value| !value.is_empty())?;
        Some(Path::new(&base).join(rest))
    };
    under("CM_CUDA_CACHE", "")
        .or_else(|| under("XDG_CACHE_HOME", "contrastive-metrics/kernels"))
        .or_else(|| under("HOME", ".cache/contrastive-metrics/kernels"))
}

fn entry_name(module: Module, key: &str) -> String {
    format!("{}-{:032x}.bin", module.name().trim_end_matches(".cu"), xxh3_128(key.as_bytes()))
}

const MAGIC: &[u8; 8] = b"cmkern1\n";

/// The image in a file of the cache, if it was written whole and for this very key.
fn read_entry(place: &Path, key: &str) -> Option<Vec<u8>> {
    let bytes = std::fs::read(place).ok()?;
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (found_key, rest) = rest.split_first_chunk::<8>()?;
    let (checksum, image) = rest.split_first_chunk::<8>()?;
    let is_whole = u64::from_le_bytes(*checksum) == xxh3_64(image);
    let fits = u64::from_le_bytes(*found_key) == xxh3_64(key.as_bytes());
    (magic == MAGIC && is_whole && fits).then(|| image.to_vec())
}

/// Keeps an image. A cache that cannot be written only costs time, so failures are ignored.
fn write_entry(place: &Path, key: &str, image: &[u8]) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // Written beside and renamed, so that other processes see all of it or nothing.
    let beside = place.with_extension(format!("{}-{number}", std::process::id()));
    let checksums = [xxh3_64(key.as_bytes()), xxh3_64(image)].map(u64::to_le_bytes);
    let bytes = [&MAGIC[..], &checksums.concat(), image].concat();
    let written = place
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(&beside, bytes))
        .and_then(|()| std::fs::rename(&beside, place));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every file of kernels compiles for Hopper; what has instructions of its own, also for Ampere
    /// and Blackwell.
    #[test]
    fn kernels_compile_for_every_architecture() {
        let Ok(compiler) = Compiler::find() else {
            return crate::testing::skip("CUDA's run-time compiler was not found; set CM_NVRTC");
        };
        let special = Module::Product(Precision::Tf32);
        let mut work = Module::ALL.map(|module| ((9, 0), module)).to_vec();
        work.extend([((8, 0), special), ((10, 0), special)]);
        for (capability, module) in work {
            let target = Target::new(capability, compiler.architectures());
            if target.product == Product::Ptx {
                println!("SKIPPED {capability:?}: {} does not know it", compiler.name());
                continue;
            }
            let (compiler_, versions) = (Err(String::new()), String::new());
            let kernels =
                Kernels { compiler: compiler_, target: target.clone(), cache: None, versions };
            let options = kernels.options(module);
            let image = compiler.compile(&module.source(), module.name(), &options, target.product);
            let image = image.unwrap_or_else(|log| panic!("{module:?} {target:?}\n{log}"));
            assert!(image.starts_with(b"\x7fELF"), "{module:?}: not machine code");
        }
    }

    #[test]
    fn targets_are_machine_code_or_the_newest_assembly() {
        let known = [80, 86, 89, 90];
        let target = |capability| {
            let Target { architecture, product } = Target::new(capability, &known);
            (architecture, product)
        };
        assert_eq!(target((8, 6)), ("sm_86".into(), Product::Cubin));
        assert_eq!(target((9, 0)), ("sm_90a".into(), Product::Cubin));
        assert_eq!(target((8, 7)), ("compute_86".into(), Product::Ptx));
        assert_eq!(target((12, 0)), ("compute_90".into(), Product::Ptx));
    }

    #[test]
    fn entries_are_read_back_unless_they_are_damaged_or_of_another_key() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("below").join(entry_name(Module::Reduce, "key"));
        assert_eq!(read_entry(&place, "key"), None);
        write_entry(&place, "key", b"machine code");
        assert_eq!(read_entry(&place, "key").as_deref(), Some(&b"machine code"[..]));
        assert_eq!(read_entry(&place, "another key"), None);
        let whole = std::fs::read(&place).unwrap();
        for damage in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[damage] ^= 1;
            std::fs::write(&place, &bytes).unwrap();
            assert_eq!(read_entry(&place, "key"), None, "byte {damage}");
            std::fs::write(&place, &whole[..damage]).unwrap();
            assert_eq!(read_entry(&place, "key"), None, "cut at {damage}");
        }
        // Nothing but the entry is left.
        assert_eq!(std::fs::read_dir(place.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn keys_differ_by_source_options_and_versions() {
        let names = ["a\nb\nc", "a\nb\nd", "a\nx\nc"].map(|key| entry_name(Module::Iqe, key));
        assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
        assert!(Module::ALL.iter().all(|module| module.source().contains(module.name())));
    }
}
