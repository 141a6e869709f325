/** A table of records, page by page, whose rows open to all that is known of them. */

import { attribute, content, h, keyed, text } from "./dom.js";
import { clock, day } from "./format.js";

let ids = 0;

/** A part of the page under a heading that folds. */
export function section(title, ...children) {
  const extra = h("span", { class: "text-body-secondary fw-normal ms-2" });
  const node = h(
    "details",
    { class: "elastic-section", open: true },
    h("summary", {}, h("h4", {}, title, extra)),
    ...children,
  );
  return { node, extra };
}

/** The class of a cell that is left out where there is little room. */
export const WIDE = "d-none d-lg-table-cell";

function cell(wide, kind = "") {
  return `${kind} ${wide ? WIDE : ""}`.trim() || null;
}

/** A table with headings; `node` is what it stands in, and scrolls if need be, by keyboard as well. */
export function grid(title, columns) {
  const heads = columns.map(({ name, wide, kind }) => h("th", { scope: "col", class: cell(wide, kind) }, name));
  const body = h("tbody");
  const named = { class: "table table-sm table-bordered mb-0", "aria-label": title };
  const table = h("table", named, h("thead", {}, h("tr", {}, ...heads)), body);
  const scrolls = { class: "table-responsive", tabindex: "0", role: "region", "aria-label": title };
  return { node: h("div", scrolls, table), table, body };
}

/**
 * A listing. `columns` are {name, show(item, td), wide, kind}: `show` fills the cell, and is called again with each
 * update. `record(item)` makes what an open row shows, if rows open; `key(item)` is a number that falls with age, by
 * which older ones are asked for. `minor` {label, is(item)} are left out until the reader asks for them.
 */
export class Listing {
  constructor({
    title,
    columns,
    key,
    onpage,
    record = null,
    minor = null,
    legend = null,
    size = 25,
    empty = "None so far.",
  }) {
    this.columns = columns;
    this.key = key;
    this.record = record;
    this.size = size;
    this.befores = [];
    this.minor = minor;
    this.all = h("input", { type: "checkbox", class: "form-check-input me-1", onchange: () => this.show(this.known) });
    this.grid = grid(title, record ? [{ name: "" }, ...columns] : columns);
    // Each row is a body of its own, with what it opens to.
    this.grid.body.remove();
    this.empty = h("p", { class: "text-body-secondary my-1" }, empty);
    const turn = (change) => () => {
      change();
      onpage();
    };
    this.newer = h("button", { type: "button", class: "btn btn-sm btn-outline-secondary" }, "Newer");
    this.older = h("button", { type: "button", class: "btn btn-sm btn-outline-secondary" }, "Older");
    this.newer.addEventListener("click", turn(() => this.befores.pop()));
    this.older.addEventListener("click", turn(() => this.befores.push(this.last)));
    this.pager = h("nav", { class: "d-flex gap-2 mt-2", "aria-label": `Pages of: ${title}` }, this.newer, this.older);
    this.section = section(
      title,
      minor && h("label", { class: "small me-3" }, this.all, minor.label),
      legend?.(),
      this.empty,
      this.grid.node,
      this.pager,
    );
    this.node = this.section.node;
  }

  /** Which part of the list the reader looks at, as parameters of a request; one more tells whether more are left. */
  get parameters() {
    return { limit: this.size + 1, before: this.befores.at(-1) };
  }

  /** Show what was asked for; a History Server gives whole lists. */
  show(all) {
    const { limit, before = Infinity } = this.parameters;
    this.known = all;
    const items = all.filter((item) => this.key(item) < before).slice(0, limit);
    const page = items.slice(0, this.size);
    this.last = page.length ? this.key(page.at(-1)) : undefined;
    const shown = page.filter((item) => !this.minor || this.all.checked || !this.minor.is(item));
    this.newer.disabled = !this.befores.length;
    this.older.disabled = items.length <= this.size;
    this.pager.hidden = this.newer.disabled && this.older.disabled;
    this.empty.hidden = shown.length > 0;
    this.grid.node.hidden = !shown.length;
    const { table } = this.grid;
    keyed(table, shown, this.key, (item) => this.#entry(item), table.tHead);
  }

  #entry(item) {
    const cells = this.columns.map(({ wide, kind }) => h("td", { class: cell(wide, kind) }));
    const row = h("tr", {}, ...cells);
    const node = h("tbody", {}, row);
    let update = (now) => this.columns.forEach(({ show }, number) => show(now, cells[number]));
    if (this.record) {
      const opened = this.#opener(row, node, () => item);
      const fill = update;
      update = (now) => {
        item = now;
        fill(now);
        opened();
      };
    }
    return { node, update };
  }

  /** Give a row a button that opens it; returns what to call when its item has changed. */
  #opener(row, body, item) {
    const id = `elastic-record-${(ids += 1)}`;
    const place = h("td", { colspan: this.columns.length + 1, id });
    const below = h("tr", { class: "elastic-record" }, place);
    const arrow = h("span", { class: "arrow-closed", "aria-hidden": "true" });
    const label = `Full record ${this.key(item())}`;
    const button = h("button", { type: "button", class: "btn btn-sm btn-link p-0 px-1", "aria-label": label }, arrow);
    const isOpen = () => below.parentNode !== null;
    const fill = () => {
      const made = this.record(item());
      // Compared as text, so that what the reader has selected stays.
      if (place.textContent !== made.textContent) place.replaceChildren(made);
    };
    const toggle = () => {
      if (isOpen()) below.remove();
      else {
        fill();
        body.append(below);
      }
      attribute(button, "aria-expanded", String(isOpen()));
      attribute(button, "aria-controls", isOpen() ? id : null);
      arrow.className = isOpen() ? "arrow-open" : "arrow-closed";
    };
    attribute(button, "aria-expanded", "false");
    button.addEventListener("click", toggle);
    row.prepend(h("td", { class: "elastic-opener" }, button));
    return () => isOpen() && fill();
  }
}

/** Fill a cell with a time, whose day is left out where there is little room. */
export function moment(at) {
  return (item, td) => content(td, h("span", { class: "d-none d-lg-inline" }, `${day(at(item))} `), clock(at(item)));
}

/** Fill a cell with a text. */
export function plain(value) {
  return (item, td) => text(td, value(item));
}
