//! Compiled models.

use cm_envs::ogbench::Agent;
use serde_json::Value;

use crate::files::{json_files, model_as_of, world};
use crate::simulator::mujoco;

/// The numbers of one field in MuJoCo's textual form of a model, where each element has a line of
/// its own.
fn field(description: &str, name: &str) -> Vec<f64> {
    description
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(' '))
        .flat_map(|line| line.split_whitespace().filter_map(|number| number.parse::<f64>().ok()))
        .collect()
}

/// One key of every element of a list, numbers or lists of them, one after another.
fn all(elements: &[&Value], key: &str) -> Vec<f64> {
    let numbers = |element: &&Value| match &element[key] {
        Value::Array(numbers) => numbers.iter().map(|x| x.as_f64().unwrap()).collect(),
        number => vec![number.as_f64().unwrap_or_else(|| panic!("{key}: {number}"))],
    };
    elements.iter().flat_map(numbers).collect()
}

fn assert_near(what: &str, found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (index, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((found - wanted).abs() < 1e-9, "{what}, {index}: {found}, expected {wanted}");
    }
}

#[test]
fn models_compile_to_the_numbers_of_ogbench() {
    let Some(mujoco) = mujoco() else { return };
    for (file, content) in json_files("models") {
        let version = content["mujoco"].as_str().unwrap();
        for (name, wanted) in content["models"].as_object().unwrap() {
            let Some((agent, maze)) = world(name, &format!("{name} of {file}")) else { continue };
            let Some(model) = model_as_of(&mujoco, version, &file, agent, maze) else { continue };
            let (positions, controls) = (model.positions() as u64, model.controls() as u64);
            assert_eq!(
                (Some(positions), Some(controls)),
                (wanted["nq"].as_u64(), wanted["nu"].as_u64())
            );
            let description = model.describe().unwrap();
            let list = |key: &str| wanted[key].as_array().unwrap().iter().collect::<Vec<_>>();
            let near = |ours: &str, wanted: &[f64]| {
                assert_near(&format!("{name}, {ours}"), &field(&description, ours), wanted);
            };
            near("timestep", &[wanted["timestep"].as_f64().unwrap()]);
            let body = list("body");
            for (ours, theirs) in [
                ("body_mass", "mass"),
                ("body_inertia", "inertia"),
                ("body_pos", "pos"),
                ("body_ipos", "ipos"),
            ] {
                near(ours, &all(&body, theirs));
            }
            let joint = list("joint");
            near("jnt_range", &all(&joint, "range"));
            near("jnt_axis", &all(&joint, "axis"));
            near("jnt_margin", &all(&joint, "margin"));
            let numbers = |key: &str| all(&[wanted], key);
            near("dof_armature", &numbers("armature"));
            near("qpos0", &numbers("init_qpos"));
            let damping = field(&description, "dof_damping");
            // Newer versions have coefficients of higher order after the first.
            let order = damping.len() / model.velocities();
            let first: Vec<f64> = damping.iter().copied().step_by(order).collect();
            assert_near("dof_damping", &first, &numbers("damping"));
            let actuator = list("actuator");
            near("actuator_ctrlrange", &all(&actuator, "ctrlrange"));
            let gears = field(&description, "actuator_gear");
            let first: Vec<f64> = gears.chunks(6).map(|gear| gear[0]).collect();
            assert_near("actuator_gear", &first, &all(&actuator, "gear"));
            // What cannot be touched is left out here.
            let touched = |geom: &&Value| geom["contype"] != 0 || geom["conaffinity"] != 0;
            let geom: Vec<_> = list("geom").into_iter().filter(touched).collect();
            for (ours, theirs) in [
                ("geom_type", "type"),
                ("geom_contype", "contype"),
                ("geom_conaffinity", "conaffinity"),
                ("geom_condim", "condim"),
                ("geom_size", "size"),
                ("geom_pos", "pos"),
                ("geom_margin", "margin"),
                ("geom_friction", "friction"),
                ("geom_solref", "solref"),
                ("geom_solimp", "solimp"),
            ] {
                near(ours, &all(&geom, theirs));
            }
            let mass: f64 = field(&description, "body_mass").iter().sum();
            let wanted = if agent == Agent::Point { 143.675_504_02 } else { 0.910_880_08 };
            assert!((mass - wanted).abs() < 1e-8, "{mass}");
        }
    }
}
