/** The full record of a decision, and what else several places show of one. */

import { h } from "./dom.js";
import { bytes, change, duration, number, time, words } from "./format.js";
import { isExecution, pageLink } from "./spark.js";

const KINDS = {
  rescale_in_place: "success",
  rescale_state: "primary",
  start: "success",
  stage: "success",
  held: "warning",
  nothing_to_do: "secondary",
  finished: "secondary",
  failed: "danger",
  info: "info",
};

const STATES = { Executing: "success", Failing: "danger", Canceling: "secondary", Finished: "secondary" };

/** A word in a colour of Bootstrap. */
export function badge(label, colour) {
  // By its name in Bootstrap 4, before Spark 4.2, and by that in Bootstrap 5.
  return h("span", { class: `badge badge-${colour} text-bg-${colour}` }, label);
}

/** What kind of decision it is, as a badge. */
export function kindBadge(kind) {
  return badge(words(kind), KINDS[kind] ?? "secondary");
}

/** The state of a query, as a badge. */
export function stateBadge(state) {
  return badge(state, STATES[state] ?? "warning");
}

/** The copy of a query's state that is under way, if any. An older event log does not say it. */
export function preparation({ preparing, partitions }) {
  return preparing ? h("span", { class: "ms-2 small" }, `Preparing ${change(partitions, preparing.partitions)}`) : null;
}

/** Where the page of a query is. */
export function queryAddress(id) {
  return `#query=${encodeURIComponent(id)}`;
}

/** Where the view of an SQL execution is. */
export function executionAddress(id) {
  return `#sql=${encodeURIComponent(id)}`;
}

/** What became of a rescale, as a badge. */
export function statusBadge(status) {
  const colours = { completed: "success", failed: "danger", in_progress: "warning" };
  return badge(words(status), colours[status] ?? "secondary");
}

/** One figure with its name above and something about it below. */
export function tile(name, value, ...below) {
  const body = h("div", { class: "card-body p-2 px-3" }, h("div", { class: "text-body-secondary small" }, name));
  body.append(h("div", { class: "fs-4" }, value), h("div", { class: "small" }, ...below));
  return h("div", { class: "card" }, body);
}

/** A compared number by its name: the names say what is a time and what a size. */
function figure(name, value) {
  if (typeof value !== "number") return String(value);
  if (name.endsWith("_ms")) return duration(value);
  return /(^|_)(bytes|volume|read|total|size|largest|smallest)$/.test(name) ? bytes(value) : number(value);
}

/** Names with what they stand for. */
export function facts(entries) {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined);
  const lines = shown.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
  return h("dl", { class: "elastic-facts mb-0" }, ...lines);
}

/** The view of an SQL execution, and Spark's own page of it. */
function executionLinks(id) {
  const here = h("a", { href: executionAddress(id) }, id);
  const there = isExecution(id) ? pageLink("SQL", "execution/", { id }, "Spark's page") : null;
  return there ? h("span", {}, here, ", ", there) : here;
}

function isOfExecutors({ query, message }) {
  return query === null && /executor/i.test(message);
}

/** All that is known of a decision: what was compared, by which rule, and what else was looked at. */
export function record(decision, ...more) {
  const { numbers = {}, alternatives = [], before, after, until } = decision;
  const said = facts([
    ["Message", decision.message],
    ["Rule", h("code", {}, decision.reason)],
    ["Kind", words(decision.kind)],
    ["Partitions", before === null && after === null ? null : change(before, after)],
    ["Caused by event", decision.cause],
    ["SQL execution", decision.execution ? executionLinks(decision.execution) : null],
    ["Query", decision.query ? h("a", { href: queryAddress(decision.query) }, decision.name ?? decision.query) : null],
    ["Executors", isOfExecutors(decision) ? pageLink("executors", "", {}, "Spark's page of them") : null],
    ["Holds until", until ? time(until) : null],
  ]);
  const compared = Object.entries(numbers).map(([name, value]) => [words(name), figure(name, value)]);
  const others = h("ul", { class: "mb-0 ps-3" }, ...alternatives.map((other) => h("li", {}, other)));
  return h(
    "div",
    { class: "d-flex flex-wrap gap-4 p-2" },
    h("div", {}, h("h5", {}, "Decision"), said),
    compared.length ? h("div", {}, h("h5", {}, "Compared"), facts(compared)) : null,
    alternatives.length ? h("div", {}, h("h5", {}, "Also looked at"), others) : null,
    ...more,
  );
}
