// The page: which view is shown, for which session, and when it looks again.

import { follow, get, setToken, token } from "./api.js";
import { make, notify } from "./dom.js";
import { Tasks } from "./tasks.js";
import { Agents, Board, Context } from "./views.js";

/** How often the page looks again at most, and at least while it is seen. */
const SOON_MS = 400;
const ANYWAY_MS = 5000;

const state = { session: "" };
const views = { tasks: new Tasks(state), board: new Board(state), context: new Context(state), agents: new Agents(state) };
const main = document.getElementById("main");
const sessions = document.getElementById("session");
let shown;
let stop;
let timer;

function view() {
  const name = location.hash.slice(1);
  return name in views ? name : "tasks";
}

function show() {
  const name = view();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (shown === name) return;
  shown = name;
  main.className = name === "tasks" ? "split" : "";
  main.replaceChildren(...views[name].element);
  look();
}

async function look() {
  clearTimeout(timer);
  timer = undefined;
  try {
    await views[shown].refresh();
    await lookAtSessions();
  } catch (error) {
    if (error.status === 401) return ask(error.message);
    notify(error.message);
  }
  if (!timer) timer = setTimeout(() => (document.hidden ? later() : look()), ANYWAY_MS);
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(look, ANYWAY_MS);
}

/** Something happened: the page looks again soon, once for many things. */
let isDue = false;
function happened() {
  if (isDue) return;
  isDue = true;
  setTimeout(() => {
    isDue = false;
    look();
  }, SOON_MS);
}

async function lookAtSessions() {
  const { project, sessions: known } = await get("/v1/sessions");
  const names = known.map((session) => session.session);
  if (names.join() !== [...sessions.options].slice(1).map((option) => option.value).join()) {
    const all = make("option", { value: "" }, "all");
    sessions.replaceChildren(all, ...names.map((name) => make("option", { value: name }, name)));
    sessions.value = state.session;
  }
  const tasks = known.reduce((sum, session) => sum + session.tasks, 0);
  const open = known.reduce((sum, session) => sum + session.unfinished, 0);
  const totals = document.getElementById("totals");
  totals.title = project;
  totals.textContent = `${project.split("/").pop()} · ${open} unfinished · ${tasks} ${tasks === 1 ? "task" : "tasks"}`;
}

function watch() {
  stop?.();
  stop = follow("/v1/events", { session: state.session || "main", after: "now" }, happened);
}

function ask(problem) {
  stop?.();
  main.hidden = true;
  const form = document.getElementById("token-form");
  form.hidden = false;
  document.getElementById("token-problem").textContent = problem ?? "";
  document.getElementById("token").focus();
}

function open() {
  document.getElementById("token-form").hidden = true;
  main.hidden = false;
  shown = undefined;
  watch();
  show();
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem("locum-theme", name);
  document.getElementById("theme").textContent = name === "dark" ? "Light" : "Dark";
}

document.getElementById("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(document.getElementById("token").value.trim());
  open();
});
document.getElementById("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
sessions.addEventListener("change", () => {
  state.session = sessions.value;
  watch();
  look();
});
addEventListener("hashchange", show);
theme(localStorage.getItem("locum-theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
if (token()) open();
else ask();
