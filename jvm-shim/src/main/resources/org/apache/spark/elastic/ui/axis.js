/** Where an axis ends: so that most of what is there has room, even if one value is far above the others. */

import { ceiling } from "./format.js";

/** Fewer values than this do not say what is usual. */
const FEWEST = 8;
const USUAL = 0.95;
/** A value that is this many times what is usual would flatten all others. */
const FAR = 3;
const ROOM = 1.5;
/** A limit is shown if that leaves the values this part of the height. */
const FLATTEST = 4;

/**
 * Return where an axis for values of 0 and above ends. Values above that should be marked. `limit` is one that
 * should be seen (0: none), and `whole` says that there are whole numbers alone.
 */
export function axisEnd(values, limit = 0, whole = false) {
  const known = values.filter((value) => value > 0).sort((one, other) => one - other);
  const largest = known.at(-1) ?? 0;
  const usual = known[Math.floor(USUAL * (known.length - 1))] ?? 0;
  const isFar = known.length >= FEWEST && largest > FAR * usual;
  const high = isFar ? ROOM * usual : largest;
  const end = limit > 0 && (high === 0 || limit <= FLATTEST * high) ? Math.max(high, limit) : high;
  if (!whole) return ceiling(end);
  const top = Math.max(1, Math.ceil(end));
  return top + Math.ceil(top / 8);
}
