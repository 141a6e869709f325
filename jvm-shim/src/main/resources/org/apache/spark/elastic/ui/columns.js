/** What the listings show of each record, in columns and when it is opened. */

import { content, h } from "./dom.js";
import { bytes, change, clock, duration, number, time, words } from "./format.js";
import { histogram, sizesInWords, skewOf } from "./histogram.js";
import { moment, plain } from "./listing.js";
import { executionAddress, facts, kindBadge, queryAddress, record, statusBadge } from "./record.js";

const QUESTIONS = {
  InitialCount: "partitions to write",
  Ranges: "ranges to read",
  SplitSize: "splits of a scan",
  SplitOffsets: "reads of Kafka",
  JoinPartitions: "reads of a source",
};
const NUMBERS = "text-end text-nowrap";
/** Changes that a row shows. */
const CHANGES = 4;

function stageRecord(stage) {
  const { sizes } = stage;
  const shown = sizes
    ? h("div", {}, h("h5", {}, "Sizes"), histogram(sizes, 3), h("p", { class: "mb-0" }, sizesInWords(sizes)))
    : null;
  return record({ ...stage, cause: stage.group }, shown);
}

/** Decisions about batch stages. */
export const STAGES = {
  title: "Batch Stages",
  empty: "No batch stage yet.",
  key: ({ number: name }) => name,
  record: stageRecord,
  columns: [
    { name: "Decided", show: moment(({ at }) => at), kind: "text-nowrap" },
    { name: "About", show: plain(({ question }) => QUESTIONS[question] ?? question), wide: true },
    { name: "Execution", show: showExecution, wide: true },
    {
      name: "Bytes",
      show: plain(({ sizes, numbers }) => bytes(sizes?.total ?? numbers.bytes)),
      kind: NUMBERS,
      wide: true,
    },
    { name: "Parallelism", show: plain(({ before, after }) => change(before, after)), kind: NUMBERS },
    { name: "Task sizes", show: ({ sizes }, td) => content(td, sizes ? histogram(sizes) : "–"), wide: true },
    { name: "Why", show: plain(({ message }) => message), kind: "elastic-said" },
  ],
};

/** Each decision about an execution, one below the other. */
function executionRecord({ stages }) {
  const about = (stage) => `${QUESTIONS[stage.question] ?? stage.question}: ${change(stage.before, stage.after)}`;
  const heading = (stage) => h("h5", { class: "px-2 mt-2" }, about(stage));
  return h("div", {}, ...stages.flatMap((stage) => [heading(stage), stageRecord(stage)]));
}

function showExecution({ execution }, td) {
  return content(td, execution ? h("a", { href: executionAddress(execution) }, execution.slice(0, 8)) : "–");
}

/** The changes that were decided, without those of no number. */
function changes({ stages }) {
  const found = stages.filter(({ before, after }) => before !== after && after !== null).reverse();
  const shown = found.slice(0, CHANGES).map(({ before, after }) => change(before, after).replaceAll(" ", "\u00a0"));
  return [...shown, ...(found.length > CHANGES ? ["…"] : [])].join(", ") || "as planned";
}

/** The largest value of the decisions that have one. */
function largestOf(stages, value) {
  const known = stages.filter(({ sizes }) => sizes).map(({ sizes }) => value(sizes));
  return known.length ? Math.max(...known) : null;
}

/** Decisions about batch stages, by SQL execution. */
export const EXECUTIONS = {
  title: "SQL Executions",
  empty: "No batch stage yet.",
  key: ({ number: name }) => name,
  record: executionRecord,
  columns: [
    { name: "Decided", show: moment(({ stages }) => stages[0].at), kind: "text-nowrap" },
    { name: "Execution", show: showExecution },
    { name: "Decisions", show: plain(({ stages }) => number(stages.length)), kind: NUMBERS, wide: true },
    { name: "Parallelism", show: plain(changes), kind: "text-end" },
    { name: "Largest shuffle", show: plain(({ stages }) => shuffled(stages)), kind: NUMBERS, wide: true },
    { name: "Skew", show: plain(({ stages }) => skewed(stages)), kind: NUMBERS, wide: true },
    { name: "Last decision", show: plain(({ stages }) => stages[0].message), kind: "elastic-said" },
  ],
};

function shuffled(stages) {
  return bytes(largestOf(stages, ({ total }) => total));
}

function skewed(stages) {
  const skew = largestOf(stages, skewOf);
  return skew ? `${number(skew)} ×` : "–";
}

/** Decisions of all kinds. */
export const DECISIONS = {
  title: "Decisions",
  key: ({ number: name }) => name,
  record,
  columns: [
    { name: "Decided", show: moment(({ at }) => at), kind: "text-nowrap" },
    { name: "Kind", show: ({ kind }, td) => content(td, kindBadge(kind)), wide: true },
    { name: "What and why", show: plain(({ message }) => message), kind: "elastic-said" },
  ],
};

/** Those of all queries, and of none, each with the query that it is about. */
export const ALL_DECISIONS = {
  ...DECISIONS,
  columns: [...DECISIONS.columns.slice(0, 2), { name: "Query", show: showQuery }, ...DECISIONS.columns.slice(2)],
};

// A decision out of the event log of an older version has no name.
function showQuery({ query, name }, td) {
  const link = query && h("a", { href: queryAddress(query) }, name ?? query.slice(0, 8));
  return content(td, link ?? "–");
}

const PHASES = { runs: "running", prepares: "preparing: batches continue", pauses: "paused" };

