// Small helpers for the page. Text from tasks is only ever set as text, never as markup.

/** Makes an element: attributes, listeners (`onclick`) and children, strings among them as text. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return element;
}

/** Says something in the corner, for a while. */
export function notify(text) {
  const notice = document.getElementById("notice");
  notice.textContent = text;
  clearTimeout(notify.timer);
  notify.timer = setTimeout(() => (notice.textContent = ""), 8000);
}

/** A table with a head. */
export function table(head, rows) {
  const cell = (name) => (value) => make(name, {}, value ?? "");
  return make("table", {},
    make("thead", {}, make("tr", {}, head.map(cell("th")))),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map(cell("td"))))));
}

/** Milliseconds in words. */
export function duration(milliseconds) {
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** What was used, in a few words. */
export function used(usage) {
  const cost = usage.cost_usd === undefined || usage.cost_usd === null ? "" : ` · US$${usage.cost_usd.toFixed(4)}`;
  return `${usage.turns} ${usage.turns === 1 ? "turn" : "turns"} · ${usage.input_tokens}+${usage.output_tokens} tokens${cost}`;
}
