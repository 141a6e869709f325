/** The REST API, asked by links relative to this file: they hold behind every proxy that brought it here. */

const ROOT = new URL("../api/v1/", import.meta.url);
const PATIENCE_MS = 15000;

/** Why something was not had: the HTTP status (0: no answer at all), and the sentences that came with it. */
export class Refused extends Error {
  constructor(status, errors) {
    super(errors.join(" "));
    this.status = status;
    this.errors = errors;
  }
}

async function request(path, options = {}) {
  let answer, text;
  try {
    answer = await fetch(new URL(path, ROOT), { ...options, signal: AbortSignal.timeout(PATIENCE_MS) });
    text = await answer.text();
  } catch {
    throw new Refused(0, ["the driver does not answer: the application has ended, or cannot be reached"]);
  }
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    throw new Refused(answer.status, [`something that is not the API answers, with status ${answer.status}`]);
  }
  if (!answer.ok) throw new Refused(answer.status, body.errors ?? [`the API answers with status ${answer.status}`]);
  return { body, etag: answer.headers.get("ETag") };
}

/** Return what is at a path, or at a whole address. Parameters that are empty are left out. Throws Refused. */
export async function get(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  return (await request(`${path}?${new URLSearchParams(given)}`)).body;
}

/** Return what was asked for, null if it was refused: an event log may not have it, or Spark not any more. */
export async function orNothing(asked) {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return null;
    throw error;
  }
}

/** The path of a query, or of something below it. */
export function queryPath(id, below = "") {
  return `queries/${encodeURIComponent(id)}${below}`;
}

/** Return the bounds of a query, and the tag that a change of exactly these takes. Throws Refused. */
export async function getBounds(id) {
  return request(queryPath(id, "/resource-requirements"));
}

/** Set the bounds of a query, unless others than those of `etag` are in force by now. Throws Refused. */
export async function putBounds(id, bounds, etag) {
  const headers = { "Content-Type": "application/json", ...(etag ? { "If-Match": etag } : {}) };
  const body = JSON.stringify(bounds);
  await request(queryPath(id, "/resource-requirements"), { method: "PUT", headers, body });
}

/** Take back the bounds that were set for a query: those of the configuration are in force again. Throws Refused. */
export async function resetBounds(id) {
  await request(queryPath(id, "/resource-requirements"), { method: "DELETE" });
}
