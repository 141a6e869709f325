/** The first view: the application at a glance, its queries, its batch stages, its decisions. */

import { get } from "./api.js";
import { attribute, content, h, keyed, text } from "./dom.js";
import { bytes, change, clock, duration, number } from "./format.js";
import { histogram, sizesInWords } from "./histogram.js";
import { Listing, moment, plain, section } from "./listing.js";
import { kindBadge, record, stateBadge, tile } from "./record.js";

const QUERIES_SHOWN = 50;
const EXECUTORS_SHOWN = 50;
const LISTED = 10;
const WIDE = "d-none d-lg-table-cell";

/** The address of a query within this page. */
export function queryLink(id) {
  return `#query=${encodeURIComponent(id)}`;
}

/** Bounds in short; `most` is what stands for no bound. */
export function boundsInShort(requirements, most) {
  const bounds = Object.entries(requirements).map(([vertex, { parallelism: { lowerBound, upperBound } }]) => {
    const range = upperBound >= most ? `≥ ${number(lowerBound)}` : `${number(lowerBound)} – ${number(upperBound)}`;
    return Object.keys(requirements).length > 1 ? `${vertex}: ${range}` : range;
  });
  return bounds.join(", ");
}

/** Fill a cell with a batch time against the trigger's. */
export function batchCell({ lastBatch, triggerMs }, node) {
  if (!lastBatch) return text(node, "–");
  const share = triggerMs ? lastBatch.durationMs / triggerMs : 0;
  const bar = h("div", { class: `progress-bar ${share > 1 ? "bg-danger" : "bg-success"}` });
  bar.style.width = `${Math.min(share, 1) * 100}%`;
  const words = triggerMs ? `${duration(lastBatch.durationMs)} of ${duration(triggerMs)}` : duration(lastBatch.durationMs);
  content(node, words, triggerMs ? h("div", { class: "progress elastic-bar", "aria-hidden": "true" }, bar) : null);
}

export class Overview {
  constructor(refresh) {
    this.refresh = refresh;
    this.offset = 0;
    this.tiles = h("div", { class: "elastic-tiles mb-3" });
    this.queries = this.#queries();
    this.stages = new Listing({ ...STAGES, size: LISTED, onpage: refresh });
    this.decisions = new Listing({ ...DECISIONS, size: LISTED, onpage: refresh });
    this.executors = h("tbody");
    this.node = h("div", {}, this.tiles, this.queries.node, this.stages.node, this.decisions.node, this.#executors());
  }

  title() {
    return "Elastic";
  }

  async update() {
    const part = { offset: this.offset, limit: QUERIES_SHOWN, search: this.search.value };
    const [overview, queries, stages, decisions] = await Promise.all([
      get("overview"),
      get("queries", part),
      get("stages", this.stages.parameters),
      get("decisions", this.decisions.parameters),
    ]);
    this.ended = overview.ended;
    this.#tiles(overview);
    this.#showQueries(overview.ended ? this.#part(queries.queries) : queries, overview);
    this.stages.show(stages.stages);
    text(this.stages.section.extra, stages.unanswered ? `${number(stages.unanswered)} left to Spark's own rules` : "");
    this.decisions.show(decisions.decisions);
    this.#showExecutors(overview.executors);
  }

  #tiles({ mode, adviseOnly, slots, executors, queries, policyRestarts, at }) {
    const usable = executors.filter(({ excluded, decommissioning }) => !excluded && !decommissioning).length;
    const total = Object.values(queries).reduce((sum, many) => sum + many, 0);
    const states = Object.entries(queries).map(([state, many]) => h("span", { class: "me-2 text-nowrap" }, stateBadge(state), ` ${number(many)}`));
    content(
      this.tiles,
      tile("Mode", mode, adviseOnly ? "advises only, changes nothing" : policyRestarts ? `policy process replaced: ${number(policyRestarts)}` : "decides"),
      tile("Slots", number(slots.now), slots.desired === null ? "all there are can be used" : `${number(slots.desired)} desired`),
      tile("Executors", number(executors.length), usable === executors.length ? "all in use" : `${number(usable)} in use`),
      tile("Streaming queries", number(total), ...(states.length ? states : ["none yet"])),
      tile("As of", clock(at), "last event heard of"),
    );
  }

  #queries() {
    this.search = h("input", { type: "search", class: "form-control form-control-sm elastic-search", placeholder: "Name or id", "aria-label": "Search queries" });
    this.search.addEventListener("input", () => this.#turn(0));
    const heads = [["Name"], ["State"], ["Partitions", "text-end"], ["Bounds", WIDE], ["Last batch"], ["Last decision", WIDE]];
    const head = h("thead", {}, h("tr", {}, ...heads.map(([name, kind]) => h("th", { scope: "col", class: kind ?? null }, name))));
    this.rows = h("tbody");
    this.none = h("p", { class: "text-body-secondary my-1" }, "None so far.");
    const table = h("table", { class: "table table-sm table-bordered mb-0", "aria-label": "Streaming queries" }, head, this.rows);
    this.scroller = h("div", { class: "table-responsive", tabindex: "0", role: "region", "aria-label": "Streaming queries" }, table);
    const button = (label, step) => {
      const press = () => this.#turn(this.offset + step * QUERIES_SHOWN);
      return h("button", { type: "button", class: "btn btn-sm btn-outline-secondary", onclick: press }, label);
    };
    this.previous = button("Previous", -1);
    this.next = button("Next", 1);
    this.place = h("span", { class: "align-self-center small text-body-secondary" });
    this.pager = h("nav", { class: "d-flex gap-2 mt-2", "aria-label": "Pages of queries" }, this.previous, this.next, this.place);
    return section("Streaming Queries", this.search, this.none, this.scroller, this.pager);
  }

