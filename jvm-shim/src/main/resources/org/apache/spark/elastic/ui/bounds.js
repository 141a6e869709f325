/** The bounds of a query's vertices: buttons for one more and one less, and fields. */

import { Refused, getBounds, putBounds, resetBounds } from "./api.js";
import { attribute, h, keyed, text } from "./dom.js";
import { called, number } from "./format.js";
import { stepped } from "./step.js";

const SIDES = { lowerBound: "Min", upperBound: "Max" };
let ids = 0;

/** Read a field: empty means no bound; what is not a number goes out as it is, and the API says why not. */
function read(value) {
  const trimmed = value.trim();
  if (trimmed === "") return -1;
  return /^-?\d{1,15}$/.test(trimmed) ? Number(trimmed) : trimmed;
}

/**
 * The bounds of one query. `changed(sentence)` is called after a change. In `update`, `may` is whether the reader may
 * change something, `most` the largest count there can be, and `now` the count of each vertex, where it is known.
 */
export class Bounds {
  constructor(query, changed) {
    this.query = query;
    this.changed = changed;
    const heads = ["Part", "Parallelism", ...Object.values(SIDES)].map((name) => h("th", { scope: "col" }, name));
    this.end = h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "Change"));
    this.table = h("table", { class: "table table-sm table-bordered mb-0 elastic-bounds", "aria-label": "Bounds" });
    this.table.append(h("thead", {}, h("tr", {}, ...heads, this.end)));
    const title = "The configured bounds apply again";
    const press = { type: "button", title, onclick: () => this.#reset() };
    this.back = h("button", { ...press, class: "btn btn-sm btn-outline-secondary" }, "Reset bounds");
    this.why = h("span", { class: "text-danger small ms-2", role: "alert", hidden: true });
    this.foot = h("div", { class: "mt-2" }, this.back, this.why);
    this.node = h("div", { class: "table-responsive" }, this.table, this.foot);
  }

  update({ requirements, now, may, most }) {
    this.may = may;
    this.most = most;
    this.end.hidden = !may;
    this.foot.hidden = !may;
    const vertices = Object.entries(requirements).map(([id, { parallelism }]) => ({ id, parallelism, now: now[id] }));
    // Who may not write any more gets other rows.
    const key = (vertex) => `${vertex.id} ${may}`;
    keyed(this.table, vertices, key, (vertex) => new Vertex(this, vertex.id), this.table.tHead);
  }

  /** Take back what was set, whoever has set it. */
  async #reset() {
    attribute(this.back, "aria-disabled", "true");
    this.why.hidden = true;
    try {
      await resetBounds(this.query);
      await this.changed("The configured bounds apply again.");
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      text(this.why, error.errors.join(" "));
      this.why.hidden = false;
    } finally {
      attribute(this.back, "aria-disabled", null);
    }
  }

  shown(bound) {
    return bound >= this.most ? "" : String(bound);
  }

  /**
   * Set the bounds of one vertex and leave the others; `seen` is what the reader saw, and if that is not in force any
   * more nothing is changed. Throws Refused.
   */
  async set(vertex, seen, wanted) {
    const { body, etag } = await getBounds(this.query);
    const inForce = body[vertex]?.parallelism ?? {};
    if (Object.keys(SIDES).some((side) => inForce[side] !== seen[side])) {
      throw new Refused(412, ["The bounds have changed meanwhile: check them, then decide."]);
    }
    await putBounds(this.query, { ...body, [vertex]: { parallelism: wanted } }, etag);
    const [lower, upper] = [wanted.lowerBound, wanted.upperBound].map((bound) => (bound === -1 ? "no bound" : bound));
    await this.changed(`New bounds of ${called(vertex)}: ${lower} to ${upper}.`);
  }
}

