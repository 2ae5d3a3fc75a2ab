"""Writes ant_maze.json: numbers of the compiled models and open-loop trajectories from MuJoCo's Python bindings.

    pip install mujoco==3.17.0 numpy
    python make_ant_maze.py

The model is built here once more from D4RL's published numbers, with MuJoCo's model-editing interface and not from XML, so that the test compares two
independent descriptions.
"""

import json
import math
import pathlib

import mujoco
import numpy as np

MAZES = {
    "floor": [],
    "umaze": ["#####", "#R..#", "###.#", "#...#", "#####"],
    "medium": ["########", "#R.##..#", "#..#...#", "##...###", "#..#...#", "#.#..#.#", "#...#..#", "########"],
    "large": ["############", "#R...#.....#", "#.##.#.#.#.#", "#......#...#", "#.####.###.#", "#..#.#.....#", "##.#.#.#.###", "#..#...#...#", "############"],
}
# Near walls, so that trajectories touch them.
STARTS = {"floor": (0.0, 0.0), "umaze": (8.9, 3.9), "medium": (4.8, 5.1), "large": (37.0, 24.9)}
STEPS, EVERY = 50, 5


def rigid(geom):
    geom.contype, geom.condim = 1, 3
    geom.friction, geom.solref, geom.solimp = [1, 0.5, 0.5], [0.02, 1], [0.8, 0.8, 0.01, 0.5, 2]
    geom.density = 5


def of_ant(geom):
    rigid(geom)
    geom.conaffinity, geom.margin = 0, 0.01


def of_world(geom):
    rigid(geom)
    geom.conaffinity, geom.margin = 1, 0


def capsule(body, x, y):
    of_ant(body.add_geom(type=mujoco.mjtGeom.mjGEOM_CAPSULE, size=[0.08, 0, 0], fromto=[0, 0, 0, x, y, 0]))


def hinge(body, name, axis, low, high):
    joint = body.add_joint(name=name, type=mujoco.mjtJoint.mjJNT_HINGE, axis=axis)
    joint.range, joint.limited = [math.radians(low), math.radians(high)], True
    joint.armature, joint.damping = 1, [1, 0, 0]


def build(layout):
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.option.timestep, spec.option.integrator = 0.02, mujoco.mjtIntegrator.mjINT_RK4
    world = spec.worldbody
    of_world(world.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[40, 40, 40]))
    for row, line in enumerate(layout):
        for column, symbol in enumerate(line):
            if symbol == "#":
                of_world(world.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, pos=[4 * column - 4, 4 * row - 4, 1], size=[2, 2, 1]))
    torso = world.add_body(pos=[0, 0, 0.75])
    torso.add_joint(type=mujoco.mjtJoint.mjJNT_FREE, name="root", margin=0.01)
    of_ant(torso.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.25, 0, 0]))
    for leg, (x, y) in enumerate([(1, 1), (-1, 1), (-1, -1), (1, -1)], 1):
        fixed = torso.add_body()
        capsule(fixed, 0.2 * x, 0.2 * y)
        upper = fixed.add_body(pos=[0.2 * x, 0.2 * y, 0])
        hinge(upper, f"hip {leg}", [0, 0, 1], -30, 30)
        capsule(upper, 0.2 * x, 0.2 * y)
        foot = upper.add_body(pos=[0.2 * x, 0.2 * y, 0])
        low, high = (30, 70) if leg in (1, 4) else (-70, -30)
        hinge(foot, f"ankle {leg}", [-1, 1, 0] if leg in (1, 3) else [1, 1, 0], low, high)
        capsule(foot, 0.4 * x, 0.4 * y)
    for leg in (4, 1, 2, 3):
        for part in ("hip", "ankle"):
            motor = spec.add_actuator(target=f"{part} {leg}", trntype=mujoco.mjtTrn.mjTRN_JOINT)
            motor.ctrlrange, motor.ctrllimited = [-30, 30], True
    return spec.compile()


def numbers(array):
    return [float(number) for number in np.asarray(array).ravel()]


def trajectory(model, start, actions):
    data = mujoco.MjData(model)
    data.qpos[:2] = start
    data.qpos[7:] = np.radians([5, 45, -5, -45, 5, -45, -5, 45])
    data.qvel[:] = 0.05 * np.arange(-7, 7)
    begin = numbers(data.qpos) + numbers(data.qvel)
    mujoco.mj_forward(model, data)
    states, touched = [], False
    for step, action in enumerate(actions, 1):
        data.ctrl[:] = 30 * np.clip(action, -1, 1)
        for _ in range(5):
            mujoco.mj_step(model, data)
        floor = 0
        touched |= any(floor not in contact.geom for contact in data.contact)
        if step % EVERY == 0:
            states.append(numbers(data.qpos) + numbers(data.qvel))
    return begin, states, touched


def main():
    # Half of them beyond the range of the motors' controls, to be clipped.
    actions = np.random.default_rng(7).uniform(-1.5, 1.5, (STEPS, 8)).astype(np.float32)
    actions = np.repeat(actions[::2], 2, axis=0)
    reference = {"mujoco": mujoco.__version__, "actions": numbers(actions), "every": EVERY, "worlds": {}}
    for name, layout in MAZES.items():
        model = build(layout)
        begin, states, touched = trajectory(model, STARTS[name], actions.astype(np.float64))
        assert touched == (name != "floor"), f"{name}: walls touched: {touched}"
        reference["worlds"][name] = {
            "body_mass": numbers(model.body_mass),
            "body_inertia": numbers(model.body_inertia),
            "body_ipos": numbers(model.body_ipos),
            "jnt_range": numbers(model.jnt_range),
            "dof_armature": numbers(model.dof_armature),
            "dof_damping": numbers(model.dof_damping),
            "actuator_gear": numbers(model.actuator_gear),
            "actuator_ctrlrange": numbers(model.actuator_ctrlrange),
            "actuator_trnid": numbers(model.actuator_trnid),
            "geom_pos": numbers(model.geom_pos),
            "geom_size": numbers(model.geom_size),
            "geom_margin": numbers(model.geom_margin),
            "geom_friction": numbers(model.geom_friction),
            "geom_solref": numbers(model.geom_solref),
            "geom_solimp": numbers(model.geom_solimp),
            "start": begin,
            "states": [number for state in states for number in state],
        }
    path = pathlib.Path(__file__).with_name("ant_maze.json")
    path.write_text(json.dumps(reference) + "\n")
    print(f"{path}: {path.stat().st_size} bytes, MuJoCo {mujoco.__version__}")


if __name__ == "__main__":
    main()
