/**
 * Values over time, in lanes one above the other. What is under the pointer or the cursor is shown with its values. A
 * range of time can be chosen by dragging, with buttons or with keys.
 */

import { axisEnd } from "./axis.js";
import { attribute, content, h, svg, text } from "./dom.js";
import { clock, day } from "./format.js";

const LANE = 74;
const GAP = 26;
const TOP = 18;
const LEFT = 52;
const RIGHT = 8;
/** Half of a mark's width. */
const MARK = 5;
const SHORTEST_MS = 60000;
const CLOSEST_MS = 1000;
const DAY_MS = 86400000;
/** Pixels that the pointer has to move for a range. */
const DRAGGED = 6;
/** Rows of the table of values. */
const ROWS = 50;
const KEYS = "Arrow keys show the values, plus and minus zoom, with Shift the arrows move the range, Escape shows all.";
let ids = 0;

/** A path through points; a value of null is a gap. With `steps` a value holds until the next one. */
function path(points, steps) {
  let drawn = "";
  let isOpen = false;
  for (const [x, y] of points) {
    if (y === null) drawn += isOpen && steps ? `H${x}` : "";
    else if (!isOpen) drawn += `M${x} ${y}`;
    else drawn += steps ? `H${x}V${y}` : `L${x} ${y}`;
    isOpen = y !== null;
  }
  return drawn;
}

function round(value) {
  return Math.round(value * 10) / 10;
}

/** The last item that is not later than `at`, of items in the order of their times. */
function lastOf(items, at) {
  let [from, to] = [0, items.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (items[middle].at <= at) from = middle + 1;
    else to = middle;
  }
  return items[from - 1] ?? null;
}

/**
 * A chart that is as wide as it has room for. `title` names it, and `samples` are further entries of its legend.
 *
 * What it shows is {begin, end, lanes, marks, summary}: times are epoch ms. A lane is {title, format, whole, limit,
 * series}, with whether it has whole numbers alone, and a value that should be seen (0: none). A series is {name,
 * label, entry, what, items, steps, fills}: a class and what it is called; if one entry of the legend stands for
 * several series, that entry and what of it this one is; {at, value} by time; whether a value holds until the next
 * one, and whether what is below is filled. A mark is {from, to, kind, title, cross}.
 */
