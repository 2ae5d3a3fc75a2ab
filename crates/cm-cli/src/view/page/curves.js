'use strict';
// What a run wrote down while it trained: a small chart for each name, a line for each run.

const CURVES = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9'];

const colour = (run) => CURVES[run.index % CURVES.length];

async function curves() {
  const all = new Map();
  for (const run of view.runs) {
    const found = await json('curves', { run: run.index });
    for (const [name, points] of Object.entries(found)) {
      if (!points.length) continue;
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
    line.setAttribute('stroke', colour(run));
    // A single point is drawn as a dot: a line to itself with round ends.
    line.setAttribute('points', (points.length > 1 ? points : [...points, ...points]).map(([x, y]) =>
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