/** Until a rescale reaches the boundary between two batches the query runs on: only the rest is a pause. */
function phasesOf({ states, pausedMs, warmUpMs, preparedMs }) {
  const stays = states.filter(({ entered, left }) => left !== null && left > entered);
  const lastRun = stays.filter(({ state }) => state === "Executing").at(-1);
  return stays.flatMap((stay) => {
    const { state, entered, left } = stay;
    const took = left - entered;
    if (state === "Executing") {
      const copied = stay === lastRun ? Math.min(preparedMs ?? 0, took) : 0;
      const run = { name: "Executing", kind: "runs", took: took - copied };
      return [run, { name: "Copying", kind: "prepares", took: copied }].filter((part) => part.took);
    }
    if (state !== "Restarting" || took <= pausedMs) return [{ name: state, kind: "pauses", took }];
    const before = { name: warmUpMs ? "Warm-up" : "Waiting for the batch", kind: "prepares", took: took - pausedMs };
    return pausedMs ? [before, { name: "Restarting", kind: "pauses", took: pausedMs }] : [before];
  });
}

/** The phases of a rescale as a bar, with how long they took in all. */
function phases(rescale) {
  const named = phasesOf(rescale);
  const total = named.reduce((sum, { took }) => sum + took, 0);
  const parts = named.map(({ name, kind, took }) => {
    const part = h("div", { class: `elastic-phase ${kind}`, title: `${name}: ${duration(took)}` });
    part.style.width = `${(took / total) * 100}%`;
    return part;
  });
  const label = named.map(({ name, took }) => `${name} ${duration(took)}`).join(", ") || "no time";
  const bar = h("div", { class: "elastic-phases", role: "img", "aria-label": label }, ...parts);
  return h("div", {}, bar, total ? duration(total) : "at once");
}

function phaseLegend() {
  const sample = ([kind, label]) =>
    h("span", { class: "me-3 text-nowrap" }, h("span", { class: `elastic-phase sample ${kind}` }), ` ${label}`);
  return h("span", { class: "small text-body-secondary" }, ...Object.entries(PHASES).map(sample));
}

function rescaleRecord(one) {
  const stays = one.states.map(({ state, entered, left }) => [
    state,
    left === null ? `since ${clock(entered)}` : `${duration(left - entered)}, from ${clock(entered)}`,
  ]);
  const about = facts([
    ["Cause", words(one.cause)],
    ["Outcome", one.reason ? words(one.reason) : "under way"],
    ["Ended", one.ended ? time(one.ended) : null],
    ["Partitions", change(one.partitionsBefore, one.partitionsAfter)],
    ["Slots", change(one.slotsBefore, one.slotsAfter)],
    ["Prepared in", one.preparedMs ? duration(one.preparedMs) : null],
    ["Paused", duration(one.pausedMs)],
    ["First batch", one.firstBatchMs ? duration(one.firstBatchMs) : null],
    ["New executors in use after", one.executorsUsed ? duration(one.executorsUsed - one.started) : null],
    ["Of that, warming up", one.warmUpMs ? duration(one.warmUpMs) : null],
    ["Bounds", `number ${number(one.requirements)}, attempt ${number(one.attempt)} with them`],
  ]);
  return h(
    "div",
    { class: "d-flex flex-wrap gap-4 p-2" },
    h("div", {}, h("h5", {}, "Rescale"), about),
    h("div", {}, h("h5", {}, "Phases"), facts(stays)),
  );
}

function showOutcome({ status, reason }, td) {
  const more = reason && status !== "completed" ? ` ${words(reason)}` : "";
  content(td, statusBadge(status), h("span", { class: "d-none d-lg-inline" }, more));
}

/** What became of each rescale of a query. */
export const RESCALES = {
  title: "Rescales",
  legend: phaseLegend,
  minor: {
    label: "Show ignored ones and restarts after failures",
    is: ({ status, cause, partitionsBefore: before, partitionsAfter: after }) =>
      status === "ignored" || (cause === "recoverable_failover" && status === "completed" && before === after),
  },
  key: ({ number: name }) => name,
  record: rescaleRecord,
  columns: [
    { name: "Started", show: moment(({ started }) => started), kind: "text-nowrap" },
    { name: "Cause", show: plain(({ cause }) => words(cause)) },
    { name: "Partitions", show: plain((one) => change(one.partitionsBefore, one.partitionsAfter)), kind: NUMBERS },
    { name: "Slots", show: plain((one) => change(one.slotsBefore, one.slotsAfter)), kind: NUMBERS, wide: true },
    { name: "Phases", show: (one, td) => content(td, phases(one)), wide: true },
    { name: "Downtime", show: plain(({ pausedMs }) => (pausedMs ? duration(pausedMs) : "none")), kind: NUMBERS },
    { name: "Outcome", show: showOutcome },
  ],
};

function exceptionRecord(one) {
  const about = facts([
    ["Condition", one.errorClass],
    ["Causes", one.causes.join(", ") || null],
    ["Offsets", one.offsets || null],
    ["Rule", h("code", {}, one.reason)],
  ]);
  return h("div", { class: "p-2" }, h("pre", {}, one.error), about);
}

// An exception out of the event log of an older version has no summary.
function errorInShort({ summary, error }) {
  return (summary ?? error).split("\n")[0].slice(0, 300);
}

/** Why runs of a query have failed. */
export const EXCEPTIONS = {
  title: "Exceptions",
  empty: "None.",
  key: ({ at }) => at,
  record: exceptionRecord,
  columns: [
    { name: "Failed", show: moment(({ at }) => at), kind: "text-nowrap" },
    { name: "Error", show: plain(errorInShort), kind: "elastic-said" },
    { name: "What followed", show: plain(({ reason }) => words(reason)) },
  ],
};
