/**
 * One more or less than now, as bounds: the rule of + and −. The command line has the same one (`stepped` in
 * `spark_elastic_tools/cli/rescale.py`); a golden file holds both to it.
 */

/**
 * The bounds of a vertex that has or is about to have `now`, moved by `step` (1, -1). It is an order, even if it does
 * not pay: the bound behind it is moved there, the other one only where it is in the way. Null if there can be no such
 * count: `now` is not known, the fewest are 1, the most are `most`.
 */
export function stepped({ lowerBound, upperBound }, now, step, most) {
  if (now === null || now === undefined) return null;
  // New bounds may be waiting for the end of a cooldown.
  const to = Math.max(lowerBound, Math.min(upperBound, now)) + step;
  if (to < 1 || to > most) return null;
  if (step > 0) return { lowerBound: to, upperBound: Math.max(upperBound, to) };
  return { lowerBound: Math.min(lowerBound, to), upperBound: to };
}
