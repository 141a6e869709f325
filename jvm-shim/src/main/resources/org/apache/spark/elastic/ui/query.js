/** The view of one query: its bounds, its timeline, what became of its rescales, and why. */

import { get, orNothing, queryPath } from "./api.js";
import { Bounds } from "./bounds.js";
import { DECISIONS, EXCEPTIONS, EXECUTIONS, RESCALES } from "./columns.js";
import { content, h, text } from "./dom.js";
import { bytes, clock, duration, number, words } from "./format.js";
import { Listing, section } from "./listing.js";
import { Picture } from "./picture.js";
import { Policy } from "./policy.js";
import { showBatch } from "./queries.js";
import { preparation, stateBadge, tile } from "./record.js";
import { pageLink } from "./spark.js";

/** Rescales that the picture may mark. */
const MARKED = 100;
const EXECUTIONS_LISTED = 10;
const ENDING = ["Finished", "Failing", "Canceling"];

export class Query {
  constructor(id, refresh, announce) {
    this.id = id;
    this.name = h("span", {}, id);
    this.state = h("span", { class: "ms-2 fs-6" });
    this.waits = h("div", { class: "alert alert-info py-2", hidden: true });
    this.keeps = h("div", { class: "alert alert-warning py-2", role: "note", hidden: true });
    this.facts = h("div", { class: "elastic-tiles mb-3" });
    this.bounds = new Bounds(id, async (sentence) => {
      announce(sentence);
      await refresh();
    });
    this.hint = h("p", { class: "small text-body-secondary mt-1" });
    this.policy = new Policy();
    this.picture = new Picture();
    this.rescales = new Listing({ ...RESCALES, onpage: refresh });
    this.decisions = new Listing({ ...DECISIONS, onpage: refresh });
    this.exceptions = new Listing({ ...EXCEPTIONS, onpage: refresh });
    this.executions = new Listing({ ...EXECUTIONS, size: EXECUTIONS_LISTED, onpage: refresh });
    this.about = h("span", { class: "elastic-about text-body-secondary fw-normal ms-2" });
    this.spark = h("span");
    const heading = h("h4", {}, this.name, this.state, this.about);
    this.node = h(
      "div",
      {},
      h("p", { class: "mb-1" }, h("a", { class: "me-3", href: "#" }, "← All queries"), this.spark),
      heading,
      this.waits,
      this.keeps,
      this.facts,
      this.bounds.node,
      this.hint,
      this.policy.node,
      section("Timeline", this.picture.node).node,
      this.rescales.node,
      this.decisions.node,
      this.executions.node,
      this.exceptions.node,
    );
  }

  /** The window's title after Spark's name for it. */
  title() {
    return [this.name.textContent];
  }

  async update() {
    const path = (below) => queryPath(this.id, below);
    const latest = this.picture.latest;
    const [overview, query, timeline, executions] = await Promise.all([
      get("overview"),
      get(path()),
      get(path("/timeline"), latest === Infinity ? {} : { after: latest }),
      orNothing(get("executions", { query: this.id, ...this.executions.parameters })),
    ]);
    this.#showExecutions(executions?.executions ?? []);
    await this.#lists(query, path);
    this.ended = overview.ended;
    this.#show(query, overview);
    const now = Math.max(overview.at, timeline.batches.at(-1)?.at ?? 0);
    this.picture.update(timeline, this.marked ?? [], query.triggerMs, now);
  }

