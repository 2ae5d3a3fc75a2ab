'use strict';
// A map for each run, one goal and one start for all of them. No library, nothing from elsewhere.

const view = { runs: [], axes: [0, 1], direction: 'to', marker: 'goal', goal: null, start: null,
  range: [0, 1], bounds: null, wanted: 0, shown: 0, pending: null };
const element = (id) => document.getElementById(id);

async function ask(path, query) {
  const answer = await fetch(`/api/${path}?${new URLSearchParams(query)}`);
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer;
}
const json = async (path, query) => (await ask(path, query)).json();
const floats = async (path, query) => new Float32Array(await (await ask(path, query)).arrayBuffer());

// ---- Runs ----

async function begin() {
  const found = await json('runs', {});
  for (const [index, about] of found.entries()) {
    const run = { index, about, states: new Float32Array(), values: null, path: null };
    view.runs.push(run);
    build(run);
    if (about.ready) run.states = await floats('states', { run: index });
  }
  const first = view.runs.find((run) => run.about.ready);
  if (first) place(first);
  await refresh();
  document.body.dataset.ready = 'true';
}

/** Axes, goal and start for the first run that has states. */
function place(run) {
  const width = Math.max(1, ...view.runs.map((run) => run.about.width || 1));
  view.axes = [0, Math.min(1, width - 1)];
  ['across', 'up'].forEach((id, side) => {
    element(id).replaceChildren(...Array.from({ length: width }, (_, axis) =>
      new Option(`coordinate ${axis}`, axis)));
    element(id).value = view.axes[side];
  });
  view.goal = row(run, 0);
  view.start = row(run, Math.floor(count(run) / 2));
  measure();
}

const count = (run) => run.about.ready ? run.states.length / run.about.width : 0;
const row = (run, index) =>
  Array.from(run.states.subarray(index * run.about.width, (index + 1) * run.about.width));

function build(run) {
  run.title = document.createElement('h2');
  run.canvas = document.createElement('canvas');
  run.canvas.tabIndex = 0;
  run.canvas.setAttribute('role', 'application');
  run.canvas.setAttribute('aria-label', `Map of ${run.about.name}`);
  run.result = document.createElement('p');
  run.result.className = 'result';
  run.note = document.createElement('p');
  run.note.className = 'note';
  run.button = document.createElement('button');
  run.button.textContent = 'Play an episode';
  run.button.onclick = () =>
    play(run).catch((error) => { run.result.textContent = error.message; });
  const box = document.createElement('article');
  box.className = 'run';
  box.append(run.title, run.canvas, run.result, run.note, run.button);
  element('maps').append(box);
  describe(run);
  listen(run);
}

function describe(run) {
  const { about } = run;
  const mark = document.createElement('span');
  mark.className = 'mark';
  mark.style.background = colour(run);
  run.title.replaceChildren(mark, about.ready
    ? `${about.name}: ${about.method}, ${about.read_out}` : `${about.name}: ${about.why}`);
  run.canvas.hidden = !about.ready;
  run.note.textContent = [about.warning, about.trust].filter(Boolean).join('; ');
  run.button.hidden = !about.episodes;
}

// ---- What is shown ----

function measure() {
  const bounds = [[Infinity, -Infinity], [Infinity, -Infinity]];
  for (const run of view.runs) {
    for (let index = 0; index < count(run); index++) {
      for (const side of [0, 1]) {
        const value = run.states[index * run.about.width + view.axes[side]];
        bounds[side][0] = Math.min(bounds[side][0], value);
        bounds[side][1] = Math.max(bounds[side][1], value);
      }
    }
  }
  for (const corner of view.runs.flatMap(walls).flat()) {
    for (const side of [0, 1]) {
      bounds[side][0] = Math.min(bounds[side][0], corner[side]);
      bounds[side][1] = Math.max(bounds[side][1], corner[side]);
    }
  }
  view.bounds = bounds.map(([low, high]) => {
    const margin = (high - low) * 0.05 || 1;
    return low <= high ? [low - margin, high + margin] : [-1, 1];
  });
}

/** Shows the goal and the start as they are now; changes on the way are taken up together. */
function refresh() {
  view.wanted++;
  view.pending ||= update().finally(() => { view.pending = null; });
  return view.pending;
}

/** First the maps, which come at once, then paths and numbers. */
async function update() {
  while (view.shown !== view.wanted) {
    const number = view.wanted;
    const ready = view.runs.filter((run) => run.about.ready);
    await Promise.all(ready.map((run) => guarded(run, map)));
    scale();
    view.runs.forEach(draw);
    view.drawn = performance.now();
    await Promise.all(ready.map((run) => guarded(run, between)));
    ready.forEach(draw);
    view.shown = number;
  }
}

async function guarded(run, what) {
  try {
    await what(run);
  } catch (error) {
    run.values = run.path = run.asked = null;
    run.result.textContent = error.message;
  }
}

async function map(run) {
  const end = view.direction === 'to' ? view.goal : view.start;
  const query = { run: run.index, [view.direction]: end.join() };
  const asked = JSON.stringify([query, run.about.version]);
  if (asked === run.asked) return;
  run.values = await floats('map', query);
  run.asked = asked;
}

async function between(run) {
  const ends = { run: run.index, from: view.start.join(), to: view.goal.join() };
  run.path = run.about.composed ? await json('path', ends) : null;
  const found = await json('distance', ends);
  run.result.textContent = `From start to goal: ${found.words}`;
  run.result.dataset.distance = found.distance;
}

