'use strict';
// A map for each run, one goal and one start for all of them. No library, nothing from elsewhere.

// Cividis, which the colour-blind read as well: near is dark, far is light.
const SHADES = ['#00224e', '#123570', '#3b496c', '#575d6d', '#707173', '#8a8678', '#a59c74',
  '#c3b369', '#e1cc55', '#fee838'].map((text) => [1, 3, 5].map((at) =>
  parseInt(text.slice(at, at + 2), 16)));
const CURVES = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9'];

const view = { runs: [], axes: [0, 1], direction: 'to', marker: 'goal', goal: null, start: null,
  range: [0, 1], bounds: null };
const element = (id) => document.getElementById(id);

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

function shade(fraction) {
  const at = Math.min(Math.max(fraction, 0), 1) * (SHADES.length - 1);
  const below = Math.min(Math.floor(at), SHADES.length - 2);
  return SHADES[below].map((low, k) => low + (at - below) * (SHADES[below + 1][k] - low));
}

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
    const run = { index, about, states: new Float32Array(), values: null, path: null, wanted: 0,
      shown: 0 };
    view.runs.push(run);
    build(run);
    if (about.ready) run.states = await floats('states', { run: index });
  }
  const width = Math.max(1, ...view.runs.map((run) => run.about.width || 1));
  for (const [id, chosen] of [['across', 0], ['up', Math.min(1, width - 1)]]) {
    for (let axis = 0; axis < width; axis++) element(id).add(new Option(`coordinate ${axis}`, axis));
    element(id).value = chosen;
  }
  view.axes = [0, Math.min(1, width - 1)];
  measure();
  const first = view.runs.find((run) => run.about.ready);
  if (first) {
    view.goal = row(first, 0);
    view.start = row(first, Math.floor(count(first) / 2));
  }
  await refresh();
  document.body.dataset.ready = 'true';
}

const count = (run) => run.about.ready ? run.states.length / run.about.width : 0;
const row = (run, index) =>
  Array.from(run.states.subarray(index * run.about.width, (index + 1) * run.about.width));

function build(run) {
  const box = document.createElement('article');
  box.className = 'run';
  const title = document.createElement('h2');
  title.textContent = run.about.ready
    ? `${run.about.name}: ${run.about.method}, ${run.about.read_out}`
    : `${run.about.name}: ${run.about.why}`;
  run.canvas = document.createElement('canvas');
  run.canvas.tabIndex = 0;
  run.canvas.setAttribute('role', 'application');
  run.canvas.setAttribute('aria-label', `Map of ${run.about.name}`);
  run.result = document.createElement('p');
  run.result.className = 'result';
  box.append(title, run.canvas, run.result);
  if (run.about.warning) {
    const note = document.createElement('p');
    note.className = 'note';
    note.textContent = run.about.warning;
    box.append(note);
  }
  if (run.about.episodes) {
    const button = document.createElement('button');
    button.textContent = 'Play an episode';
    button.onclick = () => play(run);
    box.append(button);
  }
  element('maps').append(box);
  listen(run);
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
  view.bounds = bounds.map(([low, high]) => {
    const margin = (high - low) * 0.05 || 1;
    return low <= high ? [low - margin, high + margin] : [-1, 1];
  });
}

/** Asks every run for its map and its path; an answer that is overtaken is dropped. */
async function refresh() {
  await Promise.all(view.runs.filter((run) => run.about.ready).map(async (run) => {
    const number = ++run.wanted;
    const end = view.direction === 'to' ? view.goal : view.start;
    const between = { run: run.index, from: view.start.join(), to: view.goal.join() };
    try {
      const values = await floats('map', { run: run.index, [view.direction]: end.join() });
      const path = run.about.composed ? await json('path', between) : null;
      const found = await json('distance', between);
      if (number !== run.wanted) return;
      Object.assign(run, { values, path, shown: number });
      run.result.textContent = `From start to goal: ${found.words}`;
      run.result.dataset.distance = found.distance;
    } catch (error) {
      run.result.textContent = error.message;
    }
  }));
  let [low, high] = [Infinity, -Infinity];
  for (const run of view.runs) {
    for (const value of run.values || []) {
      if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
    }
  }
  view.range = low < high ? [low, high] : [0, 1];
  [element('low').textContent, element('high').textContent] = view.range.map((x) => x.toFixed(2));
  view.runs.forEach(draw);
}

const pixel = (canvas, [x, y]) => {
  const [[left, right], [low, high]] = view.bounds;
  return [(x - left) / (right - left) * canvas.width, (high - y) / (high - low) * canvas.height];
};

