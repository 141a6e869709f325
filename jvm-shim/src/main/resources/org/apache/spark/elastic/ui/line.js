/** What micro-batches take by their rows: those that are known as points, and the line that a policy lays through. */

import { svg } from "./dom.js";
import { ceiling, duration, number, percent } from "./format.js";

const WIDTH = 420;
const HEIGHT = 190;
const [LEFT, RIGHT, TOP, BOTTOM] = [56, 12, 20, 34];
const RADIUS = 3;

/** In words, for those who do not see the picture. */
function lineInWords({ fixedMs, rowUs, confidence, points }) {
  const many = `${number(points.length)} micro-batches`;
  return `${many}: ${duration(fixedMs)} + ${number(rowUs)} µs for each row ÷ slots, confidence ${percent(confidence)}`;
}

/** The picture of a model; `limitMs` is what a micro-batch is to take at most, 0 for no limit. */
export function line(model, limitMs = 0) {
  const { fixedMs, rowUs, points } = model;
  const right = ceiling(Math.max(...points.map(({ rowsPerSlot }) => rowsPerSlot), 0));
  const end = fixedMs + (rowUs / 1000) * right;
  const top = ceiling(Math.max(...points.map(({ durationMs }) => durationMs), end, limitMs));
  const x = (rows) => Math.round((LEFT + (rows / right) * (WIDTH - LEFT - RIGHT)) * 10) / 10;
  const y = (ms) => Math.round((HEIGHT - BOTTOM - (ms / top) * (HEIGHT - TOP - BOTTOM)) * 10) / 10;
  const drawn = [
    svg("path", { class: "ground", d: `M${x(0)} ${y(top)}V${y(0)}H${x(right)}` }),
    svg("text", { x: LEFT, y: TOP - 7, class: "title" }, "Batch time"),
    svg("text", { x: LEFT - 5, y: y(top) + 8, "text-anchor": "end" }, duration(top)),
    svg("text", { x: LEFT - 5, y: y(0), "text-anchor": "end" }, "0"),
    svg("text", { x: x(right), y: y(0) + 14, "text-anchor": "end" }, number(right)),
    svg("text", { x: (x(0) + x(right)) / 2, y: HEIGHT - 5, "text-anchor": "middle" }, "rows for each busy slot"),
  ];
  if (limitMs > 0) {
    const title = svg("title", {}, `What a micro-batch is to take at most: ${duration(limitMs)}`);
    drawn.push(svg("path", { class: "limit", d: `M${x(0)} ${y(limitMs)}H${x(right)}` }, title));
  }
  drawn.push(svg("path", { class: "fitted", d: `M${x(0)} ${y(fixedMs)}L${x(right)} ${y(end)}` }));
  for (const { rowsPerSlot, durationMs } of points) {
    const title = svg("title", {}, `${number(rowsPerSlot)} rows for each busy slot: ${duration(durationMs)}`);
    drawn.push(svg("circle", { cx: x(rowsPerSlot), cy: y(durationMs), r: RADIUS }, title));
  }
  const named = { role: "img", "aria-label": lineInWords(model) };
  const size = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT };
  return svg("svg", { class: "elastic-line", ...size, ...named }, ...drawn);
}
