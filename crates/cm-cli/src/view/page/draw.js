'use strict';
// How a map is drawn: states by their colour, walls, the path, the goal and the start.

const hex = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));

// Cividis, which the colour-blind read as well; on a dark ground it begins with a lighter blue.
const SHADES = {
  light: ['#00224e', '#123570', '#3b496c', '#575d6d', '#707173', '#8a8678', '#a59c74', '#c3b369',
    '#e1cc55', '#fee838'],
  dark: ['#4a7bd0', '#6f8dc0', '#8d9bad', '#a8a99a', '#c2b985', '#dccb66', '#fee838'],
};

// 256 colours of each, as parts from 0 to 255.
const COLOURS = Object.fromEntries(Object.entries(SHADES).map(([ground, shades]) => {
  const parts = shades.map(hex);
  return [ground, Array.from({ length: 256 }, (_, index) => {
    const at = index / 255 * (parts.length - 1);
    const below = Math.min(Math.floor(at), parts.length - 2);
    return parts[below].map((low, k) => Math.round(low + (at - below) * (parts[below + 1][k] - low)));
  })];
}));
const darkness = window.matchMedia('(prefers-color-scheme: dark)');
const colours = () => COLOURS[darkness.matches ? 'dark' : 'light'];

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

/** Rectangles by two corners; they stand in the plane of the first two coordinates alone. */
const walls = (run) => view.axes.join() === '0,1' && run.about.walls || [];

const pixel = (canvas, [x, y]) => {
  const [[left, right], [low, high]] = view.bounds;
  return [(x - left) / (right - left) * canvas.width, (high - y) / (high - low) * canvas.height];
};

function draw(run) {
  const { canvas } = run;
  if (!run.about.ready || !view.goal) return;
  const [[left, right], [low, high]] = view.bounds;
  const ratio = Math.min(Math.max((high - low) / (right - left), 0.3), 1.2);
  const sharp = window.devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * sharp);
  canvas.height = Math.round(canvas.width * ratio);
  const paint = canvas.getContext('2d');
  paint.clearRect(0, 0, canvas.width, canvas.height);
  paint.fillStyle = style('--wall');
  for (const [lowest, highest] of walls(run)) {
    // Whole pixels, so that walls side by side show no seam.
    const [left, right] = [pixel(canvas, lowest)[0], pixel(canvas, highest)[0]].map(Math.round);
    const [low, high] = [pixel(canvas, lowest)[1], pixel(canvas, highest)[1]].map(Math.round);
    paint.fillRect(left, high, right - left, low - high);
  }
  roads(run, paint, sharp);
  if (canvas.width && canvas.height) paint.drawImage(points(run, Math.round(3 * sharp)), 0, 0);
  const shown = (state) => [state[view.axes[0]], state[view.axes[1]]];
  const line = run.episode || (run.path && run.path.arrived && run.path.states.map(shown));
  if (line) {
    // Where a walker turns back, a pointed join would reach far beyond.
    paint.lineJoin = 'round';
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

/** The links of the road map that is kept with the model. */
function roads(run, paint, sharp) {
  const { nodes, links, width } = run.about;
  if (!nodes || !links) return;
  const place = (node) =>
    pixel(run.canvas, view.axes.map((axis) => nodes[node * width + axis]));
  paint.strokeStyle = style('--no-way');
  paint.lineWidth = 0.5 * sharp;
  paint.beginPath();
  for (let at = 0; at < links.length; at += 2) {
    paint.moveTo(...place(links[at]));
    paint.lineTo(...place(links[at + 1]));
  }
  paint.stroke();
}

/** The states as a picture of their own: tens of thousands at once, near ones over far ones. */
function points(run, size) {
  const { width, height } = run.canvas;
  const picture = new OffscreenCanvas(width, height);
  const paint = picture.getContext('2d');
  const image = paint.createImageData(width, height);
  // As the picture's bytes lie in memory: red first.
  const inks = [...colours(), hex(style('--no-way').trim())].map(([red, green, blue]) =>
    (255 << 24 | blue << 16 | green << 8 | red) >>> 0);
  const pixels = new Uint32Array(image.data.buffer);
  const [[left, right], [low, high]] = view.bounds;
  const [near, far] = view.range;
  const [across, up] = view.axes;
  const ink = (index) => {
    const value = run.values ? run.values[index] : Infinity;
    const fraction = Math.min(Math.max((value - near) / (far - near), 0), 1);
    return Number.isFinite(value) ? Math.round(fraction * 255) : 256;
  };
  // Sorted by colour, the farthest first.
  const total = count(run);
  const [order, ends] = [new Uint32Array(total), new Uint32Array(258)];
  for (let index = 0; index < total; index++) ends[257 - ink(index)]++;
  for (let at = 1; at < 258; at++) ends[at] += ends[at - 1];
  for (let index = 0; index < total; index++) order[ends[256 - ink(index)]++] = index;
  const half = size >> 1;
  for (const index of order) {
    const start = index * run.about.width;
    const x = Math.round((run.states[start + across] - left) / (right - left) * width) - half;
    const y = Math.round((high - run.states[start + up]) / (high - low) * height) - half;
    const colour = inks[ink(index)];
    for (let row = Math.max(y, 0); row < Math.min(y + size, height); row++) {
      pixels.fill(colour, row * width + Math.max(x, 0), row * width + Math.min(x + size, width));
    }
  }
  paint.putImageData(image, 0, 0);
  return picture;
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

/** The scale beside the maps. */
function drawBar() {
  const bar = element('bar').getContext('2d');
  for (let x = 0; x < 256; x++) {
    bar.fillStyle = `rgb(${colours()[x]})`;
    bar.fillRect(x, 0, 1, 12);
  }
}
