"""Writes the sample files of this folder, as real producers write them: h5py, NumPy and safetensors.

The tests read the committed files, so Python is needed only to make them again:
    pip install h5py numpy safetensors && python make_samples.py

Three trajectories of 1, 12 and 27 rows in the layouts of D4RL AntMaze and OGBench antmaze (29 observations, 8 actions).
Every number is a small fraction, exact in f32, and known to the tests by the formulas below.
"""

from pathlib import Path

import h5py
import numpy as np
from safetensors.numpy import save_file

FOLDER = Path(__file__).parent
LENGTHS = [1, 12, 27]
ROWS = sum(LENGTHS)

trajectory = np.repeat(np.arange(3), LENGTHS)
within = np.concatenate([np.arange(length) for length in LENGTHS])
row = np.arange(ROWS)[:, None]

observations = (((row * 31 + np.arange(29) * 7) % 64) / 16 - 2).astype(np.float32)
observations[:, 0] = 8 * trajectory + 0.25 * within
observations[:, 1] = -trajectory
actions = (((row * 5 + np.arange(8) * 3) % 17 - 8) / 8).astype(np.float32)
last = np.zeros(ROWS, bool)
last[np.cumsum(LENGTHS) - 1] = True
success = np.arange(ROWS) % 5 == 4

d4rl = {
    "observations": observations,
    "actions": actions,
    "rewards": success.astype(np.float32),
    "terminals": success,
    "timeouts": last,
}
infos = {
    "infos/goal": observations[:, :2] + 1,
    "infos/qpos": observations[:, :15].astype(np.float64),
    "infos/qvel": observations[:, 15:],
}


def hdf5(name, arrays, libver="earliest", **storage):
    with h5py.File(FOLDER / f"{name}.hdf5", "w", libver=libver) as file:
        for key, array in arrays.items():
            options = dict(storage)
            if "chunks" in options:
                options["chunks"] = tuple(min(a, b) for a, b in zip(options["chunks"], array.shape))
            if options.pop("resizable", False):
                options["maxshape"] = (None,) * array.ndim
            file.create_dataset(key, data=array, **options)


hdf5("d4rl_gzip", d4rl | infos, compression="gzip")
hdf5("d4rl_contiguous", d4rl)
hdf5("d4rl_chunked", d4rl, chunks=(7, 10))
hdf5("d4rl_latest_contiguous", d4rl, libver="latest")
hdf5("d4rl_latest_gzip", d4rl, libver="latest", compression="gzip")
hdf5("d4rl_latest_shuffle", d4rl, libver="latest", compression="gzip", compression_opts=9, shuffle=True,
     fletcher32=True, chunks=(16, 8))
hdf5("d4rl_latest_resizable", d4rl, libver="latest", compression="gzip", shuffle=True, chunks=(16, 29), resizable=True)
hdf5("d4rl_v110_resizable", d4rl, libver=("v110", "v110"), chunks=(16, 29), resizable=True)
hdf5("d4rl_lzf", d4rl, compression="lzf")
hdf5("d4rl_without_timeouts", {key: d4rl[key] for key in ("observations", "actions", "terminals")}, compression="gzip")

np.savez_compressed(FOLDER / "ogbench.npz", observations=observations, actions=actions, terminals=last,
                    qpos=observations[:, :15], qvel=observations[:, 15:])
np.savez(FOLDER / "ogbench_stored.npz", observations=observations, actions=actions, terminals=last.astype(np.float32))
np.savez_compressed(FOLDER / "numpy_types.npz", observations=np.asfortranarray(observations.astype(">f8")),
                    actions=(actions * 8).astype(">i4"), ends=np.cumsum(LENGTHS))
save_file({"observations": observations, "actions": actions.astype(np.float64), "terminals": last},
          FOLDER / "arrays.safetensors")
