/** The view of one query: its bounds, its timeline, what became of its rescales, and why. */

import { get, queryPath } from "./api.js";
import { Bounds } from "./bounds.js";
import { content, h, text } from "./dom.js";
import { bytes, change, clock, duration, number, time, words } from "./format.js";
import { Listing, moment, plain, section } from "./listing.js";
import { DECISION_LIST, batchCell } from "./overview.js";
import { Picture } from "./picture.js";
import { facts, stateBadge, statusBadge, tile } from "./record.js";

/** Rescales that the picture may mark. */
const MARKED = 100;

export class Query {
  constructor(id, refresh, announce) {
    this.id = id;
    this.name = h("span", {}, id);
    this.state = h("span", { class: "ms-2 fs-6" });
    this.waits = h("div", { class: "alert alert-info py-2", hidden: true });
    this.facts = h("div", { class: "elastic-tiles mb-3" });
    this.bounds = new Bounds(id, async (sentence) => {
      announce(sentence);
      await refresh();
    });
    this.hint = h("p", { class: "small text-body-secondary mt-1" });
    this.picture = new Picture();
    this.rescales = new Listing({ ...RESCALES, onpage: refresh });
    this.decisions = new Listing({ ...DECISION_LIST, onpage: refresh });
    this.exceptions = new Listing({ ...EXCEPTIONS, onpage: refresh });
    this.about = h("span", { class: "elastic-about text-body-secondary fw-normal ms-2" });
    const heading = h("h4", {}, this.name, this.state, this.about);
    this.node = h(
      "div",
      {},
      h("p", { class: "mb-1" }, h("a", { href: "#" }, "← All queries")),
      heading,
      this.facts,
      this.waits,
      this.bounds.node,
      this.hint,
      section("Timeline", this.picture.node).node,
      this.rescales.node,
      this.decisions.node,
      this.exceptions.node,
    );
  }

  title() {
    return `Elastic: ${this.name.textContent}`;
  }

  async update() {
    const path = (below) => queryPath(this.id, below);
    const latest = this.picture.latest;
    const [overview, query, timeline] = await Promise.all([
      get("overview"),
      get(path()),
      get(path("/timeline"), latest === Infinity ? {} : { after: latest }),
    ]);
    await this.#lists(query, path);
    this.ended = overview.ended;
    this.#show(query, overview);
    const now = Math.max(overview.at, timeline.batches.at(-1)?.at ?? 0);
    this.picture.update(timeline, this.marked ?? [], query.triggerMs, now);
  }

  /** Lists are asked for when something in them can have changed. */
  async #lists(query, path) {
    const pages = [this.rescales, this.decisions].map(({ parameters }) => JSON.stringify(parameters));
    const state = [query.lastDecision?.number, query.rescales, query.restarts, query.state, ...pages].join();
    if (state === this.seen && this.marked?.[0]?.status !== "in_progress") return;
    const [rescales, newest, decisions, exceptions] = await Promise.all([
      get(path("/rescales"), this.rescales.parameters),
      get(path("/rescales"), { limit: MARKED }),
      get("decisions", { query: query.id, ...this.decisions.parameters }),
      get(path("/exceptions")),
    ]);
    this.seen = state;
    this.marked = newest.rescales.slice(0, MARKED);
    this.rescales.show(rescales.rescales);
    this.decisions.show(decisions.decisions.filter((one) => one.query === query.id));
    this.exceptions.show(exceptions.exceptions);
  }

  #show(query, { mayWrite, mode, maxParallelism }) {
    text(this.name, query.name ?? query.id);
    content(this.state, stateBadge(query.state));
    text(this.about, `${query.stateful ? "stateful" : "stateless"}, ${query.id}`);
    this.#tiles(query);
    this.#waiting(query);
    const may = mayWrite && mode === "adaptive" && !["Finished", "Failing", "Canceling"].includes(query.state);
    this.bounds.update({ requirements: query.requirements, now: { shuffle: query.target ?? query.partitions }, may, most: maxParallelism });
    text(this.hint, this.#hint(query, mode, may));
  }

  #tiles({ lastBatch: last, partitions, target, stateful, trigger, triggerMs, restarts, rescales }) {
    const batch = h("div");
    batchCell({ lastBatch: last, triggerMs }, batch);
    const behind = last?.offsetsBehind ? `${number(last.offsetsBehind.max)} records behind` : "";
    content(
      this.facts,
      tile("Partitions", number(partitions), target !== null && target !== partitions ? `on its way to ${number(target)}` : "in force"),
      tile("Last batch", last ? number(last.batch) : "–", batch),
      tile("Trigger", triggerMs ? duration(triggerMs) : words(trigger), triggerMs ? words(trigger) : "one batch after the other"),
      tile("Input", last ? `${number(last.inputRowsPerSecond)} rows/s` : "–", behind || (last ? `${number(last.inputRows)} rows in the batch` : "")),
      stateful ? tile("State", last ? bytes(last.stateBytes) : "–", last ? `${number(last.stateRows)} rows` : "") : null,
      tile("Restarts", number(restarts), `${number(rescales)} of them for another count`),
    );
  }

  #hint({ boundBy }, mode, may) {
    if (mode === "reactive") return "Reactive mode uses all slots that are there; bounds are not declared.";
    const source = `Bounded by ${boundBy}.`;
    return may ? `${source} + and − move the bound that is in their way, so the query follows even where a rescale would not pay by itself.` : source;
  }

  /** What it waits for and until when, while it holds still; else what was decided last. */
  #waiting({ lastDecision: last, state }) {
    this.waits.hidden = !last || state === "Finished";
    if (this.waits.hidden) return;
    const held = last.kind === "held";
    this.waits.className = `alert py-2 ${held ? "alert-warning" : "alert-secondary"}`;
    const until = !held ? "" : last.until ? ` Until ${clock(last.until)} at the latest.` : " Until something changes.";
    content(this.waits, h("strong", {}, held ? "Holds still: " : "Last decision: "), last.message, until);
  }
}

