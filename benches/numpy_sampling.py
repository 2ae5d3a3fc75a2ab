"""The NumPy way to draw batches of transitions with geometric future goals: the baseline of benches/sampling.rs.

For each batch size read from the standard input, prints the nanoseconds per sample of drawing 16,384 samples.
"""

import sys
import time

import numpy as np

STEPS, OBSERVATION, ACTION, LENGTH, GAMMA = 1_000_000, 29, 8, 1000, 0.99

generator = np.random.default_rng(0)
observations = generator.standard_normal((STEPS, OBSERVATION), dtype=np.float32)
actions = generator.standard_normal((STEPS, ACTION), dtype=np.float32)
last = (np.arange(STEPS) // LENGTH + 1) * LENGTH - 1  # of each step's trajectory
starts = np.flatnonzero(np.arange(STEPS) != last)  # steps that have a next one
log_gamma = np.log(GAMMA)


def batch(size):
    i = starts[generator.integers(0, len(starts), size)]
    horizon = last[i] - i
    passed = np.log1p(generator.random(size) * np.expm1(horizon * log_gamma)) / log_gamma
    j = i + np.minimum(horizon, 1 + passed.astype(np.int64))
    return observations[i], actions[i], observations[i + 1], observations[j], actions[j]


for line in sys.stdin:
    size = int(line)
    start = time.perf_counter()
    for _ in range(16_384 // size):
        batch(size)
    print((time.perf_counter() - start) * 1e9 / 16_384, flush=True)
