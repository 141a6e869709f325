/** How many tasks are how large, as bars. */

import { svg } from "./dom.js";
import { bytes, number } from "./format.js";

const HEIGHT = 24;
const BAR = 7;

/** How many times the median the largest is, null if half of them are empty. */
export function skewOf({ median, largest }) {
  return median > 0 ? largest / median : null;
}

/** In words, for those who do not see the bars. */
export function sizesInWords({ of, count, smallest, median, largest }) {
  return `${number(count)} ${of}: ${bytes(smallest)} to ${bytes(largest)}, half of them up to ${bytes(median)}`;
}

/** Bars of equal steps from 0 to the largest; `scale` makes them larger. */
export function histogram(sizes, scale = 1) {
  const most = Math.max(...sizes.buckets);
  const width = sizes.buckets.length * BAR;
  const bars = sizes.buckets.map((count, place) => {
    // The least there is can still be seen.
    const tall = count ? Math.max(2, (count / most) * HEIGHT) : 0;
    const at = { x: place * BAR, y: HEIGHT - tall, width: BAR - 1, height: tall };
    const [from, to] = [place, place + 1].map((end) => bytes(Math.round((end * sizes.largest) / sizes.buckets.length)));
    return svg("rect", at, svg("title", {}, `${number(count)} ${sizes.of} of ${from} to ${to}`));
  });
  const label = { role: "img", "aria-label": sizesInWords(sizes) };
  const ground = svg("path", { d: `M0 ${HEIGHT + 0.5}H${width}` });
  const size = { viewBox: `0 0 ${width} ${HEIGHT + 1}`, width: width * scale, height: (HEIGHT + 1) * scale };
  return svg("svg", { class: "elastic-histogram", ...size, ...label }, ground, ...bars);
}
