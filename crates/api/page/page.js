// The page: asks for the network's state when something happened, and draws it.
import { ask, listen, setToken, takeTokenFromAddress } from "./server.js";
import { NetworkMap } from "./map.js";
import { addEvent, drawEffect, drawEnds, drawHosts, drawIntents, drawSelected } from "./lists.js";
import { failureOf, intentOf, onSend } from "./forms.js";

const AFTER_EVENT_MS = 200;
const WITHOUT_EVENT_MS = 5000;

const by = (id) => document.getElementById(id);
let asked = false;
let again = false;
let selected = null;
const map = new NetworkMap(by("map"), choose, (item) => {
  selected = item;
  drawSelected(by("selected"), item);
});

function connection(kind, text) {
  by("connection").className = kind;
  by("connection").textContent = text;
}

function show(network) {
  const counted = (list, one, many) => `${list.length} ${list.length === 1 ? one : many}`;
  by("counts").textContent = [counted(network.switches, "switch", "switches"), counted(network.links, "link", "links"),
    counted(network.hosts, "host", "hosts"), counted(network.intents, "intent", "intents")].join(", ");
  map.draw(network);
  drawIntents(by("intents"), network.intents, remove);
  drawHosts(by("hosts"), network.hosts);
  drawEnds(by("ends"), network.hosts, []);
  drawEnds(by("things"), network.hosts, network.switches);
}

// Asks for the state and draws it; while one is on its way, one more at most is asked for.
async function refresh() {
  if (asked) {
    again = true;
    return;
  }
  asked = true;
  try {
    show(await ask("GET", "/network"));
  } catch (error) {
    connection("broken", error.message);
  }
  asked = false;
  if (again) {
    again = false;
    setTimeout(refresh, AFTER_EVENT_MS);
  }
}

function choose(item) {
  selected = item;
  drawSelected(by("selected"), item);
  by("effect").replaceChildren();
  by("what-if").hidden = failureOf(item) === null;
}

async function remove(key) {
  by("intent-problem").textContent = "";
  try {
    await ask("DELETE", `/intents/${encodeURIComponent(key)}`);
  } catch (error) {
    by("intent-problem").textContent = error.message;
  }
  refresh();
}

// Loads the state for the first time, then follows events.
async function start() {
  const network = await ask("GET", "/network");
  by("token-form").hidden = true;
  by("main").hidden = false;
  show(network);
  const earlier = await ask("GET", `/events?after=${Math.max(0, network.last_event - 100)}`);
  earlier.forEach((event) => addEvent(by("events"), "message", event));
  const last = earlier.length > 0 ? earlier[earlier.length - 1].number : network.last_event;
  let due = null;
  const told = (kind, event) => {
    addEvent(by("events"), kind, event);
    due ??= setTimeout(() => {
      due = null;
      refresh();
    }, AFTER_EVENT_MS);
  };
  listen(last, told, (live) => connection(live ? "live" : "broken", live ? "live" : "not connected; trying again"));
  setInterval(refresh, WITHOUT_EVENT_MS);
}

async function begin() {
  try {
    await start();
  } catch (error) {
    if (error.status !== 401) {
      connection("broken", error.message);
      setTimeout(begin, WITHOUT_EVENT_MS);
      return;
    }
    connection("waiting", "a token is needed");
    by("token-form").hidden = false;
    by("token").focus();
  }
}

onSend(by("token-form"), by("token-problem"), async () => {
  setToken(by("token").value.trim());
  await start();
});
onSend(by("intent-form"), by("intent-problem"), async () => {
  const form = by("intent-form");
  await ask("PUT", `/intents/${encodeURIComponent(form.elements.key.value.trim())}`, intentOf(form));
  form.reset();
  refresh();
});
by("what-if").addEventListener("click", async () => {
  try {
    drawEffect(by("effect"), await ask("POST", "/what-if", failureOf(selected)));
  } catch (error) {
    by("effect").textContent = error.message;
  }
});

by("zoom-in").addEventListener("click", () => map.view.zoom(1.5));
by("zoom-out").addEventListener("click", () => map.view.zoom(1 / 1.5));
by("fit").addEventListener("click", () => map.view.fit());
by("find-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = by("find").value;
  by("find-problem").textContent = map.find(text) ? "" : `there is no switch or host ${text.trim()}`;
});

takeTokenFromAddress();
begin();
