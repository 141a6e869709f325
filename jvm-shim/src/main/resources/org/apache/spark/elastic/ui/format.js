/** Numbers, sizes and times as people read them. */

const DASH = "–";

/** 12345.6 → "12,346"; small numbers keep a digit or two. */
export function number(value) {
  if (value === null || value === undefined) return DASH;
  const digits = Number.isInteger(value) || Math.abs(value) >= 100 ? 0 : 1;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}

/** 0.004183 → "0.0042", 12.345 → "12.3": with the digits that count, however small. */
export function amount(value) {
  if (value === null || value === undefined) return DASH;
  return value >= 1 ? number(value) : value.toLocaleString("en-US", { maximumSignificantDigits: 2 });
}

/** Milliseconds → "312 ms", "1.5 s", "5 min", "2 h". */
export function duration(ms) {
  if (ms === null || ms === undefined) return DASH;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${number(Math.round(ms / 100) / 10)} s`;
  if (ms < 3600000) return `${number(Math.round(ms / 6000) / 10)} min`;
  return `${number(Math.round(ms / 360000) / 10)} h`;
}

/** Bytes → "312 B", "1.5 MiB". */
export function bytes(value) {
  if (value === null || value === undefined || value < 0) return DASH;
  let unit = 0;
  for (; value >= 1024 && unit < 5; unit += 1) value /= 1024;
  return `${number(unit ? Math.round(value * 10) / 10 : value)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
}

/** Epoch ms → "2026/11/21 20:45:12" in the reader's time zone, as Spark writes it. */
export function time(at) {
  return at === null || at === undefined ? DASH : `${day(at)} ${clock(at)}`;
}

/** Epoch ms → "2026/11/21". */
export function day(at) {
  const date = new Date(at);
  return [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("/");
}

/** Epoch ms → "20:45:12". */
export function clock(at) {
  const date = new Date(at);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
}

function two(value) {
  return String(value).padStart(2, "0");
}

/** "rescale_state" → "rescale state". */
export function words(code) {
  return String(code).replaceAll("_", " ");
}

/** The name of a vertex: "shuffle" → "Shuffle", "source-0" → "Source 0". */
export function called(vertex) {
  return vertex[0].toUpperCase() + vertex.slice(1).replace("-", " ");
}

/** A change from one count to another: "2 → 4". */
export function change(before, after) {
  if (before === null || before === undefined) return number(after);
  if (after === null || after === undefined || after === before) return number(before);
  return `${number(before)} → ${number(after)}`;
}

/** A round number that is not below `value`: where an axis ends. */
export function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((end) => end >= value * 0.999);
}

/** 0.8449 → "84 %". */
export function percent(part) {
  return part === null || part === undefined ? DASH : `${Math.round(part * 100)} %`;
}
