/** The view of one SQL execution: its plan with what was decided about it, and each decision. */

import { get } from "./api.js";
import { STAGES } from "./columns.js";
import { content, h, text } from "./dom.js";
import { duration, number, words } from "./format.js";
import { Listing, section } from "./listing.js";
import { plan } from "./plan.js";
import { badge, tile } from "./record.js";
import { askSpark, isExecution, pageLink } from "./spark.js";

const STATUS = { COMPLETED: "success", RUNNING: "primary", FAILED: "danger" };
/** Jobs whose stages are asked for. */
const JOBS = 20;

export class Execution {
  constructor(id, refresh) {
    this.id = id;
    const name = isExecution(id) ? `SQL execution ${id}` : `Operation ${id} of Spark Connect`;
    this.status = h("span", { class: "ms-2 fs-6" });
    this.about = h("p", { class: "elastic-about text-body-secondary" });
    this.facts = h("div", { class: "elastic-tiles mb-3" });
    this.picture = h("div");
    this.plan = section("Plan", this.picture);
    this.stages = new Listing({ ...STAGES, onpage: refresh });
    this.node = h(
      "div",
      {},
      h("p", { class: "mb-1" }, h("a", { href: "#" }, "← Overview")),
      h("h4", {}, name, this.status),
      this.about,
      this.facts,
      this.plan.node,
      this.stages.node,
    );
  }

  /** The window's title after Spark's name for it. */
  title() {
    return [`SQL ${this.id}`];
  }

  async update() {
    const [overview, found] = await Promise.all([get("overview"), get("executions", { execution: this.id })]);
    this.ended = overview.ended;
    // A History Server gives all of them.
    const stages = found.executions.find(({ execution }) => execution === this.id)?.stages ?? [];
    this.stages.show(stages);
    if (!this.isOver) await this.#askSpark(overview.application.id, stages);
  }

  /** What Spark says of it, until that does not change any more. */
  async #askSpark(application, stages) {
    const known = isExecution(this.id) && (await askSpark(application, `sql/${this.id}`, { planDescription: false }));
    this.plan.node.hidden = this.facts.hidden = !known;
    if (!known) return;
    const ids = [...known.successJobIds, ...known.failedJobIds, ...known.runningJobIds].sort((a, b) => a - b);
    const jobs = await Promise.all(ids.slice(0, JOBS).map((job) => askSpark(application, `jobs/${job}`)));
    this.isOver = known.status !== "RUNNING" && stages.length > 0;
    text(this.about, known.description);
    content(this.status, badge(words(known.status.toLowerCase()), STATUS[known.status] ?? "secondary"));
    const more = ids.length > JOBS ? `and ${number(ids.length - JOBS)} more` : null;
    const ran = jobs.filter(Boolean).flatMap(({ stageIds }) => stageIds).sort((a, b) => a - b);
    content(
      this.facts,
      tile("Took", duration(known.duration), pageLink("SQL", "execution/", { id: this.id }, "Spark's page of it")),
      tile("Jobs", number(ids.length), ...links("jobs", "job/", ids.slice(0, JOBS), {}), more),
      tile("Stages", number(ran.length), ...links("stages", "stage/", ran, { attempt: 0 })),
    );
    content(this.picture, plan(known, stages) ?? h("p", { class: "text-body-secondary" }, "Spark has no plan of it."));
  }
}

function links(tab, path, ids, more) {
  const link = (id) => pageLink(tab, path, { id, ...more }, `${id}`) ?? `${id}`;
  return ids.map((id) => h("span", { class: "me-2 d-inline-block" }, link(id)));
}
