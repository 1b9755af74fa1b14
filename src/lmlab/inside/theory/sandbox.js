// The attention sandbox, computed here as sandbox.py computes it: a test holds the two together to 1e-6.
"use strict";
const MOST_KEYS = 10, STRIDE = 1 + 2 * MOST_KEYS, BINS = 25, FAR = 9, NODES = 4001, HALVINGS = 60;
const NEAR = [0.4, 0.6], ALONE = 0.9, LOST = 0.1;

// ---- the numbers ----

function uniform(seed, place) {
  let t = (Math.imul(seed, 0x9e3779b1) + Math.imul(place + 1, 0x6d2b79f5)) >>> 0;
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
}

function normal(seed, place) {
  return Math.sqrt(-2 * Math.log(uniform(seed, 2 * place))) * Math.cos(2 * Math.PI * uniform(seed, 2 * place + 1));
}

// 1 - the normal distribution function: a series near zero, a continued fraction far from it.
function upperTail(z) {
  if (z < 0) return 1 - upperTail(-z);
  const density = Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI);
  if (z < 3) {
    let term = z, sum = z;
    for (let n = 3; term > 1e-17 * sum; n += 2) sum += (term *= z * z / n);
    return 0.5 - density * sum;
  }
  let fraction = z;
  for (let n = 60; n > 0; n--) fraction = z + n / fraction;
  return density / fraction;
}

function queries(s) {
  const across = Math.sqrt(1 - s.overlap * s.overlap);
  const a = [s.query_a, 0], b = [s.query_b * s.overlap, s.query_b * across];
  return { one: [[a[0] + b[0], b[1]]], two: [a, b] };
}

// Attention weights of one head. noise: two normals for each key, or null.
function attend(s, gamma, noise, query) {
  const scores = [];
  for (let i = 0; i < s.keys; i++)
    scores.push(noise ? s.noise * (noise[2 * i] * query[0] + noise[2 * i + 1] * query[1]) : 0);
  scores[0] += (1 + gamma) * query[0];
  scores[1] += s.overlap * query[0] + Math.sqrt(1 - s.overlap * s.overlap) * query[1];
  const top = Math.max(...scores);
  const powers = scores.map(score => Math.exp((score - top) / s.temperature));
  const sum = powers.reduce((x, y) => x + y, 0);
  return powers.map(power => power / sum);
}

function average(heads) {
  return heads[0].map((_, i) => heads.reduce((sum, head) => sum + head[i], 0) / heads.length);
}

function values(s) {
  const degrees = [s.value_a, s.value_b];
  for (let j = 0; j < s.keys - 2; j++) degrees.push(30 + 120 * (j + 0.5) / (s.keys - 2));
  return degrees.map(d => [Math.cos(d * Math.PI / 180), Math.sin(d * Math.PI / 180)]);
}

function output(weights, points) {
  return [0, 1].map(axis => weights.reduce((sum, weight, i) => sum + weight * points[i][axis], 0));
}

function middle(points) {
  return [0, 1].map(axis => (points[0][axis] + points[1][axis]) / 2);
}

// How the share of v_a is distributed over samples that count for these shares of the whole.
function seen(s, weights, shares) {
  const points = values(s), target = middle(points), histogram = new Array(BINS).fill(0);
  let mean = 0, square = 0, near = 0, alone = 0, lost = 0, distance = 0;
  weights.forEach((w, i) => { mean += shares[i] * w[0]; });
  weights.forEach((w, i) => {
    const share = shares[i], ofA = w[0], c = output(w, points);
    square += share * (ofA - mean) ** 2;
    distance += share * ((c[0] - target[0]) ** 2 + (c[1] - target[1]) ** 2);
    if (ofA > NEAR[0] && ofA <= NEAR[1]) near += share;
    if (ofA > ALONE) alone += share;
    if (ofA <= LOST) lost += share;
    histogram[Math.min(Math.floor(ofA * BINS), BINS - 1)] += share;
  });
  return { mean, deviation: Math.sqrt(square), near, alone, lost, distance: Math.sqrt(distance), histogram };
}