function draw(run) {
  const { canvas } = run;
  if (!run.about.ready) { canvas.hidden = true; return; }
  const [[left, right], [low, high]] = view.bounds;
  const ratio = Math.min(Math.max((high - low) / (right - left), 0.3), 1.2);
  const sharp = window.devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * sharp);
  canvas.height = Math.round(canvas.width * ratio);
  const paint = canvas.getContext('2d');
  paint.clearRect(0, 0, canvas.width, canvas.height);
  const size = Math.max(2, 3 * sharp);
  const shown = (state) => [state[view.axes[0]], state[view.axes[1]]];
  const [near, far] = view.range;
  // The far ones first, so that near ones are not hidden.
  const order = Array.from({ length: count(run) }, (_, index) => index);
  if (run.values) order.sort((a, b) => run.values[b] - run.values[a]);
  for (const index of order) {
    const value = run.values ? run.values[index] : Infinity;
    const start = index * run.about.width;
    const [x, y] = pixel(canvas, view.axes.map((axis) => run.states[start + axis]));
    paint.fillStyle = Number.isFinite(value)
      ? `rgb(${shade((value - near) / (far - near)).map(Math.round)})` : style('--no-way');
    paint.fillRect(x - size / 2, y - size / 2, size, size);
  }
  const line = run.episode || (run.path && run.path.arrived && run.path.states.map(shown));
  if (line) {
    for (const [colour, wide] of [[style('--paper'), 6], [style('--path'), 2.5]]) {
      paint.strokeStyle = colour;
      paint.lineWidth = wide * sharp;
      paint.beginPath();
      line.forEach((place, at) => {
        const [x, y] = pixel(canvas, place);
        if (at) paint.lineTo(x, y); else paint.moveTo(x, y);
      });
      paint.stroke();
    }
  }
  dot(paint, pixel(canvas, shown(view.start)), 7 * sharp);
  star(paint, pixel(canvas, shown(view.goal)), 11 * sharp);
}

function dot(paint, [x, y], size) {
  paint.beginPath();
  paint.arc(x, y, size, 0, 2 * Math.PI);
  finish(paint, style('--path'));
}

function star(paint, [x, y], size) {
  paint.beginPath();
  for (let at = 0; at < 10; at++) {
    const [angle, far] = [Math.PI * (at / 5 - 0.5), at % 2 ? size * 0.45 : size];
    paint.lineTo(x + far * Math.cos(angle), y + far * Math.sin(angle));
  }
  paint.closePath();
  finish(paint, '#ffd400');
}

function finish(paint, colour) {
  paint.fillStyle = colour;
  paint.strokeStyle = style('--ink');
  paint.lineWidth = 1.5 * (window.devicePixelRatio || 1);
  paint.fill();
  paint.stroke();
}

// ---- Hands and keys ----

/** The place of the plane under the pointer. */
function place(run, event) {
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
    const at = place(run, event);
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
    const at = place(run, event);
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

// ---- Episodes and curves ----

async function play(run) {
  const found = await json('episode', { run: run.index, seed: Math.floor(Math.random() * 1e6) });
  view.goal = stateAt(run, found.goal);
  await refresh();
  for (let at = 2; at <= found.path.length; at++) {
    run.episode = found.path.slice(0, at);
    draw(run);
    await new Promise((done) => setTimeout(done, 2000 / found.path.length));
  }
  run.result.textContent = found.success ? `Arrived after ${found.steps} steps.`
    : `Not there after ${found.steps} steps.`;
}

async function curves() {
  const all = new Map();
  for (const run of view.runs) {
    const found = await json('curves', { run: run.index });
    for (const [name, points] of Object.entries(found)) {
      if (!all.has(name)) all.set(name, []);
      all.get(name).push([run, points]);
    }
  }
  element('curves').replaceChildren(...[...all].map(([name, lines]) => chart(name, lines)));
}

function chart(name, lines) {
  const points = lines.flatMap(([, points]) => points);
  const bound = (at, pick) => points.reduce((best, point) => pick(best, point[at]), points[0][at]);
  const [left, right, low, high] =
    [bound(0, Math.min), bound(0, Math.max), bound(1, Math.min), bound(1, Math.max)];
  const figure = document.createElement('figure');
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 100 60');
  svg.setAttribute('preserveAspectRatio', 'none');
  for (const [run, points] of lines) {
    const line = document.createElementNS(svg.namespaceURI, 'polyline');
    line.setAttribute('stroke', CURVES[run.index % CURVES.length]);
    line.setAttribute('points', points.map(([x, y]) =>
      `${2 + 96 * (x - left) / (right - left || 1)},${57 - 54 * (y - low) / (high - low || 1)}`)
      .join(' '));
    svg.append(line);
  }
  const caption = document.createElement('figcaption');
  caption.textContent = `${name}: ${low.toPrecision(3)} to ${high.toPrecision(3)}, `
    + `step ${left} to ${right}`;
  figure.append(svg, caption);
  return figure;
}

/** Models that have changed are shown anew; curves grow while a run trains. */
async function watch() {
  try {
    const found = await json('runs', {});
    for (const [index, about] of found.entries()) {
      const run = view.runs[index];
      const changed = about.ready && about.version !== run.about.version;
      const title = run.canvas.previousSibling;
      Object.assign(run.about, about);
      if (changed) {
        run.canvas.hidden = false;
        title.textContent = `${about.name}: ${about.method}, ${about.read_out}`;
        run.states = await floats('states', { run: index });
        if (!view.goal) [view.goal, view.start] = [row(run, 0), row(run, Math.floor(count(run) / 2))];
        measure();
        await refresh();
      }
    }
    await curves();
  } catch (error) {
    element('hover').textContent = `The program behind this page does not answer (${error.message}).`;
  }
  setTimeout(watch, 2000);
}

const bar = element('bar').getContext('2d');
for (let x = 0; x < 256; x++) {
  bar.fillStyle = `rgb(${shade(x / 255).map(Math.round)})`;
  bar.fillRect(x, 0, 1, 12);
}
begin().then(watch);
