/** The timeline of a query: slots and partitions, input rate and batch time, with rescales and losses as marks. */

import { h, svg, text } from "./dom.js";
import { ceiling, change, clock, duration, number, words } from "./format.js";

const LANE = 74;
const GAP = 26;
const TOP = 18;
const LEFT = 52;
const RIGHT = 8;
const LANES = 3;
const HEIGHT = TOP + LANES * (LANE + GAP);
const SHORTEST_MS = 60000;

/** A line through points; with `steps` a value holds until the next one. */
function line(points, steps) {
  return points
    .map(([x, y], place) => (place === 0 ? `M${x} ${y}` : steps ? `H${x}V${y}` : `L${x} ${y}`))
    .join("");
}

/** What is below a line of steps that ends at `right`. */
function area(points, right, floor) {
  const edge = points.length ? `${line(points, true)}H${right}V${floor}H${points[0][0]}Z` : "";
  return svg("path", { class: "area", d: edge });
}

/** The picture of one query, as wide as it has room for. */
export class Picture {
  constructor() {
    this.series = { batches: [], slots: [], lost: [] };
    this.readout = h("p", { class: "text-body-secondary small mb-0", "aria-live": "off" });
    this.canvas = svg("svg", { class: "elastic-timeline", role: "img", tabindex: "0", height: HEIGHT });
    this.node = h("div", {}, legend(), this.canvas, this.readout);
    this.canvas.addEventListener("pointermove", (event) => this.#point(event.offsetX));
    this.canvas.addEventListener("pointerleave", () => this.#choose(null));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#draw()).observe(this.node);
  }

  /** The time after which news are requested. */
  get latest() {
    const { batches, slots, lost } = this.series;
    // Each series has its own newest; what comes twice is left out.
    return Math.min(...[batches, slots, lost].filter((kept) => kept.length).map((kept) => kept.at(-1).at), Infinity);
  }

  /** Take in what has come since, and the rescales (newest first); `kept` is how many batches are kept at most. */
  update(news, rescales, triggerMs, now, kept = 240) {
    for (const [name, fresh] of Object.entries(news)) {
      const newest = this.series[name].at(-1)?.at ?? -1;
      this.series[name] = [...this.series[name], ...fresh.filter(({ at }) => at > newest)].slice(-kept);
    }
    Object.assign(this, { rescales, triggerMs, now });
    this.#draw();
  }

  #draw() {
    const width = Math.floor(this.node.clientWidth);
    if (!width || this.now === undefined) return;
    const { batches, slots } = this.series;
    const begin = Math.min(batches[0]?.at ?? this.now, this.now - SHORTEST_MS);
    this.x = (at) => LEFT + ((at - begin) / (this.now - begin)) * (width - LEFT - RIGHT);
    const sinceThen = slots.filter(({ at }, place) => (slots[place + 1]?.at ?? Infinity) > begin);
    const steps = sinceThen.map((one) => ({ ...one, at: Math.max(one.at, begin) }));
    const tasks = Math.max(...batches.map((one) => one.partitions), ...steps.map((one) => one.slots), 1);
    const rates = Math.max(...batches.map((one) => one.inputRowsPerSecond), 0);
    const times = Math.max(...batches.map((one) => one.durationMs), this.triggerMs, 0);
    const lanes = [
      this.#lane(0, "Partitions, slots", tasks + Math.ceil(tasks / 8), number, [
        ["slots", steps, (one) => one.slots, true],
        ["partitions", batches, (one) => one.partitions, true],
      ]),
      this.#lane(1, "Input rows per second", ceiling(rates), number, [
        ["rate", batches, (one) => one.inputRowsPerSecond],
      ]),
      this.#lane(
        2,
        "Batch time",
        ceiling(times),
        duration,
        [["time", batches, (one) => one.durationMs]],
        this.triggerMs,
      ),
    ];
    this.cursor = svg("path", { class: "cursor" });
    this.canvas.replaceChildren(...lanes.flat(), ...this.#marks(begin), ...this.#axis(begin, width), this.cursor);
    this.canvas.setAttribute("width", width);
    this.canvas.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.canvas.setAttribute("aria-label", this.#inWords());
    this.#choose(this.chosen ?? null);
  }

  #lane(place, title, top, format, series, limit = 0) {
    const floor = TOP + place * (LANE + GAP) + LANE;
    const right = this.x(this.now);
    const y = (value) => Math.round((floor - (value / top) * LANE) * 10) / 10;
    const drawn = [
      svg("path", { class: "ground", d: `M${LEFT} ${floor - LANE}H${right}M${LEFT} ${floor}H${right}` }),
      svg("text", { x: LEFT, y: floor - LANE - 5, class: "title" }, title),
      svg("text", { x: LEFT - 5, y: floor - LANE + 8, "text-anchor": "end" }, format(top)),
      svg("text", { x: LEFT - 5, y: floor, "text-anchor": "end" }, "0"),
    ];
    if (limit > 0) drawn.push(svg("path", { class: "limit", d: `M${LEFT} ${y(limit)}H${right}` }));
    for (const [name, items, value, steps] of series) {
      const points = items.map((item) => [Math.round(this.x(item.at) * 10) / 10, y(value(item))]);
      // What holds now holds up to now.
      if (steps && points.length) points.push([right, points.at(-1)[1]]);
      if (name === "slots") drawn.unshift(area(points, right, floor));
      if (points.length) drawn.push(svg("path", { class: `line ${name}`, d: line(points, steps) }));
    }
    return drawn;
  }

  #axis(begin, width) {
    const many = Math.max(2, Math.min(8, Math.floor((width - LEFT) / 110)));
    return Array.from({ length: many }, (_, place) => {
      const at = begin + ((this.now - begin) * place) / (many - 1);
      const anchor = place === 0 ? "start" : place === many - 1 ? "end" : "middle";
      return svg("text", { x: this.x(at), y: HEIGHT - 8, "text-anchor": anchor }, clock(at));
    });
  }

  #marks(begin) {
    const bottom = HEIGHT - GAP;
    const rescales = this.rescales
      .filter(({ started }) => started >= begin)
      .map((one) => {
        const [from, to] = [this.x(one.started), this.x(one.ended ?? this.now)];
        const title = svg("title", {}, `Rescale ${one.number}, ${clock(one.started)}: ${rescaleInWords(one)}`);
        const area = svg("rect", { x: from, y: TOP, width: Math.max(to - from, 1), height: bottom - TOP });
        const flag = svg("path", { d: `M${from} ${TOP}l-4 -7h8z` });
        return svg("g", { class: `rescale ${one.status}` }, title, area, flag);
      });
    const lost = this.series.lost
      .filter(({ at }) => at >= begin)
      .map(({ at, executor, reason, released }) => {
        const went = `executor ${executor} ${released ? "released" : "lost"}`;
        const title = svg("title", {}, `${clock(at)}: ${went}. ${reason}`);
        const x = this.x(at);
        const cross = svg("path", { d: `M${x - 4} ${TOP - 11}l8 8m0 -8l-8 8M${x} ${TOP - 2}V${bottom}` });
        return svg("g", { class: released ? "lost released" : "lost" }, title, cross);
      });
    return [...rescales, ...lost];
  }

  #inWords() {
    const last = this.series.batches.at(-1);
    const lately = last
      ? `the last micro-batch took ${duration(last.durationMs)} with ${number(last.partitions)} partitions`
      : "no micro-batch yet";
    return `Timeline: ${lately}, ${number(this.series.slots.at(-1)?.slots)} slots. Arrow keys show each micro-batch.`;
  }

  #point(x) {
    const { batches } = this.series;
    let best = null;
    batches.forEach((batch, place) => {
      if (best === null || Math.abs(this.x(batch.at) - x) < Math.abs(this.x(batches[best].at) - x)) best = place;
    });
    this.#choose(best === null ? null : batches[best].at);
  }

  #key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !this.series.batches.length) return;
    event.preventDefault();
    const { batches } = this.series;
    const place = batches.findIndex(({ at }) => at === this.chosen);
    const next = place < 0 ? batches.length - 1 : Math.min(Math.max(place + step, 0), batches.length - 1);
    this.readout.setAttribute("aria-live", "polite");
    this.#choose(batches[next].at);
  }

  #choose(at) {
    this.chosen = at;
    const batch = this.series.batches.find((one) => one.at === at);
    this.cursor?.setAttribute("d", batch ? `M${this.x(batch.at)} ${TOP}V${HEIGHT - GAP}` : "");
    text(
      this.readout,
      batch
        ? `${clock(batch.at)}: ${number(batch.partitions)} partitions, ${number(batch.inputRowsPerSecond)} rows/s, ` +
            `${duration(batch.durationMs)}`
        : "\u00a0",
    );
  }
}

