/** The timeline of a query: slots and partitions, input rate, batch time and lag; rescales and losses are marks. */

import { Chart, SAMPLES, beginOf, departures, since, take } from "./chart.js";
import { svg } from "./dom.js";
import { change, clock, duration, number, words } from "./format.js";

const TRIGGER = { label: "trigger", draw: () => svg("path", { class: "limit", d: "M0 5H22" }) };

/** The picture of one query. */
export class Picture {
  constructor() {
    this.series = { batches: [], slots: [], lost: [] };
    this.chart = new Chart("Timeline", [TRIGGER, SAMPLES.rescale, SAMPLES.lost, SAMPLES.released]);
    this.node = this.chart.node;
  }

  /** The time after which news are requested. */
  get latest() {
    const { batches, slots, lost } = this.series;
    // Each series has its own newest; what comes twice is left out.
    return Math.min(...[batches, slots, lost].filter((kept) => kept.length).map((kept) => kept.at(-1).at), Infinity);
  }

  /** Take in what has come since, and the rescales (newest first); `kept` is how many batches are kept at most. */
  update(news, rescales, triggerMs, now, kept = 240) {
    take(this.series, news, kept);
    const { batches, slots, lost } = this.series;
    const begin = beginOf(batches[0]?.at, now);
    const of = (value) => batches.map((one) => ({ at: one.at, value: value(one) }));
    const there = slots.map((one) => ({ at: one.at, value: one.slots }));
    const lanes = [
      {
        title: "Partitions, slots",
        format: number,
        whole: true,
        series: [
          { name: "slots", label: "slots", items: since(there, begin), steps: true, fills: true },
          { name: "partitions", label: "partitions", items: of((one) => one.partitions), steps: true },
        ],
      },
      {
        title: "Input rows per second",
        format: number,
        series: [{ name: "rate", label: "input rate", items: of((one) => one.inputRowsPerSecond) }],
      },
      {
        title: "Batch time",
        format: duration,
        limit: triggerMs,
        series: [{ name: "time", label: "batch time", items: of((one) => one.durationMs) }],
      },
    ];
    // An event log of an older version has no lag.
    if (batches.some(({ lagMs }) => lagMs !== undefined)) {
      const items = of((one) => one.lagMs ?? null);
      lanes.push({ title: "Lag", format: duration, series: [{ name: "lag", label: "lag", items }] });
    }
    const moves = rescales.filter(({ started }) => started >= begin).map((one) => ({
      from: one.started,
      to: one.ended ?? now,
      kind: `rescale ${one.status}`,
      title: `Rescale ${one.number}, ${clock(one.started)}: ${rescaleInWords(one)}`,
    }));
    const marks = [...moves, ...departures(lost, begin)];
    this.chart.show({ begin, end: now, lanes, marks, summary: this.#inWords() });
  }

  #inWords() {
    const last = this.series.batches.at(-1);
    const lately = last
      ? `the last micro-batch took ${duration(last.durationMs)} with ${number(last.partitions)} partitions`
      : "no micro-batch yet";
    return `${lately}, ${number(this.series.slots.at(-1)?.slots)} slots.`;
  }
}

/** What a rescale was about, in a few words. */
export function rescaleInWords({ cause, partitionsBefore, partitionsAfter, status }) {
  return `${words(cause)}, ${change(partitionsBefore, partitionsAfter)} partitions, ${words(status)}`;
}
