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
  // On a phone rows become cards, where each cell says what it is; roles keep it a table to those who hear it.
  const cell = (value, place) => make("td", { role: "cell", "data-head": head[place] }, value || undefined);
  return make("table", { role: "table" },
    make("thead", {}, make("tr", { role: "row" }, head.map((name) => make("th", { role: "columnheader" }, name)))),
    make("tbody", {}, rows.map((row) => make("tr", { role: "row" }, row.map(cell)))));
}

/** Milliseconds in words. */
export function duration(milliseconds) {
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How long a task took, or has taken so far. */
export function elapsed(task) {
  return duration(task.completed_at ? task.usage.duration_ms : Math.max(0, Date.now() - Date.parse(task.created_at)));
}

/** What was used, in a few words. */
export function used(usage) {
  const cost = usage.cost_usd === undefined || usage.cost_usd === null ? "" : ` · US$${usage.cost_usd.toFixed(4)}`;
  return `${usage.turns} ${usage.turns === 1 ? "turn" : "turns"} · ${usage.input_tokens}+${usage.output_tokens} tokens${cost}`;
}
