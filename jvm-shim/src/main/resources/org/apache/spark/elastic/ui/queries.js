/** The list of queries, page by page, with a search. */

import { attribute, content, h, keyed, text } from "./dom.js";
import { called, change, duration, number } from "./format.js";
import { WIDE, grid, section } from "./listing.js";
import { preparation, queryAddress, stateBadge } from "./record.js";

const SHOWN = 50;
const FEW = 10;
const HEADS = [
  { name: "Name" },
  { name: "State" },
  { name: "Partitions", kind: "text-end" },
  { name: "Bounds", wide: true },
  { name: "Last batch" },
  { name: "Last decision", wide: true },
];

/** Bounds in short; `most` is what stands for no bound. */
function boundsInShort(requirements, most) {
  const vertices = Object.entries(requirements);
  const ranges = vertices.map(([vertex, { parallelism }]) => {
    const [lower, upper] = [number(parallelism.lowerBound), number(parallelism.upperBound)];
    const target = parallelism.target === undefined ? "" : `, target ${number(parallelism.target)}`;
    const range = (parallelism.upperBound >= most ? `≥ ${lower}` : `${lower} – ${upper}`) + target;
    return vertices.length > 1 ? `${called(vertex)}: ${range}` : range;
  });
  return ranges.join(", ");
}

/** Fill an element with a batch time against the trigger's. */
export function showBatch(node, { lastBatch, triggerMs }) {
  if (!lastBatch) return text(node, "–");
  const took = duration(lastBatch.durationMs);
  if (!triggerMs) return text(node, took);
  const share = lastBatch.durationMs / triggerMs;
  const bar = h("div", { class: `progress-bar ${share > 1 ? "bg-danger" : "bg-success"}` });
  bar.style.width = `${Math.min(share, 1) * 100}%`;
  const track = h("div", { class: "progress elastic-bar", "aria-hidden": "true" }, bar);
  return content(node, `${took} of ${duration(triggerMs)}`, track);
}

/** The list; `refresh` brings what `parameters` then say. */
export class Queries {
  constructor(refresh) {
    this.refresh = refresh;
    this.offset = 0;
    this.search = h("input", {
      type: "search",
      class: "form-control form-control-sm elastic-search",
      placeholder: "Name or id",
      "aria-label": "Search queries",
      oninput: () => this.#turn(0),
    });
    this.none = h("p", { class: "text-body-secondary my-1" }, "None.");
    this.grid = grid("Streaming queries", HEADS);
    this.previous = this.#button("Previous", -1);
    this.next = this.#button("Next", 1);
    this.place = h("span", { class: "align-self-center small text-body-secondary" });
    const pages = { class: "d-flex gap-2 mt-2", "aria-label": "Pages of queries" };
    this.pager = h("nav", pages, this.previous, this.next, this.place);
    this.node = section("Streaming Queries", this.search, this.none, this.grid.node, this.pager).node;
  }

  get parameters() {
    return { offset: this.offset, limit: SHOWN, search: this.search.value };
  }

  /** Show a page of `total` queries; `most` is the bound that means none. */
  show(queries, total, most) {
    this.search.hidden = total <= FEW && this.search.value === "";
    this.none.hidden = total > 0;
    this.grid.node.hidden = !total;
    this.pager.hidden = total <= SHOWN;
    this.previous.disabled = this.offset === 0;
    this.next.disabled = this.offset + SHOWN >= total;
    const last = this.offset + queries.length;
    text(this.place, `${number(this.offset + 1)} to ${number(last)} of ${number(total)}`);
    keyed(this.grid.body, queries, ({ id }) => id, () => row(most));
  }

  /** Show the page that the reader looks at: a History Server gives all queries. */
  showPart(all, most) {
    const search = this.search.value.toLowerCase();
    const found = all.filter(({ id, name }) => [id, (name ?? "").toLowerCase()].some((part) => part.includes(search)));
    this.show(found.slice(this.offset, this.offset + SHOWN), found.length, most);
  }

  #button(label, step) {
    const onclick = () => this.#turn(this.offset + step * SHOWN);
    return h("button", { type: "button", class: "btn btn-sm btn-outline-secondary", onclick }, label);
  }

  #turn(offset) {
    this.offset = Math.max(0, offset);
    this.refresh();
  }
}

function row(most) {
  const link = h("a");
  const [state, bounds, said] = [h("td"), h("td", { class: `text-nowrap ${WIDE}` }), h("td", { class: WIDE })];
  const [count, batch] = [h("td", { class: "text-end" }), h("td", { class: "elastic-batch" })];
  const name = h("th", { scope: "row", class: "fw-normal" }, link);
  const update = (now) => {
    attribute(link, "href", queryAddress(now.id));
    text(link, now.name ?? now.id);
    content(state, stateBadge(now.state), preparation(now));
    text(count, change(now.partitions, now.target));
    text(bounds, boundsInShort(now.requirements, most));
    showBatch(batch, now);
    text(said, now.lastDecision?.message);
  };
  return { node: h("tr", {}, name, state, count, bounds, batch, said), update };
}