function phases(states) {
  const stays = states.filter(({ entered, left }) => left !== null && left > entered);
  const total = stays.reduce((sum, { entered, left }) => sum + left - entered, 0);
  const parts = stays.map(({ state, entered, left }) => {
    const part = h("div", { class: `elastic-phase ${state === "Executing" ? "runs" : ""}`, title: `${state}: ${duration(left - entered)}` });
    part.style.width = `${((left - entered) / total) * 100}%`;
    return part;
  });
  const words = stays.map(({ state, entered, left }) => `${state} ${duration(left - entered)}`).join(", ");
  return h("div", {}, h("div", { class: "elastic-phases", role: "img", "aria-label": words || "no time" }, ...parts), total ? duration(total) : "at once");
}

function rescaleRecord(one) {
  const stays = one.states.map(({ state, entered, left }) => [state, left === null ? `since ${clock(entered)}` : `${duration(left - entered)}, from ${clock(entered)}`]);
  return h(
    "div",
    { class: "d-flex flex-wrap gap-4 p-2" },
    h("div", {}, h("h5", {}, "Rescale"), facts([
      ["Cause", words(one.cause)],
      ["Outcome", one.reason ? words(one.reason) : "under way"],
      ["Ended", one.ended ? time(one.ended) : null],
      ["Partitions", change(one.partitionsBefore, one.partitionsAfter)],
      ["Slots", change(one.slotsBefore, one.slotsAfter)],
      ["Kept from running", duration(one.pausedMs)],
      ["Bounds", `number ${number(one.requirements)}, attempt ${number(one.attempt)} with them`],
    ])),
    h("div", {}, h("h5", {}, "Phases"), facts(stays)),
  );
}

const RESCALES = {
  title: "Rescales",
  key: ({ number: name }) => name,
  record: rescaleRecord,
  columns: [
    { name: "Started", show: moment(({ started }) => started), kind: "text-nowrap" },
    { name: "Cause", show: plain(({ cause }) => words(cause)) },
    { name: "Partitions", show: plain((one) => change(one.partitionsBefore, one.partitionsAfter)), kind: "text-end text-nowrap" },
    { name: "Slots", show: plain((one) => change(one.slotsBefore, one.slotsAfter)), kind: "text-end text-nowrap", wide: true },
    { name: "Phases", show: ({ states }, td) => content(td, phases(states)), wide: true, kind: "elastic-phases-cell" },
    { name: "Downtime", show: plain(({ pausedMs }) => (pausedMs ? duration(pausedMs) : "none")), kind: "text-end text-nowrap" },
    { name: "Outcome", show: ({ status, reason }, td) => content(td, statusBadge(status), reason && status !== "completed" ? h("span", { class: "d-none d-lg-inline" }, ` ${words(reason)}`) : null) },
  ],
};

const EXCEPTIONS = {
  title: "Exceptions",
  key: ({ at }) => at,
  empty: "None.",
  record: (one) => h("div", { class: "p-2" }, h("pre", {}, one.error), facts([
    ["Condition", one.errorClass],
    ["Causes", one.causes.join(", ") || null],
    ["Offsets", one.offsets || null],
    ["Rule", h("code", {}, one.reason)],
  ])),
  columns: [
    { name: "Failed", show: moment(({ at }) => at), kind: "text-nowrap" },
    { name: "Error", show: plain(({ error }) => error.split("\n")[0].slice(0, 300)), kind: "elastic-said" },
    { name: "What followed", show: plain(({ reason }) => words(reason)) },
  ],
};