// Without noise every output is a function of gamma alone, and the share of v_a grows with it.
function closed(s, weightsAt) {
  const nodes = Array.from({ length: NODES }, (_, i) => -FAR + 2 * FAR * i / (NODES - 1));
  const densities = nodes.map(z => Math.exp(-z * z / 2)), whole = densities.reduce((x, y) => x + y, 0);
  const moments = seen(s, nodes.map(z => weightsAt(z)), densities.map(d => d / whole));
  const above = limit => {
    const isAbove = z => weightsAt(z)[0] > limit;
    if (isAbove(-FAR)) return 1;
    if (!isAbove(FAR)) return 0;
    let low = -FAR, high = FAR;
    for (let n = 0; n < HALVINGS; n++) {
      const between = (low + high) / 2;
      if (isAbove(between)) high = between; else low = between;
    }
    return upperTail(high);
  };
  const edges = [1];
  for (let i = 1; i < BINS; i++) edges.push(above(i / BINS));
  edges.push(0);
  return {
    mean: moments.mean, deviation: moments.deviation, near: above(NEAR[0]) - above(NEAR[1]), alone: above(ALONE),
    lost: 1 - above(LOST), distance: moments.distance, histogram: edges.slice(0, -1).map((e, i) => e - edges[i + 1]),
  };
}

function sandbox(s) {
  const found = {}, samples = [];
  for (let n = 0; n < s.samples; n++) {
    const draw = [];
    for (let j = 0; j < 1 + 2 * s.keys; j++) draw.push(normal(s.seed, n * STRIDE + j));
    samples.push(draw);
  }
  for (const [name, heads] of Object.entries(queries(s))) {
    const weightsAt = (z, noise) => average(heads.map(query => attend(s, s.stretch * z, noise, query)));
    const weights = samples.map(draw => weightsAt(draw[0], draw.slice(1)));
    found[name] = {
      sampled: seen(s, weights, new Array(s.samples).fill(1 / s.samples)), closed: closed(s, z => weightsAt(z, null)), weights,
    };
  }
  const query = queries(s).one[0];
  const varied = 2 * s.noise ** 2 * (query[0] ** 2 + query[1] ** 2) + (s.stretch * query[0]) ** 2;
  return { ...found, score_deviation: Math.sqrt(varied) / s.temperature };
}

// ---- the pictures ----

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = { one: "var(--series-1)", two: "var(--series-0)" };
const SMALL = { fill: "var(--soft)", "font-size": 12 };

