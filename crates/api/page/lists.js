// Lists beside the map: intents, hosts, events, and what is chosen.
const MOST_EVENTS = 500;

function cell(content, kind) {
  const made = document.createElement("td");
  if (kind) made.className = kind;
  made.append(content);
  return made;
}

function row(...cells) {
  const made = document.createElement("tr");
  made.append(...cells.map((content) => (content instanceof Node ? content : cell(content ?? ""))));
  return made;
}

export function drawIntents(body, intents, remove) {
  const rows = intents.map((intent) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Remove";
    button.setAttribute("aria-label", `Remove intent ${intent.key}`);
    button.addEventListener("click", () => remove(intent.key));
    return row(intent.key, intent.from.join(", "), intent.to.join(", "), cell(intent.state, `state ${intent.state}`),
      intent.reason, cell(button));
  });
  body.replaceChildren(...rows);
}

export function drawHosts(body, hosts) {
  body.replaceChildren(...hosts.map((host) =>
    row(host.name ?? "", host.mac, host.ips.join(", "), host.at, `${host.seen_s.toFixed(0)} s ago`)));
}

// Offers names and addresses of hosts, and numbers of switches, for a field.
export function drawEnds(list, hosts, switches) {
  const numbers = switches.map((one) => one.dpid.replace(/^0+(?=.)/, ""));
  const names = [...numbers, ...hosts.flatMap((host) => [host.name, ...host.ips].filter(Boolean))];
  if (names.length === list.children.length && names.every((name, at) => list.children[at].value === name)) return;
  list.replaceChildren(...names.map((name) => {
    const option = document.createElement("option");
    option.value = name;
    return option;
  }));
}

// Puts an event on top of the list.
export function addEvent(list, kind, event) {
  const made = document.createElement("li");
  if (kind === "message") {
    const time = document.createElement("time");
    time.textContent = `${event.time_s.toFixed(1)} s`;
    const text = document.createElement("span");
    text.textContent = event.text;
    text.title = event.kind;
    if (event.alarm) text.className = "alarm";
    made.append(time, text);
  } else {
    made.textContent = kind === "lost" ? `${event.lost} events are no longer kept` : "the controller was started anew";
  }
  list.prepend(made);
  while (list.children.length > MOST_EVENTS) list.lastChild.remove();
}

function details(pairs) {
  const made = document.createElement("dl");
  for (const [name, value] of pairs) {
    const term = document.createElement("dt"), text = document.createElement("dd");
    term.textContent = name;
    text.textContent = value;
    made.append(term, text);
  }
  return made;
}

const rate = (bps) => {
  const [unit, factor] = [["Gbit/s", 1e9], ["Mbit/s", 1e6], ["kbit/s", 1e3], ["bit/s", 1]].find(([, f]) => bps >= f) ??
    ["bit/s", 1];
  return `${+(bps / factor).toPrecision(3)} ${unit}`;
};
const both = (pair) => (pair ? pair.map(rate).join(" and back ") : "not known");
const delay = (us) => (us === null || us === undefined ? "not known" : `${+us.toPrecision(4)} µs`);

// Shows what is chosen; what is read aloud changes only if there is something new.
export function drawSelected(place, item) {
  const made = detailsOf(item);
  if (place.textContent !== made.textContent) place.replaceChildren(made);
}

function detailsOf(item) {
  if (item.kind === "link") {
    const { link } = item, state = link.down ? "down" : link.blocked ? "through switches of others, not used" :
      link.indirect ? "up, through switches of others" : link.damped ? "up, goes down often" : "up";
    return details([["Link", `${link.from} – ${link.to}`], ["State", state], ["Delay", delay(link.delay_us)],
      ["Load", both(link.load_bps)], ["Reserved", both(link.reserved_bps)]]);
  }
  if (item.kind === "switch") {
    const down = item.switch.ports.filter((port) => !port.up).map((port) => port.name || port.number);
    return details([["Switch", item.switch.dpid], ["Ports", item.switch.ports.length],
      ["Down", down.join(", ") || "none"]]);
  }
  const { host } = item;
  return details([["Host", host.name ?? host.mac], ["Ethernet", host.mac], ["IP", host.ips.join(", ") || "not known"],
    ["At", host.at]]);
}

export function drawEffect(place, effect) {
  const changed = effect.intents.map((intent) => `${intent.key}: ${intent.state}${intent.reason && ` (${intent.reason})`}`);
  place.replaceChildren(details([["Intents", changed.join("; ") || "none changes"],
    ["Cut off", effect.cut_off.join(", ") || "no host"], ["Overloaded", effect.overloaded.join(", ") || "no link"]]));
}
