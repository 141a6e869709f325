/** Spark's own pages and its own REST API, beside which this page stands; addresses hold behind every proxy. */

import { get, orNothing } from "./api.js";
import { h } from "./dom.js";

const UI = new URL("../../", import.meta.url);
const HISTORY = /^(.*)\/history\/(.+?)\/$/;

/** Where a page of Spark's UI is. */
export function pageAddress(path, parameters = {}) {
  const address = new URL(path, UI);
  address.search = new URLSearchParams(parameters);
  return address.href;
}

/** A link to a page of one of Spark's tabs, null if there is no such tab (yet). */
export function pageLink(tab, path, parameters, label) {
  const has = [...document.querySelectorAll(".navbar a")].some(({ href }) => href.startsWith(pageAddress(`${tab}/`)));
  return has ? h("a", { href: pageAddress(`${tab}/${path}`, parameters) }, label) : null;
}

/** Whether an id is that of an SQL execution, and not of an operation of Spark Connect. */
export function isExecution(id) {
  return /^\d+$/.test(id);
}

/** Ask Spark about the application, null if it does not have that (any more). */
export async function askSpark(application, path, parameters = {}) {
  // A History Server has one API for all applications, whose attempts are parts of the path.
  const [, server, attempt] = HISTORY.exec(UI.pathname) ?? [];
  const [root, name] = attempt ? [`${server}/`, attempt] : [UI.pathname, application];
  return orNothing(get(new URL(`${root}api/v1/applications/${name}/${path}`, UI).href, parameters));
}