/** What a rescale was about, in a few words. */
export function rescaleInWords({ cause, partitionsBefore, partitionsAfter, status }) {
  return `${words(cause)}, ${change(partitionsBefore, partitionsAfter)} partitions, ${words(status)}`;
}

function legend() {
  const sample = (name, label) => {
    const drawn = svg("svg", { width: 22, height: 10, class: "elastic-timeline", "aria-hidden": "true" });
    const shapes = {
      rescale: () => svg("g", { class: "rescale completed" }, svg("path", { d: "M11 9l-4 -7h8z" })),
      lost: () => svg("g", { class: "lost" }, svg("path", { d: "M7 1l8 8m0 -8l-8 8" })),
      released: () => svg("g", { class: "lost released" }, svg("path", { d: "M7 1l8 8m0 -8l-8 8" })),
    };
    drawn.append(shapes[name]?.() ?? svg("path", { class: name === "limit" ? "limit" : `line ${name}`, d: "M0 5H22" }));
    return h("span", { class: "me-3 text-nowrap" }, drawn, ` ${label}`);
  };
  return h(
    "p",
    { class: "small text-body-secondary mb-1" },
    sample("partitions", "partitions"),
    sample("slots", "slots"),
    sample("rate", "input rate"),
    sample("time", "batch time"),
    sample("limit", "trigger"),
    sample("rescale", "rescale"),
    sample("lost", "executor lost"),
    sample("released", "executor released"),
  );
}
