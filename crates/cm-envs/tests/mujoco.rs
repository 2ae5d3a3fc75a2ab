//! The simulator: what it computes, and that nothing a user can do ends the process or goes
//! unnoticed.

mod simulator;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use cm_envs::Error;
use cm_envs::mujoco::{Data, Model, Mujoco, VERSION};
use simulator::mujoco;

/// A bead on a rail along x with a motor of gear 2, mass 1.5, no gravity.
const BEAD: &str = "<mujoco><option gravity='0 0 0' timestep='0.01'/><worldbody><body><joint name='rail' \
    type='slide' axis='1 0 0'/><geom size='.1' mass='1.5'/></body></worldbody><actuator><motor joint='rail' gear='2'/></actuator></mujoco>";

fn bead(mujoco: &Mujoco) -> Arc<Model> {
    Model::from_xml(mujoco, BEAD).unwrap()
}

#[track_caller]
fn message<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => panic!("expected an error"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_pushed_bead_moves_as_newton_says() {
    let Some(mujoco) = mujoco() else { return };
    let model = bead(&mujoco);
    assert_eq!((model.positions(), model.velocities(), model.controls()), (1, 1, 1));
    let mut data = Data::new(&model).unwrap();
    data.set_state(&[3.0, -1.0]).unwrap();
    data.set_control(&[0.75]).unwrap(); // a force of 1.5, so an acceleration of 1
    data.step(100).unwrap();
    let mut state = [0.0; 2];
    data.state(&mut state);
    // Semi-implicit Euler: the velocity is exact, the position runs half a step ahead.
    assert!((state[1] - 0.0).abs() < 1e-12, "{state:?}");
    assert!((state[0] - (3.0 - 1.0 + 0.5 + 0.005)).abs() < 1e-12, "{state:?}");
    data.reset().unwrap();
    data.state(&mut state);
    assert_eq!(state, [0.0, 0.0]);
    data.step(1).unwrap(); // the control was reset too
    data.state(&mut state);
    assert_eq!(state, [0.0, 0.0]);
}

#[test]
fn simulations_of_one_model_do_not_disturb_each_other() {
    let Some(mujoco) = mujoco() else { return };
    let model = bead(&mujoco);
    let run = |velocity: f64| {
        let mut data = Data::new(&model).unwrap();
        data.set_state(&[0.0, velocity]).unwrap();
        data.step(100).unwrap();
        let mut state = [0.0; 2];
        data.state(&mut state);
        state[0]
    };
    std::thread::scope(|scope| {
        for velocity in 0..8 {
            scope.spawn(move || assert!((run(velocity.into()) - f64::from(velocity)).abs() < 1e-9));
        }
    });
}

#[test]
fn diverging_and_not_finite_states_are_errors_and_leave_no_log() {
    let Some(mujoco) = mujoco() else { return };
    let mut data = Data::new(&bead(&mujoco)).unwrap();
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(message(data.set_state(&[0.0, bad])).contains("state, entry 1"));
        assert!(message(data.set_control(&[bad])).contains("control, entry 0"));
    }
    assert!(message(data.set_state(&[0.0])).contains("expected 2 entries, found 1"));
    assert!(message(data.set_control(&[0.0; 2])).contains("expected 1 entries, found 2"));
    data.step(1).unwrap(); // none of this did any harm

    data.set_state(&[0.0, 1e9]).unwrap();
    data.set_control(&[1e9]).unwrap();
    let warning = message(data.step(10_000));
    assert!(warning.contains("QPOS") && warning.contains("unstable"), "{warning}");
    let refusal = message(data.step(1));
    assert!(refusal.contains("not reset"), "{refusal}");
    data.reset().unwrap();
    data.step(1).unwrap();
    assert!(!Path::new("MUJOCO_LOG.TXT").exists());
}