  #turn(offset) {
    this.offset = Math.max(0, offset);
    this.refresh();
  }

  /** What the API would give: a History Server gives all. */
  #part(queries) {
    const search = this.search.value.toLowerCase();
    const found = queries.filter(({ id, name }) => id.includes(search) || (name ?? "").toLowerCase().includes(search));
    return { queries: found.slice(this.offset, this.offset + QUERIES_SHOWN), total: found.length };
  }

  #showQueries({ queries, total }, { maxParallelism }) {
    this.search.hidden = total <= 10 && this.search.value === "";
    this.none.hidden = total > 0;
    this.scroller.hidden = !total;
    this.pager.hidden = total <= QUERIES_SHOWN;
    this.previous.disabled = this.offset === 0;
    this.next.disabled = this.offset + QUERIES_SHOWN >= total;
    text(this.place, `${number(this.offset + 1)} to ${number(this.offset + queries.length)} of ${number(total)}`);
    keyed(this.rows, queries, ({ id }) => id, () => queryRow(maxParallelism));
  }

  #executors() {
    const heads = ["Id", "Host", "Cores", "State"].map((name) => h("th", { scope: "col" }, name));
    const table = h("table", { class: "table table-sm table-bordered mb-0", "aria-label": "Executors" }, h("thead", {}, h("tr", {}, ...heads)), this.executors);
    this.hidden = h("p", { class: "small text-body-secondary" });
    const { node } = section("Executors", h("div", { class: "table-responsive" }, table), this.hidden);
    return node;
  }

  #showExecutors(executors) {
    const state = ({ excluded, decommissioning }) => (decommissioning ? "is being decommissioned" : excluded ? "excluded" : "in use");
    keyed(this.executors, executors.slice(0, EXECUTORS_SHOWN), ({ id }) => id, () => {
      const cells = [h("td"), h("td"), h("td"), h("td")];
      const update = (now) => [now.id, now.host, number(now.cores), state(now)].forEach((value, place) => text(cells[place], value));
      return { node: h("tr", {}, ...cells), update };
    });
    const more = executors.length - EXECUTORS_SHOWN;
    text(this.hidden, more > 0 ? `and ${number(more)} more` : "");
  }
}

function queryRow(most) {
  const link = h("a");
  const [state, count, bounds, batch, said] = ["", "text-end", `text-nowrap ${WIDE}`, "elastic-batch", WIDE].map((kind) => h("td", { class: kind || null }));
  const update = (now) => {
    attribute(link, "href", queryLink(now.id));
    text(link, now.name ?? now.id);
    content(state, stateBadge(now.state));
    text(count, now.target !== null && now.target !== now.partitions ? change(now.partitions, now.target) : number(now.partitions));
    text(bounds, boundsInShort(now.requirements, most));
    batchCell(now, batch);
    text(said, now.lastDecision?.message);
  };
  return { node: h("tr", {}, h("th", { scope: "row", class: "fw-normal" }, link), state, count, bounds, batch, said), update };
}

const STAGES = {
  title: "Batch Stages",
  empty: "No batch query has asked so far.",
  key: ({ number: name }) => name,
  record: (stage) =>
    record(
      { ...stage, cause: stage.group },
      stage.sizes ? h("div", {}, h("h5", {}, "Sizes"), histogram(stage.sizes, 3), h("p", { class: "mb-0" }, sizesInWords(stage.sizes))) : null,
    ),
  columns: [
    { name: "Decided", show: moment(({ at }) => at), kind: "text-nowrap" },
    { name: "About", show: plain(({ question }) => QUESTIONS[question] ?? question), wide: true },
    { name: "Bytes", show: plain(({ sizes, numbers }) => bytes(sizes?.total ?? numbers.bytes)), kind: "text-end text-nowrap", wide: true },
    { name: "Parallelism", show: plain(({ before, after }) => change(before, after)), kind: "text-end text-nowrap" },
    { name: "Task sizes", show: ({ sizes }, td) => content(td, sizes ? histogram(sizes) : "–"), wide: true },
    { name: "Why", show: plain(({ message }) => message), kind: "elastic-said" },
  ],
};

const QUESTIONS = { InitialCount: "partitions to write", Ranges: "ranges to read", SplitSize: "splits of a scan" };

const DECISIONS = {
  title: "Decisions",
  key: ({ number: name }) => name,
  record,
  columns: [
    { name: "Decided", show: moment(({ at }) => at), kind: "text-nowrap" },
    { name: "Kind", show: ({ kind }, td) => content(td, kindBadge(kind)), wide: true },
    { name: "What and why", show: plain(({ message }) => message), kind: "elastic-said" },
  ],
};

/** Columns of decisions, for the view of one query. */
export const DECISION_LIST = DECISIONS;
