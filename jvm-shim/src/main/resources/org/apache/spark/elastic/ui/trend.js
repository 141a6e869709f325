/** The application over time: slots, what is wanted and executors; load and lag of the queries that lag most. */

import { get, orNothing } from "./api.js";
import { Chart, SAMPLES, beginOf, departures, since, take } from "./chart.js";
import { duration, number, percent } from "./format.js";

const KEPT = 500;
/** What comes twice is left out. */
const OVERLAP_MS = 10000;
/** As many colours are told apart. */
const COLOURS = 8;

/** The chart of the overview; `node` is hidden where there is nothing to show. */
export class Trend {
  constructor() {
    this.series = { slots: [], lost: [] };
    this.queries = new Map();
    this.chart = new Chart("Slots, load and lag", [SAMPLES.lost, SAMPLES.released]);
    this.node = this.chart.node;
  }

  /** Ask for what is new, null if there is no answer to that, as in the event log of an older version. */
  async ask() {
    const after = this.#latest;
    const news = await orNothing(get("timeline", after ? { after } : {}));
    const isNew = ({ id }) => !this.queries.has(id);
    // Of a query that was not among them, all is new.
    return news && after && news.queries.some(isNew) ? orNothing(get("timeline")) : news;
  }

  /** The time after which news are requested: what is known has ended by then, and comes in about that order. */
  get #latest() {
    const ends = [...this.queries.values()].flatMap(({ batches }) => batches.slice(-1)).map(endOf);
    const newest = Math.max(...ends, ...Object.values(this.series).flatMap((kept) => kept.slice(-1)).map(endOf), 0);
    return Math.max(newest - OVERLAP_MS, 0);
  }

  /** Take in an answer, and show it up to `now`. */
  update(news, now) {
    this.node.hidden = !news;
    if (!news) return;
    const { queries, ...common } = news;
    take(this.series, common, KEPT);
    const named = new Set(queries.map(({ id }) => id));
    for (const id of this.queries.keys()) if (!named.has(id)) this.queries.delete(id);
    for (const { batches, ...about } of queries) {
      const known = this.queries.get(about.id) ?? { colour: this.#colour(), batches: [] };
      take(known, { batches }, KEPT);
      this.queries.set(about.id, { ...known, ...about });
    }
    this.#show(now);
  }

  /** A colour that no other query has: it stays with its query. */
  #colour() {
    const taken = new Set([...this.queries.values()].map(({ colour }) => colour));
    const free = Array.from({ length: COLOURS }, (_, place) => place).find((place) => !taken.has(place));
    return free ?? this.queries.size % COLOURS;
  }

  #show(now) {
    const { slots, lost } = this.series;
    const known = [...this.queries.values()].filter(({ batches }) => batches.length);
    const shown = known.sort((one, other) => one.colour - other.colour);
    const first = Math.min(...shown.map(({ batches }) => batches[0].at), slots[0]?.at ?? now);
    const begin = beginOf(first, now);
    const of = (value) => since(slots.map((one) => ({ at: one.at, value: value(one) })), begin);
    const lines = (queries, value) =>
      queries.map(({ id, name, colour, batches, triggerMs }) => ({
        name: `query-${colour}`,
        label: name ?? id.slice(0, 8),
        items: batches.map((one) => ({ at: one.at, value: value(one, triggerMs) })),
      }));
    const timed = shown.filter(({ triggerMs }) => triggerMs > 0);
    const lanes = [
      {
        title: "Slots, executors",
        format: number,
        whole: true,
        series: [
          { name: "slots", label: "slots", items: of((one) => one.slots), steps: true, fills: true },
          { name: "wanted", label: "slots wanted", items: of((one) => one.wanted), steps: true },
          { name: "executors", label: "executors", items: of((one) => one.executors), steps: true },
        ],
      },
    ];
    if (timed.length) {
      const series = named("load", lines(timed, (one, triggerMs) => one.durationMs / triggerMs));
      lanes.push({ title: "Load: batch time by trigger interval", format: percent, limit: 1, series });
    }
    if (shown.length) {
      lanes.push({ title: "Lag", format: duration, series: named("lag", lines(shown, (one) => one.lagMs)) });
    }
    const marks = departures(lost, begin);
    this.chart.show({ begin, end: now, lanes, marks, summary: inWords(slots.at(-1), shown) });
  }
}

function endOf({ at, durationMs = 0 }) {
  return at + durationMs;
}

/** Series by what they are, and by the query, which has one entry for all of them. */
function named(what, series) {
  return series.map((one) => ({ ...one, what, entry: one.label, label: `${what} of ${one.label}` }));
}

function inWords(last, queries) {
  const wanted = last?.wanted === null ? "all can be used" : `${number(last?.wanted)} wanted`;
  const lag = ({ batches }) => duration(batches.at(-1).lagMs);
  const lags = queries.map((query) => `${query.name ?? query.id} lags by ${lag(query)}`);
  return [`${number(last?.slots)} slots, ${wanted}, ${number(last?.executors)} executors`, ...lags].join(", ");
}