#[test]
fn broken_models_are_errors() {
    let Some(mujoco) = mujoco() else { return };
    for (xml, part) in [
        ("", "XML"),
        ("<mujoco><worldbody>", "XML"),
        ("<mujoco><worldbody><bodi/></worldbody></mujoco>", "bodi"),
        ("<mujoco><worldbody><body><freejoint/></body></worldbody></mujoco>", "mass"),
        ("<mujoco>\0</mujoco>", "zero byte"),
        ("<mujoco><include file='not-there.xml'/></mujoco>", "not-there.xml"),
    ] {
        let message = message(Model::from_xml(&mujoco, xml));
        assert!(message.contains(part), "{xml}: {message}");
    }
}

/// A shared library made of C.
fn fake_library(name: &str, source: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (code, library) = (folder.join(format!("{name}.c")), folder.join(format!("lib{name}.so")));
    std::fs::write(&code, source).unwrap();
    let status =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&code).status();
    assert!(status.unwrap().success(), "{source}");
    library
}

#[test]
fn other_libraries_are_refused() {
    let version = |number: i32, words: &str| {
        format!(
            "int mj_version(void) {{ return {number}; }}\nconst char* mj_versionString(void) {{ return \"{words}\"; }}"
        )
    };
    for (name, source, parts) in [
        ("stranger", "int answer(void) { return 42; }".into(), &["not MuJoCo", "mj_version"][..]),
        ("half", "int mj_version(void) { return 3017000; }".into(), &["not MuJoCo", "String"]),
        ("liar", version(3_017_000, "2.0.0"), &["not MuJoCo", "3017000", "2.0.0"]),
        ("negative", version(-1, "3.17.0"), &["not MuJoCo", "-1"]),
        ("old", version(237, "2.3.7"), &["2.3.7 is too old", "3.2.0 or later", "3.17.0"]),
        ("hollow", version(3_017_000, "3.17.0"), &["not MuJoCo 3.17.0", "mju_user_error"]),
    ] {
        let path = fake_library(name, &source);
        let message = message(Mujoco::load(&path));
        for part in parts.iter().chain([&path.to_str().unwrap()]) {
            assert!(message.contains(part), "{message:?} does not say {part:?}");
        }
    }
    let text = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libtext.so");
    std::fs::write(&text, "not a library").unwrap();
    assert!(message(Mujoco::load(&text)).contains("libtext.so"));
    let missing = message(Mujoco::load("not/there.so"));
    assert!(missing.contains("not/there.so"), "{missing}");
}

/// The search happens in a process of its own, since it reads the environment.
#[test]
fn the_variable_and_the_cache_say_where_to_look() {
    let find = |variables: &[(&str, &Path)]| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "finds_what_the_environment_says", "--nocapture"]);
        command.env_remove("CM_MUJOCO").env_remove("CM_REQUIRE_MUJOCO");
        command.envs(variables.iter().copied()).env("CM_TEST_FIND", "1");
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    };
    let empty = tempfile::tempdir().unwrap();
    let nowhere = find(&[("CM_DATA_DIR", empty.path())]);
    // A system may have one of its own.
    if !nowhere.contains("found MuJoCo") {
        assert!(nowhere.contains("`cm mujoco install`"), "{nowhere}");
        let place = empty.path().join(format!("mujoco-{VERSION}"));
        assert!(nowhere.contains(place.to_str().unwrap()), "{nowhere}");
    }
    let stranger = fake_library("elsewhere", "int answer(void) { return 42; }");
    let named = find(&[("CM_MUJOCO", &stranger)]);
    assert!(named.contains("elsewhere.so: not MuJoCo"), "{named}");
    if mujoco().is_none() {
        return;
    }
    let installed = cm_envs::mujoco::installed_library();
    if installed.exists() {
        let named = find(&[("CM_MUJOCO", &installed), ("CM_DATA_DIR", empty.path())]);
        assert!(named.contains("found MuJoCo 3."), "{named}");
    }
}

/// Only says what it finds, for the test above.
#[test]
fn finds_what_the_environment_says() {
    if std::env::var_os("CM_TEST_FIND").is_none() {
        return;
    }
    match Mujoco::find() {
        Ok(mujoco) => println!("found MuJoCo {}", mujoco.version()),
        Err(error) => println!("{error}"),
    }
}
