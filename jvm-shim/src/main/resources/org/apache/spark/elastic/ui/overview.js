/** The first view: the application at a glance, its queries, its batch stages, its decisions. */

import { get } from "./api.js";
import { ALL_DECISIONS, STAGES } from "./columns.js";
import { content, h, keyed, text } from "./dom.js";
import { clock, number } from "./format.js";
import { Listing, grid, section } from "./listing.js";
import { Queries } from "./queries.js";
import { stateBadge, tile } from "./record.js";

const EXECUTORS_SHOWN = 50;
const LISTED = 10;

export class Overview {
  constructor(refresh) {
    this.tiles = h("div", { class: "elastic-tiles mb-3" });
    this.queries = new Queries(refresh);
    this.stages = new Listing({ ...STAGES, size: LISTED, onpage: refresh });
    this.decisions = new Listing({ ...ALL_DECISIONS, size: LISTED, onpage: refresh });
    this.executors = grid("Executors", [{ name: "Id" }, { name: "Host" }, { name: "Cores" }, { name: "State" }]);
    this.more = h("p", { class: "small text-body-secondary" });
    const executors = section("Executors", this.executors.node, this.more);
    this.missing = grid("Not available on this Spark", [{ name: "What" }, { name: "Why" }]);
    this.without = section("Not Available on This Spark", this.missing.node);
    const sections = [this.queries, this.stages, this.decisions, executors, this.without];
    this.node = h("div", {}, this.tiles, ...sections.map(({ node }) => node));
  }

  /** The window's title after Spark's name for it. */
  title() {
    return [];
  }

  async update() {
    const [overview, queries, stages, decisions] = await Promise.all([
      get("overview"),
      get("queries", this.queries.parameters),
      get("stages", this.stages.parameters),
      get("decisions", this.decisions.parameters),
    ]);
    this.ended = overview.ended;
    this.#tiles(overview);
    if (overview.ended) this.queries.showPart(queries.queries, overview.maxParallelism);
    else this.queries.show(queries.queries, queries.total, overview.maxParallelism);
    this.stages.show(stages.stages);
    const left = stages.unanswered ? `${number(stages.unanswered)} left to Spark's own rules` : "";
    text(this.stages.section.extra, left);
    this.decisions.show(decisions.decisions);
    this.#showExecutors(overview.executors);
    this.#showMissing(overview);
  }

  // An overview out of the event log of an older version has no custom policies.
  #tiles({ mode, adviseOnly, slots, executors, queries, policyRestarts, customPolicies = [], at }) {
    const usable = executors.filter((one) => !one.excluded && !one.decommissioning).length;
    const total = Object.values(queries).reduce((sum, many) => sum + many, 0);
    const states = Object.entries(queries).map(([state, many]) =>
      h("span", { class: "me-2 text-nowrap" }, stateBadge(state), ` ${number(many)}`),
    );
    const silent = customPolicies.filter(({ error }) => error !== null).map(({ name }) => name);
    const replaced = policyRestarts ? `policy process replaced: ${number(policyRestarts)}` : "decides";
    const state = silent.length ? `no answer from ${silent.join(", ")}` : replaced;
    const desired = slots.desired === null ? "all can be used" : `${number(slots.desired)} wanted`;
    const inUse = usable === executors.length ? "all in use" : `${number(usable)} in use`;
    content(
      this.tiles,
      tile("Mode", mode, adviseOnly ? "advice only, nothing is changed" : state),
      tile("Slots", number(slots.now), desired),
      tile("Executors", number(executors.length), inUse),
      tile("Streaming queries", number(total), ...(states.length ? states : ["none yet"])),
      tile("As of", clock(at), "last event"),
    );
  }

  #showExecutors(executors) {
    keyed(this.executors.body, executors.slice(0, EXECUTORS_SHOWN), ({ id }) => id, () => {
      const cells = [h("td"), h("td"), h("td"), h("td")];
      const update = (now) => {
        const values = [now.id, now.host, number(now.cores), executorState(now)];
        values.forEach((value, place) => text(cells[place], value));
      };
      return { node: h("tr", {}, ...cells), update };
    });
    const more = executors.length - EXECUTORS_SHOWN;
    text(this.more, more > 0 ? `and ${number(more)} more` : "");
  }

  // An overview out of the event log of an older version tells neither its parts nor what its Spark lacks.
  #showMissing({ parts = [], lacks = [] }) {
    const off = parts.filter(({ on }) => !on).map(({ name, reason }) => ({ what: name, why: reason }));
    const missing = [...off, ...lacks.map(({ what, why, instead }) => ({ what, why: `${why}; ${instead}` }))];
    this.without.node.hidden = !missing.length;
    text(this.without.extra, "everything else works");
    keyed(this.missing.body, missing, ({ what }) => what, () => {
      const [name, why] = [h("th", { scope: "row", class: "fw-normal" }), h("td", { class: "elastic-said" })];
      const update = (now) => {
        text(name, now.what);
        text(why, now.why);
      };
      return { node: h("tr", {}, name, why), update };
    });
  }
}

function executorState({ excluded, exclusion, decommissioning }) {
  if (decommissioning) return "decommissioning";
  if (!excluded) return "in use";
  return exclusion ? `excluded: ${exclusion}` : "excluded";
}
