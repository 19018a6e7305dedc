// The board, the shared context and the agents: each read anew when something happened.

import { get } from "./api.js";
import { make, notify, table } from "./dom.js";

export class Board {
  constructor(state) {
    this.state = state;
    this.body = make("div");
    this.element = [make("section", { "aria-label": "Board" }, make("h2", {}, "Board"), this.body)];
  }

  async refresh() {
    const { tasks } = await get("/v1/board", { session: this.state.session || "main" });
    this.body.replaceChildren(tasks.length
      ? table(["Id", "What", "State", "Owner", "Blocked by"], tasks.map((task) => [
          task.id, task.status === "in_progress" ? task.active_form ?? task.subject : task.subject, progress(task),
          owner(task), task.blocked_by.join(", ")]))
      : make("p", { class: "quiet" }, "The board of this session is empty. locum board add puts something on it."));
  }
}

/** How far something is. Its sign moves only while its owner runs. */
function progress(task) {
  const states = { pending: "waiting", in_progress: task.owner_status === "running" ? "running" : "held", completed: "completed" };
  return make("span", { class: `state ${states[task.status]}` }, task.status.replace("_", " "));
}

/** Who has something, and whether they still run. */
function owner(task) {
  if (!task.owner) return "";
  const [, agent, id] = task.owner.split(":");
  const name = agent ? `@${agent} ${id}` : `@${task.owner}`;
  return task.owner_status ? `${name} (${task.owner_status})` : name;
}

export class Context {
  constructor(state) {
    this.state = state;
    this.body = make("div");
    this.history = make("div");
    this.element = [make("section", { "aria-label": "Shared context" }, make("h2", {}, "Shared context"), this.body, this.history)];
  }

  async refresh() {
    const session = this.state.session || "main";
    const { keys } = await get("/v1/context", { session });
    const read = (line) => get(`/v1/context/${encodeURIComponent(line.key)}`, { session }).catch((error) => ({ value: error.message }));
    const values = await Promise.all(keys.slice(0, 100).map(read));
    const button = (key) => make("button", { type: "button", onclick: () => this.show(key, session) }, key);
    this.body.replaceChildren(keys.length
      ? table(["Key", "Value", "Version", "Written by"], values.map((entry, place) => [
          button(keys[place].key), make("pre", {}, entry.value), String(keys[place].version), keys[place].written_by]))
      : make("p", { class: "quiet" }, "Nothing is shared in this session yet."));
    if (this.key) await this.show(this.key, session);
  }

  async show(key, session) {
    this.key = key;
    try {
      const history = await get(`/v1/context/${encodeURIComponent(key)}/history`, { session });
      const { versions } = history;
      this.history.replaceChildren(make("h2", {}, `What ${key} was`),
        table(["Version", "Value", "Written by", "When"], versions.map((entry) => [String(entry.version),
          make("pre", {}, entry.value ?? "(deleted)"), entry.written_by, new Date(entry.written_at).toLocaleString()])));
    } catch (error) {
      notify(error.message);
    }
  }
}

export class Agents {
  constructor(state) {
    this.state = state;
    this.body = make("div");
    this.element = [make("section", { "aria-label": "Agents" }, make("h2", {}, "Agents"), this.body)];
  }

  async refresh() {
    const { agents, problems = [] } = await get("/v1/agents", { session: this.state.session || "main" });
    this.body.replaceChildren(
      ...problems.map((problem) => make("p", { class: "failed" }, `${problem.file}:${problem.line}:${problem.column}: ${problem.message}`)),
      table(["Name", "For", "Model", "Tools", "From"], agents.map((agent) => [
        `@${agent.name}${agent.mark ? ` (${agent.mark})` : ""}`, agent.description, agent.model, (agent.tools ?? []).join(", "), agent.source])));
  }
}
