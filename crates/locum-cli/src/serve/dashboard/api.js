// The one place that speaks to the server.

const KEY = "locum-token";

/** The token: from the address, where it is removed at once, or from an earlier visit in this tab. */
export function token() {
  const match = /[#&]token=([^&]+)/.exec(location.hash);
  if (match) {
    sessionStorage.setItem(KEY, decodeURIComponent(match[1]));
    history.replaceState(null, "", location.pathname + "#tasks");
  }
  return sessionStorage.getItem(KEY);
}

export function setToken(text) {
  sessionStorage.setItem(KEY, text);
}

export class Refused extends Error {
  constructor(status, body) {
    super(body.hint ? `${body.message} (${body.hint})` : body.message ?? `the server answered ${status}`);
    this.status = status;
    this.code = body.error;
  }
}

async function answer(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, body);
  return body;
}

function headers() {
  return { Authorization: `Bearer ${token() ?? ""}` };
}

function address(path, parameters = {}) {
  const said = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(said).toString();
  return query ? `${path}?${query}` : path;
}

/** Reads a resource. */
export async function get(path, parameters) {
  return answer(await fetch(address(path, parameters), { headers: headers() }));
}

/** Calls a tool, as a person. */
export async function call(tool, input, session) {
  return answer(await fetch(address("/v1/requests", { session, face: "person" }), {
    method: "POST",
    headers: { ...headers(), "Content-Type": "application/json" },
    body: JSON.stringify({ tool, input }),
  }));
}

/** Everything behind a path that is given by pages. */
export async function pages(path, field, parameters, most, cursor) {
  const all = [];
  let next;
  do {
    const page = await get(path, { ...parameters, limit: 500, ...(next === undefined ? {} : { [cursor]: next }) });
    all.push(...page[field]);
    next = page.next;
  } while (next !== undefined && all.length < most);
  return all;
}

/**
 * Hands on the events behind a path until it is stopped; comes back from where it was when the connection is lost. Events
 * of the log go to hear, pieces of a reply under way to say.
 */
export function follow(path, parameters, hear, say) {
  const stop = new AbortController();
  (async () => {
    let last;
    while (!stop.signal.aborted) {
      try {
        const said = last === undefined ? {} : { "Last-Event-ID": last };
        const response = await fetch(address(path, parameters), { headers: { ...headers(), ...said }, signal: stop.signal });
        if (response.status === 204) return;
        if (!response.ok) throw new Refused(response.status, await response.json().catch(() => ({})));
        last = await read(response.body, hear, say, last);
      } catch (error) {
        if (stop.signal.aborted || (error instanceof Refused && error.status < 500)) return;
      }
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  })();
  return () => stop.abort();
}

async function read(body, hear, say, last) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return last;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const lines = part.split("\n");
      const field = (name) => lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
      const data = field("data").join("\n");
      if (!data) continue;
      last = field("id")[0] ?? last;
      if (field("event")[0] === "text") say?.(JSON.parse(data));
      else hear(JSON.parse(data));
    }
  }
}
