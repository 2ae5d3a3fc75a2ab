//! Brings MuJoCo's library, which AntMaze runs on, into the cache: under its name there is the
//! right one or none.

mod wheel;

use std::path::{Path, PathBuf};
use std::process::Command;

use cm_envs::mujoco::{Mujoco, VERSION, Version, installed_library};

use crate::{Error, Progress, Result, output, sha256_of_file};

/// MuJoCo's library in the cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Installed {
    /// Its file.
    pub path: PathBuf,
    /// The version that it says it has.
    pub version: Version,
    /// Whether it was there already.
    pub was_there: bool,
}

/// One system's build of the pinned version.
struct Build {
    /// pip's name for the system.
    platform: &'static str,
    /// Of the library inside the wheel, which is the same for every version of Python.
    sha256: &'static str,
}

/// The build for this system, if there is one.
fn build() -> Option<Build> {
    let (platform, sha256) = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => (
            "manylinux_2_28_x86_64",
            "23496b023ee80fb61ab71167e94bc649f9941710fde96b18bb8204fb332523ad",
        ),
        ("linux", "aarch64") => (
            "manylinux_2_28_aarch64",
            "e2edd0204fb9229f75f332a4fcd1a32345bb9f90651dc0fddfa20ec0670db789",
        ),
        ("macos", "aarch64") => (
            "macosx_11_0_arm64",
            "454d51fa639100018579716bd68e61285e9b53c9241b029680d82dec95bc8d53",
        ),
        ("windows", "x86_64") => {
            ("win_amd64", "c395db1b3f5110a730c4b0c31b7a4f29881af459c8a74a03e14b7683f022d57f")
        }
        _ => return None,
    };
    Some(Build { platform, sha256 })
}

/// Puts the pinned version where [`Mujoco::find`] looks, from `wheel`, or from the Python package
/// `mujoco` by way of pip, whose output is shown.
pub fn install(wheel: Option<&Path>, progress: Progress<'_>) -> Result<Installed> {
    let Some(build) = build() else {
        let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
        return Err(Error::Install(format!(
            "no build of MuJoCo {VERSION} is known for {system} on {processor}; \
             set CM_MUJOCO to a library of your own"
        )));
    };
    let path = installed_library();
    let was_there = path.exists() && sha256_of_file(&path, progress)? == build.sha256;
    if !was_there {
        output::make_parent(&path)?;
        match wheel {
            Some(wheel) => install_wheel(wheel, &path, &build, progress)?,
            None => {
                let folder = path.parent().unwrap_or(Path::new("."));
                let downloads = tempfile::Builder::new()
                    .prefix(".download")
                    .tempdir_in(folder)
                    .map_err(Error::file("write to", folder))?;
                let wheel = download(downloads.path(), &build)?;
                install_wheel(&wheel, &path, &build, progress)?;
            }
        }
    }
    let version = Mujoco::load(&path)?.version();
    Ok(Installed { path, version, was_there })
}

/// Takes the library out of `wheel`, checks it, and gives it its name.
fn install_wheel(wheel: &Path, target: &Path, build: &Build, progress: Progress<'_>) -> Result<()> {
    cm_files::replace_with(target, |partial| {
        wheel::extract_library(wheel, partial)?;
        let found = sha256_of_file(partial, progress)?;
        if found != build.sha256 {
            let reason = format!("sha256 of the library is {found}, expected {}", build.sha256);
            return Err(Error::content(wheel, reason));
        }
        Ok(())
    })
}

/// Has pip download the package into `folder`.
fn download(folder: &Path, build: &Build) -> Result<PathBuf> {
    let requirement = format!("mujoco=={VERSION}");
    let mut pip = pip()?;
    pip.args(["download", "--no-deps", "--disable-pip-version-check", "--only-binary=:all:"])
        .args(["--implementation", "cp", "--python-version", "3.12", "--platform", build.platform])
        .arg("--dest")
        .arg(folder)
        .arg(&requirement);
    let status =
        pip.status().map_err(|error| Error::Install(format!("could not start pip: {error}")))?;
    if !status.success() {
        return Err(Error::Install(format!(
            "pip could not download {requirement}; where it can be downloaded, run \
             `pip download --no-deps {requirement}` and give the file to \
             `cm mujoco install --wheel`"
        )));
    }
    let entries = std::fs::read_dir(folder).map_err(Error::file("list", folder))?;
    let mut wheels = entries.flatten().map(|entry| entry.path());
    wheels
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| Error::Install("pip downloaded no wheel".to_owned()))
}

/// A pip that runs.
fn pip() -> Result<Command> {
    for (program, arguments) in
        [("python3", &["-m", "pip"][..]), ("python", &["-m", "pip"]), ("pip3", &[]), ("pip", &[])]
    {
        let output = Command::new(program).args(arguments).arg("--version").output();
        if output.is_ok_and(|output| output.status.success()) {
            let mut command = Command::new(program);
            command.args(arguments);
            return Ok(command);
        }
    }
    Err(Error::Install(format!(
        "no pip to download the Python package `mujoco` with; install Python, or give a wheel, or \
         set CM_MUJOCO to a library of MuJoCo {VERSION}"
    )))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::silent;

    /// A wheel whose library holds `bytes`.
    fn wheel_with(folder: &Path, bytes: &[u8]) -> std::path::PathBuf {
        let path = folder.join("mujoco.whl");
        let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        let name = format!("mujoco/{}", cm_envs::mujoco::library_file_name());
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
        archive.finish().unwrap();
        path
    }

    #[test]
    fn a_library_gets_its_name_only_with_the_right_checksum() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("library");
        let wheel = wheel_with(folder.path(), b"abc");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let wrong = Build { platform: "", sha256: "0123" };
        let message = install_wheel(&wheel, &target, &wrong, &silent).unwrap_err().to_string();
        assert!(message.contains(abc) && message.contains("expected 0123"), "{message}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1); // the wheel
        let right = Build { platform: "", sha256: abc };
        install_wheel(&wheel, &target, &right, &silent).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"abc");
    }

    #[test]
    fn files_that_are_no_such_wheel_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let (path, target) = (folder.path().join("a.whl"), folder.path().join("library"));
        let build = Build { platform: "", sha256: "" };
        let refused = |part: &str| {
            let message = install_wheel(&path, &target, &build, &silent).unwrap_err().to_string();
            assert!(message.contains("a.whl") && message.contains(part), "{message}");
        };
        refused("could not open");
        std::fs::write(&path, "not a zip").unwrap();
        refused("not a wheel");
        let empty = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        empty.finish().unwrap();
        refused("libmujoco");
    }
}
