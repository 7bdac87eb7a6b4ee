// The map: switches, the links between them, and hosts. What is drawn is kept, and only what changed is changed.
import { Layout } from "./layout.js";
import { View } from "./view.js";

const SVG = "http://www.w3.org/2000/svg";
const MOST_DOWN = 1000;
// Time of each frame in which nodes are moved. Drawing waits for so many times as long as it took, so that the page
// answers meanwhile.
const MOVE_MS = 8;
const DRAW_SHARE = 3;

export const switchOf = (port) => port.slice(0, port.indexOf(":"));
const short = (dpid) => dpid.replace(/^0+(?=.)/, "");
const nameOfHost = (host) => host.name || host.ips[0] || host.mac;

function element(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Sets an attribute if it changes: writing costs more than reading.
function set(made, name, value) {
  if (made.getAttribute(name) !== value) made.setAttribute(name, value);
}

function setText(made, text) {
  if (made.textContent !== text) made.textContent = text;
}

export class NetworkMap {
  #layers;
  #layout = new Layout();
  #view;
  #choose;
  #changed;
  // Key of what is chosen; null for nothing.
  #chosen = null;
  // What is drawn, by its key.
  #drawn = new Map();
  // Links that were up once, by their ends: those that are gone are shown as down.
  #known = new Map();
  #isMoving = false;

  // `choose` is called with what the operator chooses, `changed` with the same thing in a later state of the network.
  constructor(svg, choose, changed) {
    [this.#choose, this.#changed] = [choose, changed];
    this.#layers = { links: element("g", {}), nodes: element("g", {}) };
    svg.replaceChildren(this.#layers.links, this.#layers.nodes);
    this.#view = new View(svg);
    svg.addEventListener("click", (event) => this.#pick(event.target.closest("[data-key]")));
    svg.addEventListener("keydown", (event) => {
      const made = event.target.closest("[data-key]");
      if (!made || (event.key !== "Enter" && event.key !== " ")) return;
      event.preventDefault();
      this.#pick(made);
    });
  }

  get view() {
    return this.#view;
  }

  // Draws a network.
  draw(network) {
    const links = this.#linksWithDown(network);
    const switches = new Map(network.switches.map((one) => [short(one.dpid), one]));
    const hosts = network.hosts.filter((host) => switches.has(switchOf(host.at)));
    const items = [
      ...hosts.map((host) => this.#access(host)),
      ...links.map((link) => this.#link(link, switches)),
      ...[...switches].map(([dpid, one]) => this.#switch(dpid, one)),
      ...hosts.map((host) => this.#host(host)),
    ];
    const there = new Set(items.map((item) => item.key));
    for (const [key, { made }] of this.#drawn) {
      if (there.has(key)) continue;
      made.remove();
      this.#drawn.delete(key);
    }
    const edges = items.filter((item) => item.ends).map((item) => item.ends);
    const isToMove = this.#layout.set([...switches.keys(), ...hosts.map((host) => host.mac)], edges);
    items.forEach((item) => this.#update(item));
    this.#place();
    if (isToMove) this.#animate();
    const chosen = this.#drawn.get(this.#chosen);
    if (chosen) this.#changed(chosen.item);
  }

  // Chooses the switch or host with this name or address, and shows it. Returns false if there is none.
  find(text) {
    const wanted = text.trim().toLowerCase();
    const names = ({ item }) => (item?.kind === "switch" ? [short(item.switch.dpid), item.switch.dpid] :
      item?.kind === "host" ? [item.host.name, ...item.host.ips, item.host.mac] : []);
    const found = [...this.#drawn.values()].find((one) => names(one).some((name) => name?.toLowerCase() === wanted));
    if (!found) return false;
    this.#view.show(this.#layout.at(found.node));
    this.#pick(found.made);
    return true;
  }

  // Returns the links that are up, and those that were up and whose switches are still there.
  #linksWithDown(network) {
    const up = new Map(network.links.map((link) => [`${link.from} ${link.to}`, link]));
    for (const [key, link] of up) this.#known.set(key, link);
    const there = new Set(network.switches.map((one) => short(one.dpid)));
    for (const [key, link] of this.#known) {
      const isThere = there.has(switchOf(link.from)) && there.has(switchOf(link.to));
      const isTooMany = !up.has(key) && this.#known.size > MOST_DOWN + up.size;
      if (!isThere || isTooMany) this.#known.delete(key);
    }
    return [...this.#known].map(([key, link]) => ({ ...link, ...(up.get(key) ?? { down: true }) }));
  }

  #access(host) {
    const make = () => element("g", {}, element("line", { class: "seen" }));
    return { key: `access ${host.mac}`, ends: [host.mac, switchOf(host.at)], kind: "link access", make };
  }

  #link(link, switches) {
    const part = share(link, switches);
    const label = `link ${link.from} to ${link.to}`, load = part === null ? "" : `${Math.round(part * 100)} %`;
    return {
      key: `link ${link.from} ${link.to}`, ends: [switchOf(link.from), switchOf(link.to)], item: { kind: "link", link },
      kind: `link ${levelOf(link, part)}${link.damped ? " damped" : ""}`, text: load, make: line,
      label: `${label}${link.down ? ", down" : load && `, load ${load}`}`,
    };
  }

  #switch(dpid, one) {
    const make = () => element("g", {}, element("circle", { r: 17 }), element("text", {}));
    return {
      key: `switch ${dpid}`, node: dpid, item: { kind: "switch", switch: one }, kind: "node switch", text: dpid, make,
      label: `switch ${dpid}`,
    };
  }

  #host(host) {
    const text = nameOfHost(host), width = String(text.length * 5 + 8);
    const make = () => element("g", {}, element("rect", { y: -8, height: 16, rx: 4 }), element("text", {}));
    return {
      key: `host ${host.mac}`, node: host.mac, item: { kind: "host", host }, kind: "node host", text, make, width,
      label: `host ${text}`,
    };
  }

  // Draws an item, or changes what is drawn of it.
  #update(item) {
    let drawn = this.#drawn.get(item.key);
    if (!drawn) {
      const made = item.make();
      drawn = { made, lines: [...made.querySelectorAll("line")], load: made.querySelector(".load"), before: [] };
      if (item.item) {
        made.prepend(element("title", {}));
        made.setAttribute("tabindex", "0");
        made.setAttribute("role", "button");
        made.setAttribute("data-key", item.key);
      }
      this.#layers[item.ends ? "links" : "nodes"].append(made);
      this.#drawn.set(item.key, drawn);
    }
    Object.assign(drawn, { item: item.item, ends: item.ends, node: item.node });
    const { made } = drawn;
    set(made, "class", made.classList.contains("chosen") ? `${item.kind} chosen` : item.kind);
    if (item.label) {
      set(made, "aria-label", item.label);
      setText(made.querySelector("title"), item.label);
      setText(made.querySelector("text"), item.text);
    }
    if (item.width) {
      set(made.querySelector("rect"), "width", item.width);
      set(made.querySelector("rect"), "x", String(-item.width / 2));
    }
  }

  #pick(made) {
    const key = made?.getAttribute("data-key"), item = this.#drawn.get(key)?.item;
    if (!item) return;
    this.#chosen = key;
    for (const { made: other } of this.#drawn.values()) other.classList.remove("chosen");
    made.classList.add("chosen");
    this.#choose(item);
  }

  // Moves nodes frame by frame until they are at rest.
  #animate() {
    if (this.#isMoving) return;
    this.#isMoving = true;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let drawAt = 0;
    const frame = () => {
      const begin = performance.now();
      let isOn = true;
      while (isOn && performance.now() < begin + MOVE_MS) isOn = this.#layout.step();
      if (!isOn || (!isCalm && begin >= drawAt)) {
        const drawing = performance.now();
        this.#place();
        drawAt = performance.now() + DRAW_SHARE * (performance.now() - drawing);
      }
      if (isOn) requestAnimationFrame(frame);
      else this.#isMoving = false;
    };
    requestAnimationFrame(frame);
  }

  // Puts everything where the layout has it.
  #place() {
    for (const drawn of this.#drawn.values()) {
      const places = (drawn.ends ?? [drawn.node]).flatMap((name) => {
        const { x, y } = this.#layout.at(name);
        return [Math.round(x * 10) / 10, Math.round(y * 10) / 10];
      });
      if (places.every((place, at) => place === drawn.before[at])) continue;
      drawn.before = places;
      if (drawn.ends) moveLine(drawn, places);
      else drawn.made.setAttribute("transform", `translate(${places[0]} ${places[1]})`);
    }
    this.#view.setBounds(this.#layout.bounds());
  }
}

function line() {
  return element("g", {}, element("line", { class: "target" }), element("line", { class: "seen" }),
    element("text", { class: "load" }));
}

function moveLine({ lines, load }, [x1, y1, x2, y2]) {
  for (const one of lines) {
    one.setAttribute("x1", x1);
    one.setAttribute("y1", y1);
    one.setAttribute("x2", x2);
    one.setAttribute("y2", y2);
  }
  load?.setAttribute("x", (x1 + x2) / 2);
  load?.setAttribute("y", (y1 + y2) / 2);
}

// Returns the part of a link's rate that is used, measured or else reserved; null if it is not known.
function share(link, switches) {
  const dpid = switchOf(link.from), number = link.from.slice(dpid.length + 1);
  const rate = (switches.get(dpid)?.ports.find((port) => String(port.number) === number)?.rate_kbps ?? 0) * 1000;
  const used = link.load_bps ?? link.reserved_bps;
  return rate > 0 && used ? Math.max(...used) / rate : null;
}

function levelOf(link, part) {
  if (link.down) return "down";
  if (part === null) return "unknown";
  return part < 0.5 ? "low" : part <= 0.8 ? "middle" : "high";
}
