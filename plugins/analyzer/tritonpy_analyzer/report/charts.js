"use strict";
// Draws the charts of a study into the page. Texts are set as text, never as markup.
const study = JSON.parse(document.getElementById("study").textContent);
const best = study.recommended || study.present;
const tip = document.getElementById("tip");
const SVG = "http://www.w3.org/2000/svg";

function element(parent, name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.appendChild(made);
  return made;
}

function chart(id, width, height) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  document.getElementById(id).appendChild(svg);
  return svg;
}

function empty(id, text) {
  const note = document.createElement("p");
  note.className = "soft";
  note.textContent = text;
  document.getElementById(id).appendChild(note);
}

const number = (value) =>
  value >= 100 ? Math.round(value).toLocaleString("en-US") : Number(value.toPrecision(3)).toString();
const milliseconds = (seconds) => `${number(seconds * 1000)} ms`;
const mebibytes = (bytes) => (bytes ? `${number(bytes / 2 ** 20)} MiB` : "");

function hint(node, text) {
  node.addEventListener("mousemove", (event) => {
    tip.textContent = text;
    tip.style.display = "block";
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - 350)}px`;
    tip.style.top = `${event.clientY + 14}px`;
  });
  node.addEventListener("mouseleave", () => { tip.style.display = "none"; });
}

function ticks(low, high) {
  const span = high - low || 1;
  const step = 10 ** Math.floor(Math.log10(span / 4));
  const size = [1, 2, 5, 10].map((each) => each * step).find((each) => span / each <= 5);
  const found = [];
  for (let at = Math.ceil(low / size) * size; at <= high + size / 1e6; at += size) found.push(at);
  return found;
}

function axes(svg, box, x, y, xName, yName) {
  const scaleX = (value) => box.left + ((value - x[0]) / (x[1] - x[0] || 1)) * box.width;
  const scaleY = (value) => box.top + box.height - ((value - y[0]) / (y[1] - y[0] || 1)) * box.height;
  for (const value of ticks(...x)) {
    element(svg, "line", { class: "axis", x1: scaleX(value), x2: scaleX(value), y1: box.top, y2: box.top + box.height });
    element(svg, "text", { x: scaleX(value), y: box.top + box.height + 15, "text-anchor": "middle" }, number(value));
  }
  for (const value of ticks(...y)) {
    element(svg, "line", { class: "axis", x1: box.left, x2: box.left + box.width, y1: scaleY(value), y2: scaleY(value) });
    element(svg, "text", { x: box.left - 6, y: scaleY(value) + 4, "text-anchor": "end" }, number(value));
  }
  element(svg, "text", { x: box.left + box.width / 2, y: box.top + box.height + 32, "text-anchor": "middle" }, xName);
  element(svg, "text", { x: 4, y: 11 }, yName);
  return [scaleX, scaleY];
}

const BOX = { left: 58, top: 22, width: 440, height: 240 };
const extent = (values) => [0, Math.max(...values, 1e-9) * 1.08];

function changesText(candidate) {
  const parts = Object.entries(candidate.changes).flatMap(([model, settings]) =>
    Object.entries(settings).map(([name, value]) => `${model}: ${name} = ${value}`));
  return parts.length ? parts.join("; ") : "no change";
}

function select(candidate, mark) {
  document.querySelectorAll("circle.selected").forEach((each) => each.classList.remove("selected"));
  if (mark) mark.classList.add("selected");
  document.getElementById("selected").textContent = `${candidate.text} — ${changesText(candidate)}`;
}

function scatter() {
  const points = study.candidates.filter((each) => each.rate);
  if (!points.length) return empty("scatter", "Nothing was measured.");
  const memory = points.some((each) => each.memory_gpu) ? "memory_gpu" : "memory_cpu";
  const svg = chart("scatter", 520, 310);
  const [x, y] = axes(svg, BOX, extent(points.map((each) => each[memory] / 2 ** 20)),
    extent(points.map((each) => each.rate.value)), "memory in MiB", "requests per second");
  for (const each of points) {
    const mark = element(svg, "circle", { class: each.status, cx: x(each[memory] / 2 ** 20),
      cy: y(each.rate.value), r: each.on_front || each === best ? 7 : 5 });
    hint(mark, `${each.text}: ${number(each.rate.value)}/s. ${each.reason}`);
    mark.addEventListener("click", () => select(each, mark));
  }
}

function curves() {
  const drawn = study.candidates.filter((each) => each.curve.length > 1);
  if (!drawn.length) return empty("curves", "The load was fixed, or no time was left for curves.");
  const limit = study.constraints.map((each) => /^p[\d.]+<([\d.]+) (s|ms|us)$/.exec(each)).find(Boolean);
  const limitMs = limit ? Number(limit[1]) * { s: 1000, ms: 1, us: 0.001 }[limit[2]] : 0;
  const points = drawn.flatMap((each) => each.curve);
  const most = Math.min(Math.max(...points.map((each) => each.latency.value * 1000)), limitMs ? limitMs * 3 : Infinity);
  const svg = chart("curves", 520, 310);
  const [x, y] = axes(svg, BOX, extent(points.map((each) => each.rate)), [0, most * 1.08],
    "requests per second", "latency at the limit's percentile, ms");
  if (limitMs) element(svg, "line", { class: "limit", x1: BOX.left, x2: BOX.left + BOX.width, y1: y(limitMs), y2: y(limitMs) });
  for (const each of drawn) {
    const at = each.curve.map((point) => [x(point.rate), y(Math.min(point.latency.value * 1000, most))]);
    const line = element(svg, "path", { class: `curve ${each.status}`, d: `M${at.map((pair) => pair.join(",")).join("L")}` });
    line.style.fill = "none";
    hint(line, each.text);
    each.curve.forEach((point, index) => {
      const mark = element(svg, "circle", { class: each.status, cx: at[index][0], cy: at[index][1], r: 4 });
      const high = point.latency.high === null ? "unknown" : milliseconds(point.latency.high);
      hint(mark, `${each.text}: ${number(point.rate)}/s, ${milliseconds(point.latency.value)} ` +
        `(95 %: ${milliseconds(point.latency.low)} to ${high}), ${point.requests} requests`);
    });
  }
}

function bars(id, entries, format, color) {
  if (!entries.length) return empty(id, "There are no data.");
  const height = entries.length * 26 + 8;
  const svg = chart(id, 520, height);
  const most = Math.max(...entries.map((each) => each[1]), 1e-12);
  entries.forEach(([name, value], index) => {
    const top = index * 26 + 4;
    element(svg, "text", { x: 190, y: top + 14, "text-anchor": "end" }, name);
    element(svg, "rect", { x: 198, y: top, width: (value / most) * 240, height: 18, rx: 3, style: `fill: var(${color})` });
    element(svg, "text", { x: 204 + (value / most) * 240, y: top + 14 }, format(value));
  });
}

function columns(id, entries) {
  if (!entries.length) return empty(id, "There are no data.");
  const svg = chart(id, 520, 230);
  const most = Math.max(...entries.map((each) => each[1]));
  const width = Math.min(500 / entries.length, 60);
  const every = Math.ceil(entries.length / 16);
  entries.forEach(([size, count], index) => {
    const height = (count / most) * 160;
    const bar = element(svg, "rect", { x: 10 + index * width, y: 185 - height, width: width * 0.85,
      height: Math.max(height, 1), rx: 2, style: "fill: var(--accent)" });
    hint(bar, `batch ${size}: ${count} executions`);
    if (index % every === 0) {
      element(svg, "text", { x: 10 + (index + 0.42) * width, y: 202, "text-anchor": "middle" }, size);
    }
  });
  element(svg, "text", { x: 260, y: 222, "text-anchor": "middle" }, "rows in an execution");
  element(svg, "text", { x: 10, y: 14 }, `executions, at most ${most}`);
}

function times() {
  if (!best) return empty("times", "There are no data.");
  const entries = [["queue", best.queue_us / 1000], ["compute", best.compute_us / 1000]];
  const shares = Object.entries(best.shares);
  bars("times", shares.length > 1 ? shares.map(([name, share]) => [name, share * 100]) : entries,
    (value) => (shares.length > 1 ? `${number(value)} %` : `${number(value)} ms`), "--accent");
}

function coordinates() {
  const points = study.candidates.filter((each) => each.rate);
  if (points.length < 2) return empty("coordinates", "One configuration was measured.");
  const names = points[0].settings.map(([model, name]) => [model, name]);
  const columns = names.map((_, index) => {
    const values = [...new Set(points.map((each) => each.settings[index][2]))];
    values.sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : 1));
    return values;
  });
  const most = Math.max(...points.map((each) => each.rate.value), 1e-9);
  const svg = chart("coordinates", 520, 300);
  const x = (index) => 40 + (index / names.length) * 430;
  const y = (index, value) => 250 - (columns[index].length < 2 ? 0.5 : columns[index].indexOf(value) / (columns[index].length - 1)) * 220;
  names.forEach(([model, name], index) => {
    element(svg, "line", { class: "axis", x1: x(index), x2: x(index), y1: 30, y2: 250 });
    const short = name.replace("instance_group.", "instances ").replace("_microseconds", "").slice(0, 20);
    element(svg, "text", { x: x(index), y: 268 + (index % 2) * 14, "text-anchor": "middle" }, study.models.length > 1 ? `${model} ${short}` : short);
    columns[index].forEach((value) => element(svg, "text", { x: x(index) - 5, y: y(index, value) + 4, "text-anchor": "end" }, value));
  });
  element(svg, "line", { class: "axis", x1: x(names.length), x2: x(names.length), y1: 30, y2: 250 });
  element(svg, "text", { x: x(names.length), y: 268, "text-anchor": "middle" }, "rate");
  for (const each of points) {
    const at = each.settings.map(([, , value], index) => `${x(index)},${y(index, value)}`);
    at.push(`${x(names.length)},${250 - (each.rate.value / most) * 220}`);
    const line = element(svg, "path", { class: `coordinate ${each.status}`, d: `M${at.join("L")}` });
    line.style.fill = "none";
    hint(line, `${each.text}: ${number(each.rate.value)}/s`);
  }
}

function table() {
  const rows = study.candidates.map((each) => [
    each.text, each.status, each.rate ? each.rate.value : 0, each.status === "present" ? 1 : each.gain ? each.gain.value : 0,
    each.latencies.p50 ? each.latencies.p50.value : 0, each.latencies.p99 ? each.latencies.p99.value : 0,
    each.memory_cpu, each.memory_gpu, each.windows, each.reason]);
  const formats = [String, String, number, (value) => value.toFixed(2), milliseconds, milliseconds, mebibytes, mebibytes, String, String];
  const body = document.querySelector("#table tbody");
  let sorted = -1;
  function fill() {
    body.replaceChildren(...rows.map((row) => {
      const line = document.createElement("tr");
      row.forEach((value, index) => {
        const cell = document.createElement("td");
        cell.textContent = typeof value === "number" && !value && index !== 8 ? "" : formats[index](value);
        if (typeof value === "number") cell.className = "number";
        line.appendChild(cell);
      });
      return line;
    }));
  }
  document.querySelectorAll("#table th").forEach((head, index) => head.addEventListener("click", () => {
    const direction = sorted === index ? 1 : -1;
    sorted = sorted === index ? -1 : index;
    rows.sort((a, b) => (a[index] < b[index] ? -1 : a[index] > b[index] ? 1 : 0) * direction);
    fill();
  }));
  fill();
}

scatter();
curves();
columns("batches", best ? Object.entries(best.batches) : []);
times();
coordinates();
bars("importance", Object.entries(study.importance).map(([name, share]) => [name.replace("_microseconds", "").slice(-30), share * 100]),
  (value) => `${number(value)} %`, "--good");
table();
