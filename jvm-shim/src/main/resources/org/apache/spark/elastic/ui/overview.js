/** The first view: the application at a glance, its queries, its batch stages, its decisions. */

import { get, orNothing } from "./api.js";
import { ALL_DECISIONS, EXECUTIONS } from "./columns.js";
import { content, h, keyed, text } from "./dom.js";
import { amount, clock, number } from "./format.js";
import { Listing, grid, section } from "./listing.js";
import { Queries } from "./queries.js";
import { queryAddress, stateBadge, tile } from "./record.js";
import { pageLink } from "./spark.js";
import { Trend } from "./trend.js";

const EXECUTORS_SHOWN = 50;
const LISTED = 10;

export class Overview {
  constructor(refresh) {
    this.held = h("div", { class: "alert alert-warning py-2", role: "note", hidden: true });
    this.tiles = h("div", { class: "elastic-tiles mb-3" });
    this.trend = new Trend();
    this.queries = new Queries(refresh);
    this.executions = new Listing({ ...EXECUTIONS, size: LISTED, onpage: refresh });
    this.decisions = new Listing({ ...ALL_DECISIONS, size: LISTED, onpage: refresh });
    this.executors = grid("Executors", [{ name: "Id" }, { name: "Host" }, { name: "Cores" }, { name: "State" }]);
    this.more = h("p", { class: "small text-body-secondary" });
    const executors = section("Executors", this.executors.node, this.more);
    this.missing = grid("Not available on this Spark", [{ name: "What" }, { name: "Why" }]);
    this.without = section("Not Available on This Spark", this.missing.node);
    this.history = section("Timeline", this.trend.node);
    const sections = [this.history, this.queries, this.executions, this.decisions, executors, this.without];
    this.node = h("div", {}, this.held, this.tiles, ...sections.map(({ node }) => node));
  }

  /** The window's title after Spark's name for it. */
  title() {
    return [];
  }

  async update() {
    const [overview, queries, stages, executions, decisions, lately] = await Promise.all([
      get("overview"),
      get("queries", this.queries.parameters),
      get("stages", { limit: 1 }),
      orNothing(get("executions", { query: "none", ...this.executions.parameters })),
      get("decisions", this.decisions.parameters),
      this.trend.ask(),
    ]);
    this.ended = overview.ended;
    this.#showHeld(overview);
    this.#tiles(overview);
    const newest = (lately?.queries ?? []).map(({ batches }) => batches.at(-1)?.at ?? 0);
    this.history.node.hidden = !lately;
    this.trend.update(lately, Math.max(overview.at, ...newest));
    if (overview.ended) this.queries.showPart(queries.queries, overview.maxParallelism);
    else this.queries.show(queries.queries, queries.total, overview.maxParallelism);
    this.executions.node.hidden = !executions;
    // A History Server gives those of streaming queries as well.
    this.executions.show((executions?.executions ?? []).filter(({ query }) => !query));
    const left = stages.unanswered ? `${number(stages.unanswered)} left to Spark's own rules` : "";
    text(this.executions.section.extra, left);
    this.decisions.show(decisions.decisions);
    this.#showExecutors(overview.executors);
    this.#showMissing(overview);
  }

  /** Why nothing is done for queries that wait. An older event log does not say it. */
  #showHeld({ held }) {
    this.held.hidden = !held?.count;
    if (!held?.count) return;
    const many = held.count === 1 ? "1 query waits" : `${number(held.count)} queries wait`;
    const lines = held.decisions.map(({ query, name, message, until }) => {
      const by = until ? ` Until ${clock(until)} at the latest.` : "";
      return h("li", {}, h("a", { href: queryAddress(query) }, name ?? query.slice(0, 8)), `: ${message}${by}`);
    });
    const more = held.count - lines.length;
    const rest = more > 0 ? h("li", {}, `and ${number(more)} more`) : null;
    content(this.held, h("strong", {}, many), h("ul", { class: "mb-0 ps-3" }, ...lines, rest));
  }

  // An overview out of the event log of an older version has no custom policies, and no usage.
  #tiles({ mode, adviseOnly, slots, executors, queries, policyRestarts, customPolicies = [], usage, at }) {
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
      usage ? tile("Executor-hours", amount(usage.executorHours), ...used(usage)) : null,
      tile("As of", clock(at), "last event"),
    );
  }

  #showExecutors(executors) {
    keyed(this.executors.body, executors.slice(0, EXECUTORS_SHOWN), ({ id }) => id, () => {
      const cells = [h("td"), h("td"), h("td"), h("td")];
      const update = (now) => {
        content(cells[0], pageLink("executors", "", {}, now.id) ?? now.id);
        const values = [now.host, number(now.cores), executorState(now)];
        values.forEach((value, place) => text(cells[place + 1], value));
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

/** What the hours are made of, and what they cost if there is a price. */
function used({ since, coreHours, cost }) {
  const price = cost === null ? "" : `, cost ${amount(cost)}`;
  return [`${amount(coreHours)} core-hours${price}, since ${clock(since)}`];
}

function executorState({ excluded, exclusion, decommissioning }) {
  if (decommissioning) return "decommissioning";
  if (!excluded) return "in use";
  return exclusion ? `excluded: ${exclusion}` : "excluded";
}