/** One vertex: a row. */
class Vertex {
  constructor(bounds, id) {
    this.bounds = bounds;
    this.id = id;
    // A source is read by tasks, which only sometimes are partitions of what it reads from.
    this.unit = id === "shuffle" ? "partition" : "task";
    this.name = `elastic-bounds-${(ids += 1)}`;
    this.count = h("span", { class: "elastic-count" });
    this.why = h("div", { class: "text-danger small mt-1", id: `${this.name}-why`, role: "alert", hidden: true });
    const field = (side) => (bounds.may ? this.#field(side) : h("span"));
    this.fields = Object.fromEntries(Object.keys(SIDES).map((side) => [side, field(side)]));
    const fields = Object.values(this.fields).map((made) => h("td", {}, made));
    const row = h("tr", {}, h("th", { scope: "row" }, called(id)), h("td", {}, this.#counter()), ...fields);
    this.node = h("tbody", {}, row);
    if (bounds.may) {
      const name = { "aria-label": `Set the bounds of ${id}` };
      const set = h("button", { type: "submit", form: this.name, class: "btn btn-sm btn-primary", ...name }, "Set");
      row.append(h("td", {}, set, this.why));
    }
  }

  #field(side) {
    return h("input", {
      type: "text",
      inputmode: "numeric",
      autocomplete: "off",
      form: this.name,
      class: "form-control form-control-sm",
      placeholder: "no bound",
      "aria-label": `${SIDES[side]} ${this.unit}s of ${this.id}`,
      "aria-describedby": this.why.id,
      oninput: () => this.#dirty(true),
      onkeydown: (event) => event.key === "Escape" && this.#reset(),
    });
  }

  /** The count that is in force, between the buttons that change it. */
  #counter() {
    if (!this.bounds.may) return this.count;
    const button = (sign, step, what) => {
      const names = { "aria-label": `${what} for ${this.id}`, title: what };
      const press = () => this.#submit(this.#stepped(step));
      return h("button", { type: "button", class: "btn btn-sm btn-outline-primary", ...names, onclick: press }, sign);
    };
    this.down = button("−", -1, `One ${this.unit} fewer`);
    this.up = button("+", 1, `One ${this.unit} more`);
    // The form is here, since a row cannot be one; the fields name it.
    const form = h("form", { id: this.name });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit(this.#typed());
    });
    const group = { class: "btn-group align-items-center", role: "group", "aria-label": `Parallelism of ${this.id}` };
    return h("div", group, form, this.down, this.count, this.up);
  }

  update({ parallelism, now }) {
    this.seen = parallelism;
    this.now = now;
    text(this.count, number(now));
    for (const [side, field] of Object.entries(this.fields)) {
      const shown = this.bounds.shown(parallelism[side]);
      if (!this.bounds.may) text(field, shown || "no bound");
      else if (!this.isDirty && field.value !== shown) field.value = shown;
    }
    if (this.bounds.may) this.#steps();
  }

  /** Show which steps can be taken: none while the last one is on its way and its outcome not seen. */
  #steps() {
    for (const [button, step] of [[this.up, 1], [this.down, -1]]) {
      // Not `disabled`, which would take the focus away.
      attribute(button, "aria-disabled", this.isBusy || !this.#stepped(step) ? "true" : null);
    }
  }

  #stepped(step) {
    return stepped(this.seen, this.now, step, this.bounds.most);
  }

  #typed() {
    return Object.fromEntries(Object.entries(this.fields).map(([side, field]) => [side, read(field.value)]));
  }

  async #submit(wanted) {
    if (wanted === null || this.isBusy) return;
    this.isBusy = true;
    this.#steps();
    this.#say([]);
    try {
      await this.bounds.set(this.id, this.seen, wanted);
      this.#dirty(false);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.#say(error.errors);
    } finally {
      this.isBusy = false;
      this.#steps();
    }
  }

  #say(errors) {
    this.why.hidden = !errors.length;
    text(this.why, errors.join(" "));
    for (const [side, field] of Object.entries(this.fields)) {
      const named = errors.some((error) => error.includes(side));
      field.classList.toggle("is-invalid", named);
      attribute(field, "aria-invalid", named ? "true" : null);
    }
  }

  #dirty(isDirty) {
    this.isDirty = isDirty;
  }

  #reset() {
    this.#dirty(false);
    this.#say([]);
    this.update({ parallelism: this.seen, now: this.now });
  }
}
