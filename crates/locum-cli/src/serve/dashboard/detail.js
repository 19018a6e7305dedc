// One task: how it stands, what is said in it as it is said, its whole result, and what its worktree changes.

import { call, follow, get } from "./api.js";
import { elapsed, make, notify, used } from "./dom.js";

/** Entries of a transcript that are kept on the page. */
const ENTRIES_MAX = 400;
/** Characters of one text that are shown. */
const TEXT_MAX = 20_000;

export class Detail {
  constructor(changed) {
    this.changed = changed;
    this.head = make("div");
    this.result = make("div");
    this.changes = make("div");
    this.compare = make("button", { type: "button", hidden: true, onclick: () => this.diff() }, "Changes in its worktree");
    this.bounds = make("dl");
    this.transcript = make("div", { role: "log", "aria-label": "Transcript" });
    this.element = make("section", { "aria-label": "Task", hidden: true }, this.head, this.bounds, this.result, this.changes,
      make("h2", {}, "Transcript"), this.transcript);
  }

  async open(uid) {
    this.close();
    this.uid = uid;
    this.element.hidden = false;
    this.transcript.replaceChildren();
    this.result.replaceChildren();
    this.changes.replaceChildren();
    this.compare.hidden = true;
    this.element.scrollTop = 0;
    this.bounds.replaceChildren();
    this.saying = this.shown = undefined;
    try {
      this.update(await get(`/v1/tasks/${uid}`));
    } catch (error) {
      notify(error.message);
      return;
    }
    const names = new Map();
    const hear = (record) => {
      if (this.uid !== uid) return;
      this.hush();
      if (record.event.event === "accepted") {
        this.bounds.replaceChildren(...line("May use", allowance(record.event.plan.bounds)));
        this.compare.hidden = record.event.plan.grants.isolation !== "worktree";
      }
      this.grow(entries(record, names), record.event.event !== "ended");
      if (record.event.event === "ended") this.changed();
    };
    this.stop = follow(`/v1/tasks/${uid}/events`, { text: true }, hear, (piece) => this.uid === uid && this.say(piece));
  }

  /** Whether the end is seen: of the pane where it scrolls by itself, of the page where it does not. */
  isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.element;
    if (scrollHeight > clientHeight + 1) return scrollHeight - scrollTop - clientHeight < 60;
    return this.element.getBoundingClientRect().bottom <= innerHeight + 60;
  }

  /** Adds entries, and stays at the end where the end of something under way was seen. */
  grow(added, follows) {
    const atEnd = !this.isOver && this.isAtEnd();
    this.transcript.append(...added);
    while (this.transcript.childElementCount > ENTRIES_MAX) this.transcript.firstChild.remove();
    if (atEnd && follows) this.transcript.lastElementChild?.scrollIntoView({ block: "nearest" });
  }

  /** Shows a piece of the reply under way. Its entry is no news to a screen reader until it is whole. */
  say({ offset, text }) {
    if (!this.saying || offset === 0) {
      this.hush();
      const words = make("pre", {}, offset === 0 ? "" : "…");
      const element = make("div", { class: "entry said", "aria-live": "off" }, make("span", { class: "quiet" }, "answering"), words);
      this.saying = { element, words, until: offset };
      this.grow([element], true);
    }
    const { words } = this.saying;
    if (offset !== this.saying.until) words.append("…");
    this.saying.until = offset + new TextEncoder().encode(text).length;
    if (words.textContent.length < TEXT_MAX) words.append(text);
  }

  /** The reply under way is whole, or will not be. */
  hush() {
    this.saying?.element.remove();
    this.saying = undefined;
  }

  close() {
    this.stop?.();
    this.stop = undefined;
  }

  update(task) {
    const isOver = ["completed", "failed", "cancelled"].includes(task.status);
    this.isOver = isOver;
    const key = JSON.stringify([task, elapsed(task)]);
    if (key === this.shown) return;
    this.shown = key;
    this.head.replaceChildren(
      make("h2", {}, `@${task.agent} ${task.task_id} `, make("span", { class: `state ${task.status}` }, task.status)),
      make("div", { class: "tools" },
        isOver ? undefined : make("button", { type: "button", class: "danger", onclick: () => this.cancel(task) }, "Cancel"),
        this.compare),
      make("dl", {}, ...line("Session", task.session), ...line("Label", task.label), ...line("Doing", task.activity),
        ...line("Why", task.error), ...line("Used", used(task.usage)), ...line("Time", elapsed(task)),
        ...line("Waits for", task.waiting_for?.join(", ")), ...line("Id", task.uid)));
    if (isOver && !this.result.childElementCount) this.read(task);
  }

  async read(task) {
    try {
      const page = await get(`/v1/tasks/${task.uid}/result`, { limit: 100000 });
      const more = page.next_offset ? `\n… ${page.total_chars - page.next_offset} more characters: locum result ${task.task_id}` : "";
      this.result.replaceChildren(make("h2", {}, "Result"), make("pre", { "aria-label": "Result", tabindex: 0 }, page.text + more || "(it said nothing)"));
    } catch (error) {
      this.result.replaceChildren(make("p", { class: "quiet" }, error.message));
    }
  }

  async cancel(task) {
    try {
      const answer = await call("subagent", { action: "cancel", task_id: task.task_id }, task.session);
      notify(`${task.task_id} is ${answer.status}; ${answer.receipt.confirmed ? "nothing of it is left" : "something of it may be left"}`);
      this.changed();
    } catch (error) {
      notify(error.message);
    }
  }

  async diff() {
    try {
      const comparison = await get(`/v1/tasks/${this.uid}/diff`);
      const lines = (comparison.patch || "nothing").split("\n").map((line) => make("span", { class: kind(line) }, `${line}\n`));
      const against = comparison.against.slice(0, 12);
      this.changes.replaceChildren(make("h2", {}, "Changes"), make("p", { class: "quiet" }, `${comparison.branch} against ${against}`),
        make("pre", { "aria-label": "Changes", tabindex: 0 }, lines));
    } catch (error) {
      notify(error.message);
    }
  }
}

