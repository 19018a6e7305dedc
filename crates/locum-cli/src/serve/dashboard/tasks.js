// All tasks as a tree, each with its time, and one of them in detail.

import { call, get, pages } from "./api.js";
import { elapsed, make, notify, used } from "./dom.js";
import { Detail } from "./detail.js";

/** The agent that is offered first, where it is there. */
const FIRST_AGENT = "explore";
/** Characters of what a task was asked that are shown. */
const ABOUT_MAX = 200;
/** Tasks that are shown; older ones are reached at the command line. */
const TASKS_MAX = 2000;

export class Tasks {
  constructor(state) {
    this.state = state;
    this.rows = new Map();
    this.list = make("ul", { class: "rows", "aria-label": "Tasks" });
    this.summary = make("p", { class: "quiet" });
    this.detail = new Detail(() => this.refresh());
    this.element = [make("section", { "aria-label": "Tasks" }, this.composer(), this.summary, this.list), this.detail.element];
    this.list.addEventListener("keydown", (event) => this.move(event));
    // What a task was asked is in its log: it is read once, for rows that are seen.
    this.seen = new IntersectionObserver((seen) => seen.filter((entry) => entry.isIntersecting).forEach((entry) => this.learn(entry.target)));
  }

  composer() {
    this.agents = make("select", { "aria-label": "Agent", required: true });
    const task = make("input", { "aria-label": "Task", placeholder: "What should be done?", required: true, maxlength: 100000 });
    const spawn = async (event) => {
      event.preventDefault();
      try {
        const input = { action: "spawn", agent: this.agents.value, task: task.value, queue: true };
        const started = await call("subagent", input, this.state.session || "main");
        task.value = "";
        notify(`${started.task_id} is ${started.status}`);
        await this.refresh();
        this.select(started.uid);
      } catch (error) {
        notify(error.message);
      }
    };
    return make("form", { class: "compose", onsubmit: spawn }, this.agents, task, make("button", {}, "Start"));
  }

  async refresh() {
    const [tasks, listed] = await Promise.all([
      pages("/v1/tasks", "tasks", { session: this.state.session }, TASKS_MAX, "before"),
      this.agents.length ? undefined : get("/v1/agents", { session: this.state.session || "main" }),
    ]);
    if (listed) {
      this.agents.append(...listed.agents.map((agent) => make("option", { value: agent.name, selected: agent.name === FIRST_AGENT && !agent.mark }, agent.name)));
    }
    this.show(tasks);
    return tasks;
  }

  show(tasks) {
    const span = spanOf(tasks);
    this.summary.textContent = summary(tasks);
    const seen = new Set();
    let before = null;
    for (const [task, depth] of tree(tasks)) {
      seen.add(task.uid);
      const row = this.rows.get(task.uid) ?? this.row(task);
      this.fill(row, task, depth, span);
      const place = before ? before.nextSibling : this.list.firstChild;
      if (place !== row.item) this.list.insertBefore(row.item, place);
      before = row.item;
    }
    for (const [uid, row] of this.rows) {
      if (!seen.has(uid)) {
        this.seen.unobserve(row.item);
        row.item.remove();
        this.rows.delete(uid);
      }
    }
    if (!tasks.length && !this.empty) this.list.before((this.empty = make("p", { class: "quiet" }, "No tasks yet. Start one above, or with locum spawn.")));
    if (tasks.length && this.empty) { this.empty.remove(); this.empty = undefined; }
    const shown = tasks.find((task) => task.uid === this.detail.uid);
    if (shown) this.detail.update(shown);
  }

  row(task) {
    const parts = { who: make("span", { class: "who" }), state: make("span"), used: make("span", { class: "number" }),
      about: make("span", { class: "about" }), what: make("span", { class: "what" }), bar: document.createElementNS("http://www.w3.org/2000/svg", "rect") };
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("viewBox", "0 0 1000 6");
    svg.append(parts.bar);
    parts.bar.setAttribute("height", "6");
    parts.line = make("span", { class: "timeline", "aria-hidden": "true" }, svg);
    parts.button = make("button", { type: "button", onclick: () => this.select(task.uid) },
      make("span", { class: "first" }, parts.who, parts.state, parts.used), parts.about, parts.what, parts.line);
    const item = make("li", { class: "row", "data-uid": task.uid }, parts.button);
    this.seen.observe(item);
    const row = { item, parts, shown: "" };
    this.rows.set(task.uid, row);
    return row;
  }

