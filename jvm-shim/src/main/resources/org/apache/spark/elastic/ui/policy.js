/** The policy's view of a query: its objective, slots wanted, forecast, and the fitted line. */

import { content, h, text } from "./dom.js";
import { duration, number, percent } from "./format.js";
import { line } from "./line.js";
import { section } from "./listing.js";
import { tile } from "./record.js";

/** When what has piled up will be gone, in a few words. */
function forecast(backlog) {
  if (!backlog) return "none";
  const { goneInMs, withinMs } = backlog;
  const wanted = `${duration(withinMs)} wanted`;
  return goneInMs === null ? `never gone with these slots, ${wanted}` : `gone in ${duration(goneInMs)}, ${wanted}`;
}

/** A part of a query's view, which is there while a policy decides for the query. */
export class Policy {
  constructor() {
    this.said = h("p", { class: "mb-2" });
    this.tiles = h("div", { class: "elastic-tiles mb-2" });
    this.picture = h("div");
    const { node, extra } = section("Autoscaling", this.said, this.tiles, this.picture);
    Object.assign(this, { node, extra });
  }

  update({ policy, grantedSlots, slots: has }) {
    this.node.hidden = !policy;
    if (!policy) return;
    text(this.extra, policy.name);
    text(this.said, policy.message);
    const { objective, model, wantedSlots, allowedSlots } = policy;
    const allowed = grantedSlots === null ? "advice only" : `allowed ${number(allowedSlots)}`;
    const slots = tile("Slots wanted", number(wantedSlots), `${allowed}, has ${number(has)}`);
    content(this.tiles, slots, ...(objective ? this.#metrics(policy) : []));
    content(this.picture, model ? line(model, limit(objective)) : null);
  }

  #metrics({ objective, load, rowsPerSecond, model, backlog, mostRows }) {
    const aim = `target ${percent(objective.load)}, scales up at ${percent(objective.load + objective.loadBand)}`;
    const lag = objective.maxLagMs === null ? "no lag limit" : `at most ${duration(objective.maxLagMs)} behind`;
    const takes = `${duration(model.fixedMs)} + ${number(model.rowUs)} µs`;
    return [
      tile("Load", percent(load), aim),
      tile("Input rate", `${number(rowsPerSecond)} rows/s`, lag),
      tile("Backlog", backlog ? `${number(backlog.rows)} rows` : "none", forecast(backlog)),
      ...(mostRows === null ? [] : [tile("Reads at most", `${number(mostRows)} rows`, "per micro-batch")]),
      tile("A micro-batch takes", takes, `for each row ÷ slots; confidence ${percent(model.confidence)}`),
    ];
  }
}

/** What a micro-batch is to take at most by the load, 0 without an interval. */
function limit({ load, intervalMs }) {
  return load * intervalMs;
}
