"""Training steps in JAX as the baseline of benches/step.rs on a GPU: CMD-1, CMD-2, CRL and QRL.

Losses and sizes are those of the presets that the benchmark measures (AntMaze with the settings of
the authors' code, and the two-dimensional experiment). Batches lie on the device, and many steps
run inside one compiled scan, so that nothing but a step's own work is left to measure; several
seeds at once are a vmap over them.

For each line `METHOD WORLD BATCH WIDTH SEEDS` of the standard input (`cmd1 antmaze 256 512 1`),
prints the microseconds of a step of all seeds together. Matrix products have the default
precision, which is TF32 on a GPU.
"""

import functools
import sys
import time
from types import SimpleNamespace

import jax
import jax.numpy as jnp

CHUNK = 100  # steps of a compiled scan
CHUNKS = 5  # scans between two looks at the clock; the best of three counts

ANTMAZE = SimpleNamespace(state=29, action=8, goal=2, layers=4, activate=jax.nn.relu)
PLANE = SimpleNamespace(state=2, action=2, goal=2, layers=3, activate=jax.nn.silu)
CENTRES = jnp.linspace(-60.0, 60.0, 20)  # of the plane's soft features


def network(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    layer = lambda key, i, o: (
        jax.random.uniform(key, (i, o), minval=-1, maxval=1) * (3 / i) ** 0.5,
        jnp.zeros(o),
    )
    return [layer(*x) for x in zip(keys, sizes[:-1], sizes[1:])]


def forward(layers, x, activate):
    for weight, bias in layers[:-1]:
        x = activate(x @ weight + bias)
    weight, bias = layers[-1]
    return x @ weight + bias


def unit(x, epsilon=1e-8):
    return x / (jnp.sqrt(jnp.sum(x * x, -1, keepdims=True)) + epsilon)


def mrn(x, y):
    (xs, xa), (ys, ya) = jnp.split(x, 2, -1), jnp.split(y, 2, -1)
    return jnp.sqrt(jnp.sum(jnp.square(xs - ys) + 1e-8, -1)) + jnp.max(jax.nn.relu(xa - ya), -1)


def iqe(x, y, logit, groups=64):
    """The length of the union of intervals from x to max(x, y), by sorting their ends."""
    x, y = (z.reshape(z.shape[0], groups, -1) for z in (x, y))
    some = (x < y).astype(x.dtype)
    ends = jnp.concatenate([x, y], -1)
    order = jnp.argsort(ends, -1)
    ends = jnp.take_along_axis(ends, order, -1)
    covering = jnp.cumsum(jnp.take_along_axis(jnp.concatenate([some, -some], -1), order, -1), -1)
    inside = (covering[..., :-1] > 0).astype(x.dtype)
    lengths = jnp.sum(jnp.diff(ends, axis=-1) * inside, -1)
    share = jax.nn.sigmoid(logit)
    return share * jnp.max(lengths, -1) + (1 - share) * jnp.mean(lengths, -1)


def info_nce(logits):
    diagonal = jnp.diag(logits)
    both = jax.nn.logsumexp(logits, 0) + jax.nn.logsumexp(logits, 1)
    return jnp.mean(0.5 * both - diagonal)


def adam(parameters, gradients, state, rate):
    first, second, count = state
    tree, count = jax.tree_util.tree_map, count + 1
    first = tree(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = tree(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    one, two = 1 - 0.9**count, 1 - 0.999**count
    move = lambda p, m, v: p - rate * (m / one) / (jnp.sqrt(v / two) + 1e-8)
    return tree(move, parameters, first, second), (first, second, count)


class Learner:
    """What methods share: the world's features, the policy and its loss."""

    def __init__(self, world, width):
        self.world, self.hidden = world, [width] * world.layers
        self.is_plane = world is PLANE
        self.state_columns = 40 if self.is_plane else world.state
        self.inputs = 80 if self.is_plane else world.state + world.action

    def net(self, key, inputs, outputs, hidden=None):
        return network(key, [inputs, *(hidden or self.hidden), outputs])

    def run(self, layers, x):
        return forward(layers, x, self.world.activate)

    def seen(self, state):
        if not self.is_plane:
            return state
        return jnp.tanh((state[..., None] - CENTRES) / 5.0).reshape(*state.shape[:-1], -1)

    def acting(self, action):
        return jnp.repeat(unit(action, 1e-6), 20, -1) if self.is_plane else action

    def joined(self, state, action):
        return jnp.concatenate([self.seen(state), self.acting(action)], -1)

    def quasimetric(self, key):
        if not self.is_plane:
            return [self.net(key, self.inputs, 512)]
        return [self.net(k, self.inputs, 256) for k in jax.random.split(key)]

    def points(self, networks, x):
        return jnp.concatenate([self.run(layers, x) for layers in networks], -1)

    def pairs(self, networks, x, y):
        return mrn(self.points(networks, x)[:, None], self.points(networks, y)[None])

    def rows(self, networks, x, y):
        return mrn(self.points(networks, x), self.points(networks, y))

    def policy(self, key):
        outputs = self.world.action * (1 if self.is_plane else 2)
        columns = self.state_columns + (40 if self.is_plane else self.world.goal)
        return self.net(key, columns, outputs)

    def act(self, policy, inputs, key):
        out = self.run(policy, inputs)
        if self.is_plane:
            return unit(out, 1e-6)
        mean, scale = jnp.split(out, 2, -1)
        return jnp.tanh(mean + (jax.nn.softplus(scale) + 1e-6) * jax.random.normal(key, mean.shape))

    def policy_loss(self, policy, batch, distance, key):
        """Distance and cloning: on the plane to goals of other rows, in AntMaze with C-Mixup."""
        order, draw, mix, other, noise = jax.random.split(key, 5)
        state, action, goal, goal_action = batch.state, batch.action, batch.goal, batch.goal_action
        inputs = jnp.concatenate([self.seen(state), self.seen(goal[:, : self.world.goal])], -1)
        if self.is_plane:
            places = jax.random.permutation(order, len(state))
            goals, goal_actions = goal[places], goal_action[places]
            own = self.act(policy, jnp.concatenate([self.seen(state), self.seen(goals)], -1), draw)
            cloning = jnp.sum(jnp.square(self.act(policy, inputs, noise) - action), -1)
            return 0.99 * jnp.mean(distance(own, goals, goal_actions)) + 0.01 * jnp.mean(cloning)
        own = self.act(policy, inputs, draw)
        lengths = jnp.sum(inputs * inputs, -1)
        squares = lengths[:, None] + lengths[None] - 2 * inputs @ inputs.T
        partner = jax.random.categorical(other, -squares / (2 * 2.75**2))
        weight = jnp.median(jax.random.uniform(mix, (len(state), 1, 3)), -1)  # Beta(2, 2)
        mixed = lambda x: weight * x + (1 - weight) * x[partner]
        cloning = jnp.mean(jnp.square(self.act(policy, mixed(inputs), noise) - mixed(action)), -1)
        return 0.8 * jnp.mean(distance(own, goal, goal_action)) + 0.2 * jnp.mean(cloning)


class Cmd1(Learner):
    def start(self, key):
        a, b, c, d = jax.random.split(key, 4)
        metrics = [self.quasimetric(k) for k in ([a, b] if self.is_plane else [a])]
        return dict(
            metric=dict(metrics=metrics, potential=self.net(c, self.state_columns, 1)),
            policy=self.policy(d),
        )

    def losses(self, batch, key):
        key, order = jax.random.split(key)
        divisor = 1.0 if self.is_plane else 8.0
        scale = 256.0 if self.is_plane else 1.0

        def contrastive(own, _):
            actions = jnp.roll(batch.goal_action, 1, 0)
            if self.is_plane:
                actions = batch.goal_action[jax.random.permutation(order, len(actions))]
            x, y = self.joined(batch.state, batch.action), self.joined(batch.goal, actions)
            potential = self.run(own["potential"], self.seen(batch.goal))[:, 0]
            loss = lambda d: info_nce((potential[None] - self.pairs(d, x, y) / scale) / divisor)
            return sum(map(loss, own["metrics"])) / len(own["metrics"])

        def policy(own, fixed):
            def distance(action, goal, goal_action):
                x, y = self.joined(batch.state, action), self.joined(goal, goal_action)
                each = [self.rows(d, x, y) for d in fixed["metric"]["metrics"]]
                return functools.reduce(jnp.maximum, each)

            return self.policy_loss(own, batch, distance, key)

        return dict(metric=contrastive, policy=policy)


class Critic(Learner):
    def critic(self, key):
        a, b = jax.random.split(key)
        columns = 256 if self.is_plane else 64
        phi, psi = self.net(a, self.inputs, columns), self.net(b, self.state_columns, columns)
        return dict(phi=phi, psi=psi, temperature=jnp.zeros(()))

    def phi(self, critic, state, action):
        phi = self.run(critic["phi"], self.joined(state, action))
        return phi / 256.0 if self.is_plane else unit(phi) / jnp.exp(critic["temperature"])

    def psi(self, critic, goal):
        psi = self.run(critic["psi"], self.seen(goal))
        return psi if self.is_plane else unit(psi)

    def contrastive(self, critic, batch):
        logits = self.phi(critic, batch.state, batch.action) @ self.psi(critic, batch.goal).T
        return info_nce(logits / (1.0 if self.is_plane else 8.0))


class Crl(Critic):
    def start(self, key):
        a, b = jax.random.split(key)
        return dict(critic=self.critic(a), policy=self.policy(b))

    def losses(self, batch, key):
        def policy(own, fixed):
            critic = fixed["critic"]
            value = lambda action, goal, _: jnp.sum(
                self.phi(critic, batch.state, action) * self.psi(critic, goal), -1
            )
            return self.policy_loss(own, batch, lambda *x: -value(*x), key)

        return dict(critic=lambda own, _: self.contrastive(own, batch), policy=policy)


class Cmd2(Critic):
    def start(self, key):
        a, b, c = jax.random.split(key, 3)
        metric = dict(networks=self.quasimetric(b), multiplier=jnp.ones(()))
        return dict(critic=self.critic(a), metric=metric, policy=self.policy(c))

    def losses(self, batch, key):
        key, order = jax.random.split(key)
        margin, scale = (0.05, 256.0) if self.is_plane else (0.35, 1.0)

        def penalty(x):
            x = jax.nn.relu(x)
            return jnp.where(x > 1, x - 0.5, 0.5 * x * x) if self.is_plane else x * x

        def distillation(own, fixed):
            critic = fixed["critic"]
            places = jax.random.permutation(order, len(batch.state))
            x = self.joined(batch.state, batch.action)
            y = self.joined(batch.goal, batch.goal_action[places])
            distance = self.pairs(own["networks"], x, y) / scale
            psi = self.psi(critic, batch.goal)
            reference = batch.action if self.is_plane else batch.goal_action
            at_goal = jnp.sum(self.phi(critic, batch.goal, reference) * psi, -1)
            target = at_goal[None] - self.phi(critic, batch.state, batch.action) @ psi.T
            excess = distance - target
            constraint = jnp.mean(penalty(jnp.diag(excess)))
            above = penalty(-excess)
            conservative = jnp.mean(above) - jnp.mean(jnp.diag(above)) / len(above)
            multiplier = jax.nn.softplus(own["multiplier"])
            if self.is_plane:
                root = jnp.sqrt(jax.lax.stop_gradient(multiplier))
                primal = constraint * root + conservative / root
            else:
                multiplier = multiplier + 0.01
                primal = constraint + conservative / multiplier
            return primal + multiplier * (margin - jax.lax.stop_gradient(constraint))

        def policy(own, fixed):
            def distance(action, goal, goal_action):
                x, y = self.joined(batch.state, action), self.joined(goal, goal_action)
                return self.rows(fixed["metric"]["networks"], x, y) / scale

            return self.policy_loss(own, batch, distance, key)

        return dict(
            critic=lambda own, _: self.contrastive(own, batch), metric=distillation, policy=policy
        )


class Qrl(Learner):
    """In AntMaze as its authors have it: 3, 2, 3 and 4 hidden layers, IQE; on the plane MRN."""

    def start(self, key):
        a, b, c, d = jax.random.split(key, 4)
        if self.is_plane:
            critic = dict(networks=self.quasimetric(a))
        else:
            width = self.hidden[0]
            critic = dict(
                encoder=self.net(a, self.world.state, 128, [width] * 3),
                residual=self.net(b, 128 + self.world.action, 128, [width] * 3),
                projector=self.net(c, 128, 2048, [width] * 2),
                logit=jnp.zeros(()),
            )
        return dict(critic=critic | dict(dual=jnp.zeros(())), policy=self.policy(d))

    def places(self, critic, state):
        """Inputs of the outcome of an action, and points of the metric."""
        if self.is_plane:
            return state, self.points(critic["networks"], self.joined(state, jnp.zeros_like(state)))
        latent = self.run(critic["encoder"], state)
        return latent, self.run(critic["projector"], latent)

    def outcome(self, critic, place, action):
        if self.is_plane:
            return self.points(critic["networks"], self.joined(place, action))
        after = place + self.run(critic["residual"], jnp.concatenate([place, action], -1))
        return self.run(critic["projector"], after)

    def distance(self, critic, x, y):
        return mrn(x, y) if self.is_plane else iqe(x, y, critic["logit"])

    def losses(self, batch, key):
        key, push_order, goal_order, noise = jax.random.split(key, 4)
        rows = len(batch.state)
        offset, sharpness, margin = (500.0, 0.01, 0.05) if self.is_plane else (15.0, 0.1, 0.0625)

        def critic(own, _):
            all_states = jnp.concatenate([batch.state, batch.goal, batch.next_state])
            place, point = self.places(own, all_states)
            state, goal, following = jnp.split(point, 3)
            far = self.distance(own, state, goal[jax.random.permutation(push_order, rows)])
            push = jnp.mean(jax.nn.softplus(sharpness * (offset - far))) / sharpness
            excess = jnp.mean(jnp.square(jax.nn.relu(self.distance(own, state, following) - 1)))
            outcome = self.outcome(own, place[:rows], batch.action)
            there, back = self.distance(own, outcome, following), self.distance(
                own, following, outcome
            )
            multiplier = jax.nn.softplus(own["dual"])
            stop = jax.lax.stop_gradient
            lagrangian = push + stop(multiplier) * excess + multiplier * (margin - stop(excess))
            return lagrangian + 0.5 * jnp.mean(there**2 + back**2)

        def policy(own, fixed):
            fixed = fixed["critic"]
            place, _ = self.places(fixed, batch.state)
            if self.is_plane:
                distance = lambda action, goal, _: self.distance(
                    fixed, self.outcome(fixed, place, action), self.places(fixed, goal)[1]
                )
                return self.policy_loss(own, batch, distance, key)
            goals = batch.goal[jax.random.permutation(goal_order, rows)]
            both = jnp.concatenate([goals, batch.goal])[:, : self.world.goal]
            states = jnp.concatenate([batch.state, batch.state])
            mean, scale = jnp.split(self.run(own, jnp.concatenate([states, both], -1)), 2, -1)
            scale = jax.nn.softplus(scale) + 1e-6
            action = jnp.tanh(
                mean[:rows] + scale[:rows] * jax.random.normal(noise, batch.action.shape)
            )
            distance = self.distance(
                fixed, self.outcome(fixed, place, action), self.places(fixed, goals)[1]
            )
            cut = jnp.clip(batch.action, -1 + 1e-6, 1 - 1e-6)
            standard = (jnp.arctanh(cut) - mean[rows:]) / scale[rows:]
            density = -0.5 * standard**2 - jnp.log(scale[rows:]) - jnp.log(1 - cut**2)
            share = 0.05 / 1.05
            return (1 - share) * jnp.mean(distance) - share * jnp.mean(jnp.sum(density, -1))

        return dict(critic=critic, policy=policy)


METHODS = dict(cmd1=Cmd1, cmd2=Cmd2, crl=Crl, qrl=Qrl)
WORLDS = dict(antmaze=ANTMAZE, plane=PLANE)


def batches(world, rows, key):
    """CHUNK batches on the device."""
    keys = jax.random.split(key, 5)
    size = 20.0 if world is PLANE else 1.0
    normal = lambda key, columns: jax.random.normal(key, (CHUNK, rows, columns))
    state = size * normal(keys[0], world.state)
    return SimpleNamespace(
        state=state,
        action=jnp.tanh(normal(keys[1], world.action)),
        next_state=state + normal(keys[2], world.state),
        goal=state + 3 * normal(keys[3], world.state),
        goal_action=jnp.tanh(normal(keys[4], world.action)),
    )


def measure(method, world, rows, width, seeds):
    learner = METHODS[method](WORLDS[world], width)

    def step(state, key, batch):
        parameters, moments = state
        after, moved = {}, {}
        # All losses are taken before anything moves, as in the learners.
        for name, loss in learner.losses(batch, key).items():
            gradients = jax.grad(loss)(parameters[name], parameters)
            after[name], moved[name] = adam(parameters[name], gradients, moments[name], 5e-5)
        return after, moved

    def start(key):
        parameters = learner.start(key)
        zeros = lambda p: jax.tree_util.tree_map(jnp.zeros_like, p)
        return parameters, {
            name: (zeros(p), zeros(p), jnp.zeros((), jnp.int32)) for name, p in parameters.items()
        }

    @functools.partial(jax.jit, donate_argnums=0)
    def chunk(states, key, data):
        def body(states, x):
            key, batch = x
            batch = SimpleNamespace(**batch)
            if seeds == 1:
                return step(states, key, batch), None
            return jax.vmap(step, (0, 0, None))(states, jax.random.split(key, seeds), batch), None

        return jax.lax.scan(body, states, (jax.random.split(key, CHUNK), data))[0]

    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    states = start(keys[0]) if seeds == 1 else jax.vmap(start)(jax.random.split(keys[0], seeds))
    data = vars(batches(WORLDS[world], rows, keys[1]))
    states = jax.block_until_ready(chunk(states, keys[2], data))
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(CHUNKS):
            states = chunk(states, keys[2], data)
        jax.block_until_ready(states)
        best = min(best, time.perf_counter() - begin)
    finite = all(bool(jnp.isfinite(x).all()) for x in jax.tree_util.tree_leaves(states))
    return best / (CHUNK * CHUNKS) * 1e6 if finite else float("nan")


for line in sys.stdin:
    method, world, *numbers = line.split()
    print(measure(method, world, *map(int, numbers)), flush=True)