  async learn(item) {
    this.seen.unobserve(item);
    try {
      const { records: [first] } = await get(`/v1/tasks/${item.dataset.uid}/log`, { limit: 1 });
      const about = this.rows.get(item.dataset.uid)?.parts.about;
      if (about) about.textContent = first?.event.plan?.assignment.task.trim().slice(0, ABOUT_MAX) ?? "";
    } catch {
      // It is gone, or the page looks again and says why.
      this.seen.observe(item);
    }
  }

  fill(row, task, depth, span) {
    const time = elapsed(task);
    const key = JSON.stringify([task.status, task.activity, task.usage, task.seq, depth, span, time, this.detail.uid === task.uid]);
    if (row.shown === key) return;
    row.shown = key;
    const { who, state, used: usage, what, bar, line, button } = row.parts;
    who.textContent = `@${task.agent}`;
    state.textContent = task.status;
    state.className = line.className = "";
    state.classList.add("state", task.status);
    line.classList.add("timeline", task.status);
    usage.textContent = time;
    const session = this.state.session ? undefined : task.session;
    const doing = task.completed_at ? task.error : task.activity;
    what.textContent = [session, task.task_id, task.label, doing, used(task.usage)].filter(Boolean).join(" · ");
    item(row.item, depth);
    button.setAttribute("aria-current", String(this.detail.uid === task.uid));
    const from = Date.parse(task.created_at);
    const to = task.completed_at ? Date.parse(task.completed_at) : span.to;
    const scale = 1000 / Math.max(1, span.to - span.from);
    bar.setAttribute("x", String((from - span.from) * scale));
    bar.setAttribute("width", String(Math.max(4, (to - from) * scale)));
  }

  select(uid) {
    // Only two rows change; there may be thousands.
    const mark = (known, is) => this.rows.get(known)?.parts.button.setAttribute("aria-current", String(is));
    mark(this.detail.uid, false);
    mark(uid, true);
    this.detail.open(uid);
    // Where the panes stand below each other, the task would be far down.
    if (matchMedia("(max-width: 760px)").matches) this.detail.element.scrollIntoView();
  }

  move(event) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const buttons = [...this.list.querySelectorAll("button")];
    const next = buttons[buttons.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1)];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  }
}

function item(element, depth) {
  element.style.setProperty("--depth", String(depth));
}

/** How many there are, how many run, and what they cost, where that is known. */
function summary(tasks) {
  if (!tasks.length) return "";
  const running = tasks.filter((task) => task.status === "running").length;
  const costs = tasks.map((task) => task.usage.cost_usd).filter((cost) => cost !== undefined && cost !== null);
  const cost = costs.length ? ` · US$${costs.reduce((sum, cost) => sum + cost, 0).toFixed(4)}` : "";
  const tokens = tasks.reduce((sum, { usage }) => sum + usage.input_tokens + usage.output_tokens, 0);
  return `${tasks.length}${tasks.length >= TASKS_MAX ? " newest" : ""} tasks · ${running} running · ${tokens} tokens${cost}`;
}

/** Tasks with their depth: each before those that it delegated, newest first. */
function tree(tasks) {
  const known = new Set(tasks.map((task) => task.uid));
  const below = new Map();
  for (const task of tasks) {
    const parent = known.has(task.parent) ? task.parent : undefined;
    if (!below.has(parent)) below.set(parent, []);
    below.get(parent).push(task);
  }
  const ordered = [];
  const visit = (parent, depth) => {
    for (const task of below.get(parent) ?? []) {
      ordered.push([task, depth]);
      visit(task.uid, depth + 1);
    }
  };
  visit(undefined, 0);
  return ordered;
}

/** The time that the bars share: that of the tasks shown, at most the last hour of them. */
function spanOf(tasks) {
  const ends = tasks.map((task) => Date.parse(task.completed_at ?? new Date().toISOString()));
  const to = Math.max(0, ...ends);
  const from = Math.max(Math.min(...tasks.map((task) => Date.parse(task.created_at))), to - 3_600_000);
  return { from: Math.floor(from / 1000) * 1000, to: Math.ceil(to / 1000) * 1000 };
}