  /** Lists are asked for when something in them can have changed. */
  async #lists(query, path) {
    const pages = [this.rescales, this.decisions].map(({ parameters }) => JSON.stringify(parameters));
    const { lastDecision, lastBatch, rescales: moves, restarts } = query;
    const counts = [lastDecision?.number, lastBatch?.partitions, moves, restarts];
    const state = [...counts, query.state, ...pages].join();
    if (state === this.seen && !this.hasOpen) return;
    const [rescales, newest, decisions, exceptions] = await Promise.all([
      get(path("/rescales"), this.rescales.parameters),
      get(path("/rescales"), { limit: MARKED }),
      get("decisions", { query: query.id, ...this.decisions.parameters }),
      get(path("/exceptions")),
    ]);
    this.seen = state;
    // Of two answers either may be from before the end of a rescale, which changes nothing else.
    this.hasOpen = [...newest.rescales, ...rescales.rescales].some(({ status }) => status === "in_progress");
    this.marked = newest.rescales.slice(0, MARKED).filter((one) => !RESCALES.minor.is(one));
    this.rescales.show(rescales.rescales);
    this.decisions.show(decisions.decisions.filter((one) => one.query === query.id));
    this.exceptions.show(exceptions.exceptions);
  }

  /** The micro-batches that were decided about, and what `foreachBatch` ran; a History Server gives all executions. */
  #showExecutions(executions) {
    const own = executions.filter(({ query }) => query === this.id);
    this.executions.show(own);
    this.executions.node.hidden = !own.length && this.executions.parameters.before === undefined;
  }

  #show(query, { mayWrite, maxParallelism }) {
    text(this.name, query.name ?? query.id);
    content(this.state, stateBadge(query.state), preparation(query));
    content(this.spark, pageLink("StreamingQuery", "statistics/", { id: query.run }, "Spark's page of this run"));
    text(this.about, `${query.stateful ? "stateful" : "stateless"}, ${query.id}`);
    this.#tiles(query);
    this.#waiting(query);
    // A query out of the event log of an older version does not say it.
    const keeps = query.state === "Finished" ? null : query.keepsPartitions;
    this.keeps.hidden = !keeps;
    text(this.keeps, keeps?.message ?? "");
    this.policy.update(query);
    const may = mayWrite && query.mode === "adaptive" && !ENDING.includes(query.state);
    this.bounds.update({
      requirements: query.requirements,
      now: {
        shuffle: query.target ?? query.preparing?.partitions ?? query.partitions,
        ...Object.fromEntries((query.lastBatch?.sources ?? []).map(({ vertex, tasks }) => [vertex, tasks])),
      },
      may,
      most: maxParallelism,
    });
    text(this.hint, hint(query, may));
  }

  #tiles({ lastBatch: last, partitions, target, preparing, stateful, trigger, triggerMs, restarts, rescales }) {
    const batch = h("div");
    showBatch(batch, { lastBatch: last, triggerMs });
    const onItsWay = target !== null && target !== partitions;
    const prepares = preparing ? `preparing ${number(preparing.partitions)}` : "in force";
    const behind = last?.offsetsBehind;
    const input = behind ? `${number(behind.max)} records behind` : `${number(last?.inputRows)} rows in the batch`;
    const interval = triggerMs ? duration(triggerMs) : words(trigger);
    content(
      this.facts,
      tile("Partitions", number(partitions), onItsWay ? `scaling to ${number(target)}` : prepares),
      tile("Last batch", number(last?.batch), batch),
      tile("Trigger", interval, triggerMs ? words(trigger) : "back to back"),
      tile("Input", last ? `${number(last.inputRowsPerSecond)} rows/s` : number(), input),
      stateful ? tile("State", bytes(last?.stateBytes), `${number(last?.stateRows)} rows`) : null,
      tile("Rescales", number(rescales), `of its state; ${number(restarts)} restarts after failures`),
    );
  }

  /** What it waits for and until when, while it holds still; else what was decided last. */
  #waiting({ lastDecision: last, hold, state }) {
    this.waits.hidden = !last || state === "Finished";
    if (this.waits.hidden) return;
    // A query out of the event log of an older version does not say whether it is still held.
    const held = hold === undefined ? last.kind === "held" : hold !== null;
    this.waits.className = `alert py-2 ${held ? "alert-warning" : "alert-secondary"}`;
    const until = held && last.until ? ` Until ${clock(last.until)} at the latest.` : "";
    content(this.waits, h("strong", {}, held ? "Waiting: " : "Last decision: "), last.message, until);
  }
}

function hint({ boundBy, mode }, may) {
  if (mode === "off") return "The mode of this query is off: it is left to Spark and has no bounds.";
  if (mode === "reactive") return "Reactive mode uses all available slots; there are no bounds to set.";
  const how = "+ and − move the bound in their way, so the query follows even if that does not pay.";
  return `Bounded by ${boundBy}. ${may ? how : ""}`;
}