/** What a line of a patch is. */
function kind(line) {
  if (/^(diff |index |--- |\+\+\+ |@@ )/.test(line)) return "quiet";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
}

/** A name and its value, where there is one. */
function line(name, value) {
  return value === undefined || value === null || value === "" ? [] : [make("dt", {}, name), make("dd", {}, value)];
}

/** What a task may use, in a few words. */
function allowance({ max_turns: turns, budget = {} }) {
  const some = (value, words) => (value === undefined || value === null ? undefined : words(value));
  return [`${turns} turns`, some(budget.timeout_s, (seconds) => `${seconds} s`),
    some(budget.max_input_tokens, (tokens) => `${tokens} input tokens`),
    some(budget.max_output_tokens, (tokens) => `${tokens} output tokens`),
    some(budget.max_cost_usd, (cost) => `US$${cost}`)].filter(Boolean).join(" · ");
}

function entries(record, names) {
  const { event } = record;
  const entry = (kind, title, text) => make("div", { class: `entry ${kind}` },
    make("span", { class: "quiet" }, `${time(record.at)} ${title}`), text ? make("pre", {}, cut(text)) : undefined);
  switch (event.event) {
    case "accepted": return [entry("", `task for @${event.plan.agent.name}`, event.plan.assignment.task)];
    case "turn_started": return [entry("", `turn ${event.turn}: the model is asked`)];
    case "replied": {
      for (const call of event.reply.tool_calls ?? []) names.set(call.id, call);
      return event.reply.text ? [entry("said", `turn ${event.turn}`, event.reply.text)] : [];
    }
    case "tool_started": return [entry("", `${event.name}`, JSON.stringify(names.get(event.call_id)?.input ?? {}))];
    case "tool_ended": {
      const wrong = event.output.end && event.output.end !== "ok";
      const name = names.get(event.call_id)?.name ?? event.call_id;
      return [entry(wrong ? "wrong" : "", `${name} answered${wrong ? `, ${event.output.end}` : ""}`, event.output.text)];
    }
    case "model_failed": return [entry("wrong", `turn ${event.turn}: the model failed`, event.failure.message)];
    case "model_replaced": return [entry("wrong", `${event.to.provider}:${event.to.id} is asked instead`, event.why)];
    case "ended": return [entry(event.outcome.status === "completed" ? "said" : "wrong", `ended: ${event.outcome.status}`, event.outcome.error)];
    default: return [entry("", event.event.replaceAll("_", " "))];
  }
}

/** A moment of the day, where the reader is. */
function time(at) {
  return new Date(at).toLocaleTimeString([], { hour12: false });
}

function cut(text) {
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text;
}