export class Chart {
  constructor(title, samples = []) {
    const id = (ids += 1);
    this.title = title;
    this.samples = samples;
    this.range = null;
    this.clip = `elastic-clip-${id}`;
    this.legend = h("span");
    this.zoomed = h("span", { class: "me-2", role: "status" });
    const zoom = h(
      "span",
      { class: "text-nowrap ms-auto" },
      this.zoomed,
      this.#button("+", "Zoom in", () => this.#zoom(0.5)),
      this.#button("−", "Zoom out", () => this.#zoom(2)),
      (this.whole = this.#button("Whole time", "Show the whole time", () => this.#show(null))),
    );
    const hint = h("span", { class: "visually-hidden", id: `elastic-keys-${id}` }, KEYS);
    const focus = { role: "application", "aria-roledescription": "chart", tabindex: "0" };
    this.canvas = svg("svg", { class: "elastic-timeline", "aria-describedby": hint.id, ...focus });
    this.tip = h("div", { class: "elastic-tip card small p-2", "aria-live": "off", hidden: true });
    this.table = h("div", { class: "table-responsive" });
    this.asTable = h("details", { class: "small" }, h("summary", {}, "Values as a table"), this.table);
    this.asTable.addEventListener("toggle", () => this.#tabulate());
    const area = h("div", { class: "elastic-chart" }, this.canvas, this.tip);
    const head = h("div", { class: "d-flex flex-wrap gap-1 small text-body-secondary mb-1" }, this.legend, zoom);
    this.node = h("div", {}, head, area, hint, this.asTable);
    this.#listen();
    new ResizeObserver(() => this.#draw()).observe(this.node);
  }

  /** Show other values. The range that was chosen stays, and so does the cursor. */
  show(shown) {
    this.shown = shown;
    this.#legend();
    this.#draw();
    this.#tabulate();
  }

  #button(label, name, onclick) {
    const named = { type: "button", "aria-label": `${name}: ${this.title}`, title: name };
    return h("button", { ...named, class: "btn btn-sm btn-outline-secondary py-0 ms-1", onclick }, label);
  }

  #listen() {
    const at = ({ clientX }) => this.#at(clientX - this.canvas.getBoundingClientRect().left);
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.shown) return;
      this.drag = { from: at(event), to: at(event), x: event.clientX, isFar: false };
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!this.shown) return;
      if (this.drag) {
        this.drag.to = at(event);
        this.drag.isFar ||= Math.abs(event.clientX - this.drag.x) >= DRAGGED;
        this.#select();
      }
      this.tip.setAttribute("aria-live", "off");
      this.#point(at(event));
    });
    this.canvas.addEventListener("pointerup", () => {
      const drag = this.drag;
      this.drag = null;
      if (drag?.isFar) this.#show([Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)]);
    });
    this.canvas.addEventListener("pointercancel", () => {
      this.drag = null;
      this.#select();
    });
    this.canvas.addEventListener("pointerleave", () => this.#choose(null));
    this.canvas.addEventListener("blur", () => this.#choose(null));
    this.canvas.addEventListener("dblclick", () => this.#show(null));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  get #visible() {
    return this.range ?? [this.shown.begin, this.shown.end];
  }

  #x(at) {
    const [from, to] = this.#visible;
    return LEFT + ((at - from) / (to - from)) * (this.width - LEFT - RIGHT);
  }

  #at(x) {
    const [from, to] = this.#visible;
    const part = Math.min(Math.max((x - LEFT) / (this.width - LEFT - RIGHT), 0), 1);
    return Math.round(from + part * (to - from));
  }

  /** Show a range of time, within what is known; null: all of it, and what comes. */
  #show(range) {
    if (!this.shown) return;
    const { begin, end } = this.shown;
    if (range) {
      const length = Math.min(Math.max(range[1] - range[0], CLOSEST_MS), end - begin);
      const from = Math.min(Math.max((range[0] + range[1] - length) / 2, begin), end - length);
      range = length >= end - begin ? null : [Math.round(from), Math.round(from + length)];
    }
    this.range = range;
    this.#draw();
    this.#tabulate();
  }

  /** Show `part` of the time that is shown, around the cursor; 2 is twice as much. */
  #zoom(part) {
    if (!this.shown) return;
    const [from, to] = this.#visible;
    const middle = this.chosen ?? (from + to) / 2;
    this.#show([middle - (middle - from) * part, middle + (to - middle) * part]);
  }

  #pan(direction) {
    const [from, to] = this.#visible;
    const step = ((to - from) / 4) * direction;
    if (this.range) this.#show([from + step, to + step]);
  }

  #key(event) {
    if (!this.shown || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const stops = this.#stops();
    const here = stops.findIndex((at) => at >= (this.chosen ?? Infinity));
    const next = here < 0 ? stops.length - 1 : Math.min(Math.max(here + step, 0), stops.length - 1);
    const does = {
      ArrowLeft: () => (event.shiftKey ? this.#pan(-1) : this.#choose(stops[next])),
      ArrowRight: () => (event.shiftKey ? this.#pan(1) : this.#choose(stops[next])),
      Home: () => this.#choose(stops[0]),
      End: () => this.#choose(stops.at(-1)),
      "+": () => this.#zoom(0.5),
      "=": () => this.#zoom(0.5),
      "-": () => this.#zoom(2),
      Escape: () => this.#show(null),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    this.tip.setAttribute("aria-live", "polite");
    does();
  }

  get #series() {
    return this.shown.lanes.flatMap(({ series, format }) => series.map((one) => ({ ...one, format })));
  }

  /** The times with values in the range. */
  #stops() {
    const [from, to] = this.#visible;
    const times = this.#series.flatMap(({ items }) => items.map(({ at }) => at));
    return [...new Set(times)].filter((at) => at >= from && at <= to).sort((one, other) => one - other);
  }

  #draw() {
    this.width = Math.floor(this.node.clientWidth);
    if (!this.width || !this.shown) return;
    const { lanes, marks, summary } = this.shown;
    const height = TOP + lanes.length * (LANE + GAP);
    const [plot, frame] = [svg("g", { "clip-path": `url(#${this.clip})` }), svg("g")];
    this.bottom = height - GAP;
    lanes.forEach((lane, place) => this.#lane(lane, TOP + place * (LANE + GAP) + LANE, plot, frame));
    const [from, to] = this.#visible;
    const seen = marks.filter((mark) => (mark.to ?? mark.from) >= from && mark.from <= to);
    const marked = svg("g", { "clip-path": `url(#${this.clip}-marks)` }, ...seen.map((mark) => this.#mark(mark)));
    const clips = [this.#clip(this.clip, 0, height), this.#clip(`${this.clip}-marks`, MARK, height)];
    this.cursor = svg("path", { class: "cursor" });
    this.selection = svg("rect", { class: "selection", y: TOP, height: this.bottom - TOP, width: 0 });
    this.canvas.replaceChildren(...clips, plot, frame, marked, ...this.#times(height), this.selection, this.cursor);
    attribute(this.canvas, "width", this.width);
    attribute(this.canvas, "height", height);
    attribute(this.canvas, "viewBox", `0 0 ${this.width} ${height}`);
    attribute(this.canvas, "aria-label", `${this.title}: ${summary}`);
    attribute(this.whole, "aria-disabled", this.range ? null : "true");
    text(this.zoomed, this.range ? `${clock(this.range[0])} to ${clock(this.range[1])}` : "");
    this.#select();
    this.#choose(this.chosen ?? null);
  }

  /** What is drawn between the edges of the plot, and so far beyond them. */
  #clip(id, beyond, height) {
    const width = Math.max(this.width - LEFT - RIGHT + 2 * beyond, 0);
    return svg("clipPath", { id }, svg("rect", { x: LEFT - beyond, y: 0, width, height }));
  }

  #lane({ title, format, whole = false, limit = 0, series }, floor, plot, frame) {
    const [from, to] = this.#visible;
    const [left, right] = [LEFT, this.width - RIGHT];
    const parts = series.map((one) => ({ ...one, items: this.#within(one, from, to) }));
    const values = parts.flatMap(({ items }) => items.map(({ value }) => value));
    const top = axisEnd(values, limit, whole);
    const y = (value) => (value === null ? null : round(floor - (Math.min(value, top) / top) * LANE));
    frame.append(
      svg("path", { class: "ground", d: `M${left} ${floor - LANE}H${right}M${left} ${floor}H${right}` }),
      svg("text", { x: left, y: floor - LANE - 5, class: "title" }, title),
      svg("text", { x: left - 5, y: floor - LANE + 8, "text-anchor": "end" }, format(top)),
      svg("text", { x: left - 5, y: floor, "text-anchor": "end" }, "0"),
    );
    if (limit > 0 && limit <= top) plot.append(svg("path", { class: "limit", d: `M${left} ${y(limit)}H${right}` }));
    for (const { name, label, items, steps = false, fills = false } of parts) {
      const points = items.map(({ at, value }) => [round(this.#x(at)), y(value)]);
      // What holds now holds up to now.
      if (steps && points.length) points.push([round(this.#x(this.shown.end)), points.at(-1)[1]]);
      const line = path(points, steps);
      if (fills && line) {
        plot.prepend(svg("path", { class: "area", d: `${line}V${floor}H${points[0][0]}Z` }));
      }
      if (line) plot.append(svg("path", { class: `line ${name}`, d: line }));
      for (const { at, value } of items.filter((item) => item.value > top)) {
        const said = svg("title", {}, `${clock(at)}: ${label} ${format(value)}, above the axis`);
        const x = this.#x(at);
        plot.append(svg("g", { class: "above" }, said, svg("path", { d: `M${x - 4} ${floor - LANE + 7}l4 -7l4 7z` })));
      }
    }
  }

  /** The items of a series in a range, with the next one on either side, to which lines lead. */
  #within({ items }, from, to) {
    const first = items.findIndex(({ at }) => at >= from);
    const after = items.findIndex(({ at }) => at > to);
    const start = Math.max((first < 0 ? items.length : first) - 1, 0);
    return items.slice(start, after < 0 ? items.length : after + 1);
  }

  #mark({ from, to = from, kind, title, cross = false }) {
    const [x, end] = [round(this.#x(from)), round(this.#x(to))];
    const crossed = `M${x - 4} ${TOP - 11}l8 8m0 -8l-8 8M${x} ${TOP - 2}V${this.bottom}`;
    const shape = cross
      ? [svg("path", { d: crossed })]
      : [
          svg("rect", { x, y: TOP, width: Math.max(end - x, 1), height: this.bottom - TOP }),
          svg("path", { d: `M${x} ${TOP}l-4 -7h8z` }),
        ];
    return svg("g", { class: kind }, svg("title", {}, title), ...shape);
  }

  #times(height) {
    const [from, to] = this.#visible;
    const many = Math.max(2, Math.min(12, Math.floor((this.width - LEFT) / 110)));
    const isLong = to - from > DAY_MS;
    return Array.from({ length: many }, (_, place) => {
      const at = from + ((to - from) * place) / (many - 1);
      const anchor = place === 0 ? "start" : place === many - 1 ? "end" : "middle";
      const named = isLong ? `${day(at).slice(5)} ${clock(at).slice(0, 5)}` : clock(at);
      return svg("text", { x: round(this.#x(at)), y: height - 8, "text-anchor": anchor }, named);
    });
  }

  #select() {
    const { from, to, isFar } = this.drag ?? {};
    const [x, end] = isFar ? [from, to].map((at) => this.#x(at)).sort((one, other) => one - other) : [0, 0];
    attribute(this.selection, "x", round(x));
    attribute(this.selection, "width", round(end - x));
  }

  #point(at) {
    const nearer = (best, stop) => (Math.abs(stop - at) < Math.abs(best - at) ? stop : best);
    const near = this.#stops().reduce(nearer, Infinity);
    this.#choose(Number.isFinite(near) ? near : null);
  }

  #choose(at) {
    const [from, to] = this.#visible;
    const isSeen = at !== null && at !== undefined && at >= from && at <= to;
    this.chosen = isSeen ? at : null;
    this.tip.hidden = !isSeen;
    if (!this.cursor) return;
    attribute(this.cursor, "d", isSeen ? `M${round(this.#x(at))} ${TOP}V${this.bottom}` : null);
    if (!isSeen) return;
    const rows = new Map();
    for (const one of this.#series) {
      const { label, entry = label, what } = one;
      const value = what ? `${what} ${this.#valueOf(one, at)}` : this.#valueOf(one, at);
      rows.set(entry, [...(rows.get(entry) ?? []), value]);
    }
    const lines = [...rows].map(([entry, values]) => h("div", {}, `${entry}: ${values.join(", ")}`));
    content(this.tip, h("div", { class: "fw-bold" }, clock(at)), ...lines);
    // On the side of the cursor that has more room.
    const x = this.#x(at);
    const isLeft = x > this.width / 2;
    this.tip.style.left = isLeft ? "" : `${x + 10}px`;
    this.tip.style.right = isLeft ? `${this.width - x + 10}px` : "";
    this.tip.style.maxWidth = `${(isLeft ? x : this.width - x) - 20}px`;
  }

  #valueOf({ items, format }, at) {
    return format(lastOf(items, at)?.value);
  }

  #tabulate() {
    if (!this.asTable.open || !this.shown) return;
    const series = this.#series;
    const head = ["Time", ...series.map(({ label }) => label)].map((name) => h("th", { scope: "col" }, name));
    const rows = this.#stops().slice(-ROWS).reverse().map((at) => {
      const cells = series.map((one) => h("td", { class: "text-end" }, this.#valueOf(one, at)));
      return h("tr", {}, h("th", { scope: "row", class: "fw-normal" }, clock(at)), ...cells);
    });
    const named = { class: "table table-sm table-bordered mb-0 w-auto", "aria-label": `Values: ${this.title}` };
    this.table.replaceChildren(h("table", named, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)));
  }

  #legend() {
    // A query has one entry for all its lines.
    const lines = this.#series.map(({ name, label, entry = label }) => {
      return { label: entry, draw: () => svg("path", { class: `line ${name}`, d: "M0 5H22" }) };
    });
    const entries = [...new Map([...lines, ...this.samples].map((one) => [one.label, one])).values()];
    const key = entries.map(({ label }) => label).join();
    if (key === this.entries) return;
    this.entries = key;
    const samples = entries.map(({ label, draw }) => {
      const drawn = svg("svg", { width: 22, height: 10, class: "elastic-timeline", "aria-hidden": "true" }, draw());
      return h("span", { class: "me-3 elastic-sample" }, drawn, ` ${label}`);
    });
    this.legend.replaceChildren(...samples);
  }
}

/** Where a chart begins whose first item is at `first`: early enough for some room. */
export function beginOf(first, now) {
  return Math.min(first ?? now, now - SHORTEST_MS);
}

/** Items of a series that begins at `begin`: what held before holds from there on. */
export function since(items, begin) {
  const later = items.filter(({ at }) => at > begin);
  const held = lastOf(items, begin);
  return held ? [{ ...held, at: begin }, ...later] : later;
}

/** Entries of a legend for marks. */
export const SAMPLES = {
  rescale: {
    label: "rescale",
    draw: () => svg("g", { class: "rescale completed" }, svg("path", { d: "M11 9l-4 -7h8z" })),
  },
  lost: { label: "executor lost", draw: () => svg("g", { class: "lost" }, svg("path", { d: "M7 1l8 8m0 -8l-8 8" })) },
  released: {
    label: "executor released",
    draw: () => svg("g", { class: "lost released" }, svg("path", { d: "M7 1l8 8m0 -8l-8 8" })),
  },
};

/** The marks of executors that are gone. */
export function departures(lost, begin) {
  return lost.filter(({ at }) => at >= begin).map(({ at, executor, reason, released }) => {
    const went = `executor ${executor} ${released ? "released" : "lost"}`;
    const kind = released ? "lost released" : "lost";
    return { from: at, kind, title: `${clock(at)}: ${went}. ${reason}`, cross: true };
  });
}

/** Add news to the series that are known, by their names; `most` of each are kept. */
export function take(series, news, most) {
  for (const [name, fresh] of Object.entries(news)) {
    const newest = series[name]?.at(-1)?.at ?? -1;
    series[name] = [...(series[name] ?? []), ...fresh.filter(({ at }) => at > newest)].slice(-most);
  }
}