function add(parent, tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

function write(svg, x, y, text, below, style) {
  const element = add(svg, "text", { x, y, "text-anchor": "middle", fill: "var(--ink)", "font-size": 14, ...style }, text);
  if (below) add(element, "tspan", { dy: 4, "font-size": 10 }, below);
}

// Values as points of the circle, every sampled output as a faint dot, the average that is wanted as a ring.
function drawCloud(svg, s, which, found) {
  svg.textContent = "";
  const points = values(s), x = p => 160 + 118 * p[0], y = p => 154 - 118 * p[1];
  svg.setAttribute("viewBox", `0 0 320 ${Math.max(...points.map(y)) + 34}`);
  add(svg, "line", { x1: x(points[0]), y1: y(points[0]), x2: x(points[1]), y2: y(points[1]), stroke: "var(--rule)" });
  found[which].weights.slice(0, 600).forEach((w, i) => {
    const c = output(w, points), shake = 5 * Math.sin(12.9898 * (i + 1));  // dots on one line would hide each other
    add(svg, "circle", { cx: x(c), cy: y(c) + shake, r: 2.6, fill: COLOURS[which], "fill-opacity": 0.3 });
  });
  points.forEach((p, i) => {
    const weight = found[which].weights.reduce((sum, w) => sum + w[i], 0) / s.samples;
    add(svg, "circle", { cx: x(p), cy: y(p), r: 3.5 + 8 * weight, fill: i < 2 ? "var(--ink)" : "var(--soft)" });
    write(svg, x(p) + 22 * p[0], y(p) - 22 * p[1] + 5, "v", i < 2 ? "ab"[i] : String(i + 1));
  });
  const target = middle(points);
  add(svg, "circle", { cx: x(target), cy: y(target), r: 12, fill: "none", stroke: "var(--ink)", "stroke-width": 1.6 });
}

function drawAxis(svg, label, ticks, x, bottom) {
  const left = x(ticks[0]), right = x(ticks[ticks.length - 1]);
  add(svg, "line", { x1: left, y1: bottom, x2: right, y2: bottom, stroke: "var(--rule)" });
  for (const tick of ticks) {
    add(svg, "line", { x1: x(tick), y1: bottom, x2: x(tick), y2: bottom + 4, stroke: "var(--rule)" });
    write(svg, x(tick), bottom + 18, String(tick), "", SMALL);
  }
  write(svg, (left + right) / 2, bottom + 40, label, "", SMALL);
}

// Bars: how often the output held how much of v_a. Line: the closed form, dashed where noise keeps it from holding.
function drawHistogram(svg, which, found, noisy) {
  svg.textContent = "";
  const left = 12, right = 308, bottom = 150, top = 12, { sampled, closed } = found[which];
  const most = Math.max(...sampled.histogram, ...closed.histogram);
  const x = v => left + v * (right - left), y = v => bottom - v / most * (bottom - top);
  drawAxis(svg, "share of value a", [0, 0.25, 0.5, 0.75, 1], x, bottom);
  let path = "";
  sampled.histogram.forEach((share, i) => {
    const bar = { x: x(i / BINS) + 0.5, y: y(share), width: (right - left) / BINS - 1, height: bottom - y(share) };
    add(svg, "rect", { ...bar, fill: COLOURS[which], "fill-opacity": 0.45 });
    path += `${i ? "L" : "M"}${x(i / BINS)},${y(closed.histogram[i])}L${x((i + 1) / BINS)},${y(closed.histogram[i])}`;
  });
  add(svg, "path", { d: path, fill: "none", stroke: "var(--ink)", "stroke-width": 1.3, ...noisy && { "stroke-dasharray": "4 3" } });
  if (noisy) write(svg, (left + right) / 2, top - 3, "dashed: without the noise", "", SMALL);
}

// Why: the share of v_a against the length of key a, over the density of that length.
function drawCliffs(svg, s) {
  svg.textContent = "";
  const left = 40, right = 628, bottom = 200, top = 14, low = -2, high = 2;
  const x = v => left + (v - low) / (high - low) * (right - left), y = v => bottom - v * (bottom - top);
  const steps = Array.from({ length: 401 }, (_, i) => low + (high - low) * i / 400);
  const bell = v => 0.7 * Math.exp(-((v / s.stretch) ** 2) / 2);
  drawAxis(svg, "γ: key a is 1 + γ long", [-2, -1, 0, 1, 2], x, bottom);
  for (const tick of [0, 0.5, 1]) {
    add(svg, "line", { x1: left, y1: y(tick), x2: right, y2: y(tick), stroke: "var(--rule)", "stroke-width": 0.6 });
    write(svg, left - 8, y(tick) + 4, String(tick), "", { ...SMALL, "text-anchor": "end" });
  }
  if (s.stretch > 0) {
    const line = steps.map(v => `${x(v)},${y(bell(v))}`).join("L");
    add(svg, "path", { d: `M${x(low)},${bottom}L${line}L${x(high)},${bottom}Z`, fill: "var(--soft)", "fill-opacity": 0.16 });
    write(svg, x(-s.stretch) - 8, y(bell(s.stretch)) - 4, "how often γ", "", { ...SMALL, "text-anchor": "end" });
  }
  for (const [which, heads] of Object.entries(queries(s))) {
    const share = v => average(heads.map(query => attend(s, v, null, query)))[0], end = share(1.9);
    const line = steps.map(v => `${x(v)},${y(share(v))}`).join("L");
    add(svg, "path", { d: `M${line}`, fill: "none", stroke: COLOURS[which], "stroke-width": 2.4 });
    const style = { fill: COLOURS[which], "font-weight": 600, "text-anchor": "end" };
    write(svg, right, y(end) + (which === "one" ? 17 : -8), which === "one" ? "one head" : "two heads", "", style);
  }
}

// ---- the page ----

const form = document.getElementById("settings"), told = document.getElementById("told");
const presets = JSON.parse(document.getElementById("presets").textContent);
const inputs = [...form.elements].filter(element => element.name);

function showNumber(element, value, digits) {
  element.dataset.value = value;
  element.textContent = value.toFixed(digits);
}

function show() {
  const s = Object.fromEntries(inputs.map(input => [input.name, Number(input.value)])), found = sandbox(s);
  for (const input of inputs)
    document.getElementById(`${input.name}-is`).textContent = Number(s[input.name].toFixed(2)) + input.dataset.unit;
  for (const which of ["one", "two"]) {
    drawCloud(document.getElementById(`cloud-${which}`), s, which, found);
    drawHistogram(document.getElementById(`histogram-${which}`), which, found, s.noise > 0);
  }
  drawCliffs(document.getElementById("cliffs"), s);
  for (const cell of document.querySelectorAll("[data-of]"))
    showNumber(cell, cell.dataset.of.split(".").reduce((part, name) => part[name], found), 3);
  showNumber(document.getElementById("score-deviation"), found.score_deviation, 2);
  for (const element of document.querySelectorAll("[data-noisy]")) element.hidden = s.noise === 0;
}

form.addEventListener("input", () => { told.textContent = ""; show(); });
form.addEventListener("submit", event => event.preventDefault());
for (const button of document.querySelectorAll("button[data-preset]"))
  button.addEventListener("click", () => {
    const preset = presets[button.dataset.preset];
    for (const [name, value] of Object.entries(preset.settings)) form.elements[name].value = value;
    told.innerHTML = preset.told;
    show();
  });
show();
