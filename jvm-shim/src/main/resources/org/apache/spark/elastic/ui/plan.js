/** The plan of an SQL execution, down to what decides about partitions: its scans, exchanges and joins. */

import { h, svg } from "./dom.js";
import { bytes, change, number } from "./format.js";
import { sizesInWords, skewOf } from "./histogram.js";

const [WIDTH, HEIGHT, ACROSS, DOWN, LINE] = [190, 78, 36, 14, 14];
const SHOWN = /Exchange|Scan|Join|Union|^(Range|LocalTableScan|InMemoryTableScan)$/;
const CLUSTER = /^WholeStageCodegen/;
const MOST = 200;
/** Spark's sizes are rounded, and those of its map outputs are estimates. */
const TOLERANCE = 0.15;
const SMALL = 4096;
const UNITS = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50 };

/** A metric of Spark: the number, or the sum of the bytes, that its text begins with; null if it has none. */
function metric({ metrics = [] }, name) {
  const said = metrics.find((one) => one.name === name)?.value.split("\n").at(-1) ?? "";
  const [, value, unit] = /^\s*([\d,.]+)\s*([KMGTP]?i?B)?/.exec(said) ?? [];
  return value === undefined ? null : Number(value.replaceAll(",", "")) * (UNITS[unit] ?? 1);
}

/** What was decided about each exchange, from the decisions of an execution (newest first). */
function decidedExchanges(stages) {
  const found = new Map();
  for (const stage of stages) {
    for (const { id, bytes: size } of stage.exchanges) {
      const known = found.get(id) ?? { id };
      const kind = { InitialCount: "written", Ranges: "read" }[stage.question];
      // An exchange is asked about again when what is below has run: the last answer holds.
      if (kind && !known[kind]) Object.assign(known, { [kind]: stage, ...(kind === "read" ? { size } : {}) });
      found.set(id, known);
    }
  }
  return [...found.values()];
}

/** How far an exchange of the plan is from one that was decided about, from 0 on; null: it is another one. */
function distance(node, { written, read, size }) {
  const partitions = metric(node, "number of partitions");
  const count = read ? read.before : written?.after;
  if (partitions === null || partitions !== count) return null;
  const wrote = metric(node, "shuffle bytes written");
  if (size === undefined || wrote === null) return size === undefined && wrote === null ? 0 : null;
  const away = Math.abs(wrote - size);
  return away <= Math.max(SMALL, TOLERANCE * wrote) ? away : null;
}

/** Which decisions are about which exchange: Spark's plan has no names for them, but their partitions and bytes. */
function assign(nodes, stages) {
  const pairs = nodes
    .filter(({ nodeName }) => nodeName === "Exchange")
    .flatMap((node) => decidedExchanges(stages).map((decided) => [distance(node, decided), node.nodeId, decided]))
    .filter(([away]) => away !== null)
    .sort(([one], [other]) => one - other);
  const found = new Map();
  const taken = new Set();
  for (const [, node, decided] of pairs) {
    if (!found.has(node) && !taken.has(decided.id)) {
      found.set(node, decided);
      taken.add(decided.id);
    }
  }
  return found;
}

/** The plan without what is left out: nodes with the nodes that read from them. */
function contracted({ nodes, edges }) {
  const all = nodes.filter(({ nodeName }) => !CLUSTER.test(nodeName));
  const readers = new Map(all.map(({ nodeId }) => [nodeId, []]));
  const isRead = new Set();
  for (const { fromId, toId } of edges) {
    if (!readers.has(toId)) continue;
    readers.get(fromId)?.push(toId);
    isRead.add(toId);
  }
  const isShown = new Set(
    all
      .filter(({ nodeId, nodeName }) => SHOWN.test(nodeName) || !isRead.has(nodeId) || !readers.get(nodeId).length)
      .filter(({ nodeName }) => nodeName !== "AQEShuffleRead")
      .map(({ nodeId }) => nodeId),
  );
  const next = (id) => readers.get(id).flatMap((to) => (isShown.has(to) ? [to] : next(to)));
  const shown = all.filter(({ nodeId }) => isShown.has(nodeId));
  return shown.map((node) => ({ ...node, readers: [...new Set(next(node.nodeId))] }));
}

/**
 * Columns from what is read to the result. Each node stands just before the first that reads it, so that no line leads
 * behind a box between them, and nodes in the order of what reads them, so that lines do not cross.
 */