/** One scale of colours for all runs. */
function scale() {
  let [low, high] = [Infinity, -Infinity];
  for (const run of view.runs) {
    for (const value of run.values || []) {
      if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
    }
  }
  view.range = low < high ? [low, high] : [0, 1];
  [element('low').textContent, element('high').textContent] = view.range.map((x) => x.toFixed(2));
}

// ---- Hands and keys ----

/** The place of the plane under the pointer. */
function under(run, event) {
  const box = run.canvas.getBoundingClientRect();
  const [[left, right], [low, high]] = view.bounds;
  return [left + (event.clientX - box.left) / box.width * (right - left),
    high - (event.clientY - box.top) / box.height * (high - low)];
}

/** The row of the data nearest to a place, and its number. */
function nearest(run, [x, y]) {
  const [[left, right], [low, high]] = view.bounds;
  let best = [Infinity, 0];
  for (let index = 0; index < count(run); index++) {
    const start = index * run.about.width;
    const across = (run.states[start + view.axes[0]] - x) / (right - left);
    const up = (run.states[start + view.axes[1]] - y) / (high - low);
    const far = across * across + up * up;
    if (far < best[0]) best = [far, index];
  }
  return best[1];
}

/** A whole state at a place: what is not shown is that of the nearest row of the data. */
function stateAt(run, at) {
  const state = row(run, nearest(run, at));
  view.axes.forEach((axis, side) => {
    const [low, high] = view.bounds[side];
    const digits = Math.min(Math.max(4 - Math.floor(Math.log10(high - low)), 0), 20);
    state[axis] = Number(at[side].toFixed(digits));
  });
  return state;
}

function listen(run) {
  const { canvas } = run;
  let dragged = null;
  canvas.addEventListener('pointerdown', (event) => {
    const at = under(run, event);
    const box = canvas.getBoundingClientRect();
    const away = (state) => {
      const [x, y] = pixel(canvas, [state[view.axes[0]], state[view.axes[1]]]);
      return Math.hypot(x * box.width / canvas.width - (event.clientX - box.left),
        y * box.height / canvas.height - (event.clientY - box.top));
    };
    dragged = away(view.start) < 18 ? 'start' : view.marker;
    canvas.setPointerCapture(event.pointerId);
    move(run, dragged, at);
  });
  canvas.addEventListener('pointermove', (event) => {
    const at = under(run, event);
    if (dragged) move(run, dragged, at);
    if (!run.values || !count(run)) return;
    const index = nearest(run, at);
    const value = run.values[index];
    const words = Number.isFinite(value) ? `${value.toFixed(4)} nats` : 'no way in the data';
    const state = row(run, index).map((x) => Number(x.toPrecision(4))).join(', ');
    element('hover').textContent = `(${state}): ${words}`;
  });
  for (const name of ['pointerup', 'pointercancel']) {
    canvas.addEventListener(name, () => { dragged = null; });
  }
  canvas.addEventListener('keydown', (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const by = moves[event.key];
    if (by) {
      const state = view[view.marker];
      const steps = view.bounds.map(([low, high]) => (high - low) / 50);
      move(run, view.marker, view.axes.map((axis, side) => state[axis] + by[side] * steps[side]));
      event.preventDefault();
    } else if ('gG'.includes(event.key)) {
      choose('marker', 'goal');
    } else if ('sS'.includes(event.key)) {
      choose('marker', 'start');
    } else if ('dD'.includes(event.key)) {
      choose('direction', view.direction === 'to' ? 'from' : 'to');
    }
  });
}

function move(run, marker, at) {
  if (!count(run)) return;
  view[marker] = stateAt(run, at);
  view.runs.forEach((other) => { other.episode = null; });
  refresh();
}

function choose(name, value) {
  view[name] = value;
  element(name).value = value;
  refresh();
}

for (const name of ['direction', 'marker']) {
  element(name).onchange = (event) => choose(name, event.target.value);
}
['across', 'up'].forEach((name, side) => {
  element(name).onchange = (event) => {
    view.axes[side] = Number(event.target.value);
    measure();
    view.runs.forEach(draw);
  };
});
window.addEventListener('resize', () => view.runs.forEach(draw));
darkness.onchange = () => { drawBar(); view.runs.forEach(draw); };

// ---- Episodes, and runs that train ----

async function play(run) {
  const found = await json('episode', { run: run.index, seed: Math.floor(Math.random() * 1e6) });
  view.goal = stateAt(run, found.goal);
  view.start = stateAt(run, found.path[0]);
  await refresh();
  for (let at = 2; at <= found.path.length; at++) {
    run.episode = found.path.slice(0, at);
    draw(run);
    await new Promise((done) => setTimeout(done, 2000 / found.path.length));
  }
  run.result.textContent = found.success ? `Arrived after ${found.steps} steps.`
    : `Not there after ${found.steps} steps.`;
}

/** Models that have changed are shown anew; curves grow while a run trains. */
async function watch() {
  try {
    const found = await json('runs', {});
    for (const [index, about] of found.entries()) {
      const run = view.runs[index];
      const changed = about.ready && about.version !== run.about.version;
      run.about = about;
      describe(run);
      if (!changed) continue;
      run.states = await floats('states', { run: index });
      if (view.goal) measure(); else place(run);
      await refresh();
    }
    await curves();
    if (view.silent) element('hover').textContent = view.silent = '';
  } catch (error) {
    view.silent = `The program behind this page does not answer (${error.message}).`;
    element('hover').textContent = view.silent;
  }
  setTimeout(watch, 2000);
}

drawBar();
begin().then(watch);
