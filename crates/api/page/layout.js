// Places nodes by forces (Fruchterman and Reingold, Graph Drawing by Force-directed Placement, 1991): all nodes repel
// each other, links attract, and a weak force pulls to the middle. Nodes far away are taken together (Barnes and Hut, A
// hierarchical O(N log N) force-calculation algorithm, 1986), so that a step for many nodes is short. The start is a
// tree around the node with the most links, in the order of names, so equal networks look equal.
import { Quadtree } from "./quadtree.js";

// Distance in which linked nodes rest.
export const LENGTH = 90;
// Steps of a new network, and after nodes were added.
export const STEPS = 220;
const FEW_STEPS = 70;
// Shortest distance that forces are worked out for.
const NEAR = 5;
// Nodes from which on the pull to the middle grows, so that large networks do not spread ever more.
const SMALL = 50;

export class Layout {
  #names = [];
  #index = new Map();
  #edges = new Int32Array(0);
  #x = new Float64Array(0);
  #y = new Float64Array(0);
  #step = 0;
  #steps = 0;
  #tree = new Quadtree();

  // Sets the nodes (names) and edges (pairs of names). Nodes that were there before start where they are. Returns true
  // if there is something to do for `step`.
  set(nodes, edges) {
    const sorted = [...new Set(nodes)].sort();
    const known = new Map(this.#names.map((name, at) => [name, { x: this.#x[at], y: this.#y[at] }]));
    const isNew = sorted.some((name) => !known.has(name));
    this.#names = sorted;
    this.#index = new Map(sorted.map((name, at) => [name, at]));
    const there = edges.filter(([a, b]) => a !== b && this.#index.has(a) && this.#index.has(b));
    this.#edges = Int32Array.from(there.flatMap(([a, b]) => [this.#index.get(a), this.#index.get(b)]));
    this.#x = new Float64Array(sorted.length);
    this.#y = new Float64Array(sorted.length);
    this.#start(known);
    if (isNew) [this.#step, this.#steps] = [0, known.size > 0 ? FEW_STEPS : STEPS];
    return this.#step < this.#steps;
  }

  // Returns where a node is; undefined if there is none of this name.
  at(name) {
    const at = this.#index.get(name);
    return at === undefined ? undefined : { x: this.#x[at], y: this.#y[at] };
  }

  // Returns the least and greatest coordinates; null without nodes.
  bounds() {
    if (this.#names.length === 0) return null;
    const [xs, ys] = [this.#x, this.#y];
    const least = (all) => all.reduce((a, b) => Math.min(a, b)), most = (all) => all.reduce((a, b) => Math.max(a, b));
    return { left: least(xs), top: least(ys), right: most(xs), bottom: most(ys) };
  }

  // Moves all nodes a little. Returns false when they are at rest.
  step() {
    if (this.#step >= this.#steps) return false;
    const count = this.#names.length, forceX = new Float64Array(count), forceY = new Float64Array(count);
    this.#tree.build(this.#x, this.#y);
    for (let at = 0; at < count; at++) {
      this.#tree.push(at, LENGTH, NEAR);
      forceX[at] = this.#tree.pushX;
      forceY[at] = this.#tree.pushY;
    }
    this.#pull(forceX, forceY);
    const most = LENGTH * (1 - this.#step / this.#steps) * 0.5 + 1;
    const middle = 0.02 * Math.max(1, count / SMALL);
    for (let at = 0; at < count; at++) {
      const x = forceX[at] - this.#x[at] * middle, y = forceY[at] - this.#y[at] * middle;
      const size = Math.hypot(x, y) || 1;
      this.#x[at] += (x / size) * Math.min(size, most);
      this.#y[at] += (y / size) * Math.min(size, most);
    }
    this.#step += 1;
    return this.#step < this.#steps;
  }

  // Returns the pairs of nodes and cells that the last step looked at, to see how much a step costs.
  get looks() {
    return this.#tree.looks;
  }

  // Adds the attraction of links.
  #pull(forceX, forceY) {
    const edges = this.#edges;
    for (let at = 0; at < edges.length; at += 2) {
      const a = edges[at], b = edges[at + 1];
      const dx = this.#x[a] - this.#x[b] || 0.1, dy = this.#y[a] - this.#y[b] || 0.1;
      const force = Math.max(Math.hypot(dx, dy), NEAR) / LENGTH;
      forceX[a] -= dx * force;
      forceY[a] -= dy * force;
      forceX[b] += dx * force;
      forceY[b] += dy * force;
    }
  }

  // Gives each node a place to start from: its former one, one beside a node that it is linked to, or in a tree.
  #start(known) {
    const neighbours = this.#names.map(() => []);
    for (let at = 0; at < this.#edges.length; at += 2) {
      const a = this.#edges[at], b = this.#edges[at + 1];
      neighbours[a].push(b);
      neighbours[b].push(a);
    }
    if (known.size === 0) return this.#startAsTree(neighbours);
    this.#names.forEach((name, at) => {
      const angle = (2 * Math.PI * at) / this.#names.length;
      const near = neighbours[at].map((other) => known.get(this.#names[other])).find(Boolean) ?? { x: 0, y: 0 };
      const beside = { x: near.x + Math.cos(angle) * LENGTH * 0.7, y: near.y + Math.sin(angle) * LENGTH * 0.7 };
      ({ x: this.#x[at], y: this.#y[at] } = known.get(name) ?? beside);
    });
  }

  // Places each part of the network as a tree: the node with the most links in the middle, the others around it by
  // their distance, each with a sector as wide as its branch has nodes. Parts stand in a row.
  #startAsTree(neighbours) {
    const parent = new Int32Array(this.#names.length).fill(-1), depth = new Int32Array(this.#names.length).fill(-1);
    const roots = this.#names.map((_, at) => at).sort((a, b) => neighbours[b].length - neighbours[a].length || a - b);
    let right = 0;
    for (const root of roots) {
      if (depth[root] >= 0) continue;
      const order = [root];
      depth[root] = 0;
      for (let next = 0; next < order.length; next++) {
        for (const other of neighbours[order[next]]) {
          if (depth[other] >= 0) continue;
          [depth[other], parent[other]] = [depth[order[next]] + 1, order[next]];
          order.push(other);
        }
      }
      const ring = ringOf(order, depth), radius = ring * depth[order[order.length - 1]];
      this.#spread(order, parent, depth, ring, right + radius);
      right += 2 * radius + LENGTH;
    }
  }

  #spread(order, parent, depth, ring, middle) {
    const size = new Map(order.map((at) => [at, 1])), from = new Map([[order[0], 0]]);
    for (const at of [...order].reverse()) {
      if (parent[at] >= 0) size.set(parent[at], size.get(parent[at]) + size.get(at));
    }
    const whole = size.get(order[0]);
    const next = new Map(from);
    for (const at of order) {
      if (parent[at] >= 0) {
        from.set(at, next.get(parent[at]));
        next.set(parent[at], from.get(at) + size.get(at));
      }
      next.set(at, from.get(at));
      const angle = (2 * Math.PI * (from.get(at) + size.get(at) / 2)) / whole;
      this.#x[at] = middle + Math.cos(angle) * ring * depth[at];
      this.#y[at] = Math.sin(angle) * ring * depth[at];
    }
  }
}

// Returns the distance between rings of a tree in which the nodes of the fullest ring have some room.
function ringOf(order, depth) {
  const counts = [];
  for (const at of order) counts[depth[at]] = (counts[depth[at]] ?? 0) + 1;
  const needed = counts.map((count, ring) => (ring === 0 ? 0 : (count * LENGTH * 0.4) / (2 * Math.PI * ring)));
  return Math.max(LENGTH, ...needed);
}
