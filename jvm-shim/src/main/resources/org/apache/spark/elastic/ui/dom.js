/** Elements. Whatever is shown gets in as text: nothing here reads markup, so no name can become one. */

const SVG = "http://www.w3.org/2000/svg";

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else attribute(node, name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Make an element of HTML; attributes that start with `on` are listeners, children are elements or texts. */
export function h(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/** Make an element of SVG. */
export function svg(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

/** Set an attribute, or take it away: false, null and undefined mean that it is not there. */
export function attribute(node, name, value) {
  if (value === false || value === null || value === undefined) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value === true ? "" : value)) {
    node.setAttribute(name, value === true ? "" : value);
  }
}

/** Show another text, and touch nothing if it is the same. */
export function text(node, value) {
  const shown = String(value ?? "");
  if (node.textContent !== shown) node.textContent = shown;
}

/** Show other children, and touch nothing if they look the same: what has the focus keeps it. */
export function content(node, ...children) {
  const fresh = [...h("div", {}, ...children).childNodes];
  const same = (child, place) => child.isEqualNode(node.childNodes[place]);
  if (fresh.length !== node.childNodes.length || !fresh.every(same)) node.replaceChildren(...fresh);
}

/**
 * Show a list as children of `parent`, one element an item, in its order. An item that was there keeps its element,
 * and so the focus and what is open in it. `make(item)` returns {node, update}; `update(item)` is called each time.
 * The list begins after the child `head`, if there is one.
 */
export function keyed(parent, items, key, make, head = null) {
  const before = parent.shown ?? new Map();
  const now = new Map();
  for (const item of items) {
    const name = key(item);
    now.set(name, before.get(name) ?? make(item));
    before.delete(name);
  }
  for (const { node } of before.values()) node.remove();
  let place = head ? head.nextSibling : parent.firstChild;
  for (const { node } of now.values()) {
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
  items.forEach((item) => now.get(key(item)).update(item));
  parent.shown = now;
}
