// Requests to the controller, with the token of this tab.
const KEY = "weir-token";
const RETRY_MS = 2000;

// Error of a request: its message says what was wrong, its status what kind it is.
export class Refusal extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// Takes a token from the address (#token=...) that the controller printed, and removes it there, so that it does not
// stay in the history.
export function takeTokenFromAddress() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname);
  }
}

export function setToken(token) {
  sessionStorage.setItem(KEY, token);
}

function send(method, path, options = {}) {
  const headers = { ...options.headers };
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  return fetch(`/api/v1${path}`, { ...options, method, headers, cache: "no-store" });
}

async function refusal(response) {
  const problem = await response.json().catch(() => ({}));
  return new Refusal(response.status, problem.detail || `the controller answered ${response.status}`);
}

// Sends a request; returns the JSON of the answer, or undefined if there is none.
export async function ask(method, path, body) {
  const options = body === undefined ? {} :
    { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const response = await send(method, path, options);
  if (!response.ok) throw await refusal(response);
  return response.status === 204 ? undefined : response.json();
}

// Listens to events after a number, and connects again when the stream ends. `told` gets events and what the stream
// says about them; `changed` gets true when connected and false when not.
export async function listen(after, told, changed) {
  let last = after;
  for (;;) {
    try {
      const response = await send("GET", "/events/stream", { headers: { "Last-Event-ID": String(last) } });
      if (!response.ok) throw await refusal(response);
      changed(true);
      for await (const block of blocks(response.body)) {
        if (block.id !== undefined) last = Number(block.id);
        if (block.data) told(block.event || "message", JSON.parse(block.data));
      }
    } catch (error) {
      console.warn("events:", error);
    }
    changed(false);
    await new Promise((done) => setTimeout(done, RETRY_MS));
  }
}

// Reads the blocks of Server-Sent Events: lines `name: value`, ended by an empty line.
async function* blocks(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) yield fieldsOf(part);
  }
}

function fieldsOf(block) {
  const fields = {};
  for (const line of block.split("\n")) {
    const at = line.indexOf(": ");
    if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
  }
  return fields;
}