function columns(nodes) {
  const ahead = new Map(nodes.map(({ nodeId }) => [nodeId, 0]));
  // As many rounds as the longest way has steps.
  for (let changed = true, rounds = 0; changed && rounds <= nodes.length; rounds += 1) {
    changed = false;
    for (const { nodeId, readers } of nodes) {
      const steps = Math.max(-1, ...readers.map((reader) => ahead.get(reader))) + 1;
      changed ||= steps !== ahead.get(nodeId);
      ahead.set(nodeId, steps);
    }
  }
  const found = [];
  for (const node of nodes) (found[ahead.get(node.nodeId)] ??= []).push(node);
  const rows = new Map();
  const row = ({ readers }) => Math.min(...readers.map((reader) => rows.get(reader)));
  const stacks = found.filter(Boolean);
  for (const stack of stacks) {
    stack.sort((one, other) => (one.readers.length && other.readers.length ? row(one) - row(other) : 0));
    stack.forEach(({ nodeId }, place) => rows.set(nodeId, place));
  }
  return stacks.reverse();
}

/** What is said of a node, in lines. */
function linesOf(node, decided) {
  if (!decided) {
    const [partitions, wrote] = [metric(node, "number of partitions"), metric(node, "shuffle bytes written")];
    const rows = metric(node, "number of output rows");
    return [
      partitions === null ? null : `${number(partitions)} partitions`,
      wrote === null ? null : `${bytes(wrote)} written`,
      partitions === null && rows !== null ? `${number(rows)} rows` : null,
    ].filter((line) => line !== null);
  }
  const { written, read } = decided;
  const count = written ? change(written.before, written.after) : number(read.before);
  if (!read) return [`${count} partitions`, "not written yet"];
  const readers = read.after ?? read.before;
  const tasks = `read by ${number(readers)} ${readers === 1 ? "task" : "tasks"}`;
  const skew = read.sizes ? `, skew ${number(skewOf(read.sizes))} ×` : "";
  return [`${count} partitions`, `${bytes(decided.size)} written`, tasks + skew];
}

function short(name) {
  return name.length > 24 ? `${name.slice(0, 23)}…` : name;
}

/** The picture of a plan as Spark's API has it, with the decisions about it (newest first); null without nodes. */
export function plan(graph, stages) {
  const nodes = contracted(graph);
  if (!nodes.length) return null;
  if (nodes.length > MOST) return h("p", { class: "text-body-secondary" }, "The plan is too large to be drawn here.");
  const found = assign(nodes, stages);
  const places = new Map();
  const stacks = columns(nodes);
  stacks.forEach((stack, column) =>
    stack.forEach(({ nodeId }, row) => places.set(nodeId, [column * (WIDTH + ACROSS) + 1, row * (HEIGHT + DOWN) + 1])),
  );
  const wide = stacks.length * (WIDTH + ACROSS) - ACROSS + 2;
  const high = Math.max(...stacks.map(({ length }) => length)) * (HEIGHT + DOWN) - DOWN + 2;
  const edges = nodes.flatMap(({ nodeId, readers }) =>
    readers.map((reader) => edge(places.get(nodeId), places.get(reader))),
  );
  const drawn = nodes.map((node) => box(node, found.get(node.nodeId), places.get(node.nodeId)));
  const said = nodes.map((node) => [node.nodeName, ...linesOf(node, found.get(node.nodeId))].join(", "));
  const size = { width: wide, height: high, viewBox: `0 0 ${wide} ${high}` };
  const picture = svg("svg", { class: "elastic-plan", role: "img", "aria-label": `Plan: ${said.join("; ")}`, ...size });
  picture.append(...edges, ...drawn);
  const scrolls = { class: "elastic-scroll", tabindex: "0", role: "region", "aria-label": "Plan" };
  return h("div", scrolls, picture);
}

function edge([x, y], [toX, toY]) {
  const [from, to, middle] = [y + HEIGHT / 2, toY + HEIGHT / 2, toX - ACROSS / 2];
  // Straight beside the boxes of its own column, and then over to the other one.
  const over = `C${middle + 4} ${from} ${middle - 4} ${to} ${toX} ${to}`;
  return svg("path", { d: `M${x + WIDTH} ${from}H${toX - ACROSS}${over}` });
}

function box(node, decided, [x, y]) {
  const why = [decided?.written, decided?.read].filter(Boolean).map(({ message }) => message);
  const size = decided?.read?.sizes;
  const title = svg("title", {}, [node.nodeName, ...why, ...(size ? [sizesInWords(size)] : [])].join("\n"));
  const lines = linesOf(node, decided).map((line, place) =>
    svg("text", { x: x + 8, y: y + 18 + (place + 1) * (LINE + 2) }, line),
  );
  const name = svg("text", { x: x + 8, y: y + 18, class: "title" }, short(node.nodeName));
  const frame = svg("rect", { x, y, width: WIDTH, height: HEIGHT, rx: 4 });
  return svg("g", { class: decided ? "decided" : "" }, title, frame, name, ...lines);
}
