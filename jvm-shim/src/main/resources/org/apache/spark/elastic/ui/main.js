/** The page: shows the view that its address names, and keeps it up to date while it is visible. */

import { Refused } from "./api.js";
import { h, text } from "./dom.js";
import { Execution } from "./execution.js";
import { Overview } from "./overview.js";
import { Query } from "./query.js";

const PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 30000;
/** The page spends at most this share of its time, and of the driver's, with asking. */
const SHARE = 0.1;

const TITLE = document.title;

const trouble = h("div", { role: "status", hidden: true });
const said = h("div", { class: "visually-hidden", role: "status", "aria-live": "polite" });
const place = h("div");

let view = null;
let timer = 0;
let running = null;

/** Bring the view up to date now; who asks while that is under way gets another round after it. */
async function refresh() {
  clearTimeout(timer);
  while (running) await running;
  running = round(view);
  await running;
}

async function round(shown) {
  const began = performance.now();
  let pause = PAUSE_MS;
  try {
    await shown.update();
    shown.node.hidden = false;
    trouble.hidden = !shown.ended;
    trouble.className = "alert alert-info py-2";
    text(trouble, "This application has ended: this is what its event log has of its end.");
    document.title = [TITLE, ...shown.title()].join(": ");
  } catch (error) {
    if (!(error instanceof Refused)) console.error(error);
    trouble.hidden = false;
    trouble.className = "alert alert-warning py-2";
    text(trouble, `${sentence(error)} What you see may be old; this page keeps trying.`);
  } finally {
    running = null;
    pause = Math.min(Math.max(pause, (performance.now() - began) / SHARE), LONGEST_PAUSE_MS);
    clearTimeout(timer);
    if (!document.hidden && !shown.ended) timer = setTimeout(refresh, pause);
  }
}

function sentence(error) {
  if (!(error instanceof Refused)) return `This page has failed: ${error.message}.`;
  const gone = error.status === 503 ? "The policy does not answer" : "Nothing new";
  return `${gone}: ${error.errors.join(" ")}.`;
}

/** Show what the address says. */
function route() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const [query, execution] = [wanted.get("query"), wanted.get("sql")];
  if (query) view = new Query(query, refresh, (words) => text(said, words));
  else view = execution ? new Execution(execution, refresh) : new Overview(refresh);
  // Until something is known of it: nothing is not the same as none.
  view.node.hidden = true;
  place.replaceChildren(view.node);
  scrollTo(0, 0);
  refresh();
}

document.getElementById("elastic").append(trouble, said, place);
addEventListener("hashchange", route);
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
route();
