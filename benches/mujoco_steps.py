"""The same loop in Python: the baseline of benches/antmaze.rs.

Each line of the standard input names a folder with model.xml, start.txt (a state) and actions.txt (a row for each step). Prints the seconds of
processor time that simulating these actions took, five steps of MuJoCo each.
"""

import pathlib
import sys
import time

import mujoco

for line in sys.stdin:
    folder = pathlib.Path(line.strip())
    model = mujoco.MjModel.from_xml_path(str(folder / "model.xml"))
    data = mujoco.MjData(model)
    start = [float(x) for x in (folder / "start.txt").read_text().split()]
    rows = (folder / "actions.txt").read_text().splitlines()
    actions = [[30 * float(x) for x in row.split()] for row in rows]
    data.qpos[:], data.qvel[:] = start[: model.nq], start[model.nq :]
    begin = time.thread_time()
    for action in actions:
        data.ctrl[:] = action
        mujoco.mj_step(model, data, nstep=5)
    print(time.thread_time() - begin, flush=True)
