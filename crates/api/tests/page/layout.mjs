// Checks the layout of the map without a browser; crates/api/tests/api/page.rs runs it. Argument: folder of the page.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(`${process.argv[2]}/`);
const { Layout, LENGTH, STEPS } = await import(new URL("layout.js", folder));
const { Quadtree } = await import(new URL("quadtree.js", folder));

// A tree of switches, each with as many below it, and a host at each.
function network(switches, below) {
  const nodes = [], edges = [];
  for (let at = 0; at < switches; at++) {
    nodes.push(`s${at}`, `h${at}`);
    edges.push([`h${at}`, `s${at}`]);
    if (at > 0) edges.push([`s${at}`, `s${Math.floor((at - 1) / below)}`]);
  }
  return { nodes, edges };
}

function placed({ nodes, edges }) {
  const layout = new Layout();
  assert.ok(layout.set(nodes, edges));
  let steps = 1;
  while (layout.step()) steps += 1;
  assert.equal(steps, STEPS);
  return layout;
}

function positions(layout, nodes) {
  return nodes.map((name) => layout.at(name));
}

const apart = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);

// Points by a fixed rule, some of them at one place.
function points(count) {
  const x = new Float64Array(count), y = new Float64Array(count);
  for (let at = 0; at < count; at++) {
    x[at] = (at * 7919) % 1009;
    y[at] = (at * 104729) % 997;
  }
  [x[1], y[1]] = [x[0], y[0]];
  return { x, y };
}

// The force on each point is about the exact one.
{
  const { x, y } = points(400), tree = new Quadtree();
  tree.build(x, y);
  let off = 0, whole = 0;
  for (let at = 0; at < x.length; at++) {
    const exact = [0, 0];
    for (let other = 0; other < x.length; other++) {
      if (other === at) continue;
      const dx = x[at] - x[other] || 0.1, dy = y[at] - y[other] || 0.1;
      const force = (LENGTH * LENGTH) / Math.max(Math.hypot(dx, dy), 5) ** 2;
      exact[0] += dx * force;
      exact[1] += dy * force;
    }
    tree.push(at, LENGTH, 5);
    off += Math.hypot(tree.pushX - exact[0], tree.pushY - exact[1]);
    whole += Math.hypot(...exact);
  }
  assert.ok(off < 0.06 * whole, `forces are off by ${(100 * off) / whole} %`);
}

// Twice as many nodes cost little more than twice as much, not four times.
{
  const looks = (count) => {
    const { nodes, edges } = network(count, 4), layout = new Layout();
    layout.set(nodes, edges);
    layout.step();
    return layout.looks;
  };
  const [few, many] = [looks(500), looks(1000)];
  assert.ok(many < 2.6 * few, `${few} looks for 500 switches, ${many} for 1000`);
  assert.ok(few < (1000 * 1000) / 4, `${few} looks`);
}

// Nodes do not lie on each other, and links are short compared with the whole.
{
  const big = network(250, 4), layout = placed(big), all = positions(layout, big.nodes);
  assert.ok(all.every(({ x, y }) => Number.isFinite(x) && Number.isFinite(y)));
  let least = Infinity;
  for (let a = 0; a < all.length; a++) for (let b = 0; b < a; b++) least = Math.min(least, apart(all[a], all[b]));
  assert.ok(least > 10, `two nodes are ${least} apart`);
  const lengths = big.edges.map(([a, b]) => apart(layout.at(a), layout.at(b)));
  const mean = lengths.reduce((sum, one) => sum + one, 0) / lengths.length;
  const { left, right } = layout.bounds();
  assert.ok(mean < 0.2 * (right - left), `links are ${mean} long in ${right - left}`);
}

// Equal networks look equal, whatever the order in which they are told.
{
  const one = network(30, 3), other = { nodes: [...one.nodes].reverse(), edges: one.edges };
  assert.deepEqual(positions(placed(one), one.nodes), positions(placed(other), one.nodes));
}

// What was placed stays about where it is when a host appears, and at its place when one is gone.
{
  const { nodes, edges } = network(30, 3), layout = placed({ nodes, edges });
  const before = positions(layout, nodes);
  assert.ok(layout.set([...nodes, "new"], [...edges, ["new", "s7"]]));
  while (layout.step());
  const moved = positions(layout, nodes).map((now, at) => apart(now, before[at]));
  assert.ok(Math.max(...moved) < 3 * LENGTH, `${Math.max(...moved)}`);
  assert.ok(apart(layout.at("new"), layout.at("s7")) < 3 * LENGTH);
  const with_new = positions(layout, nodes);
  assert.equal(layout.set(nodes, edges), false);
  assert.deepEqual(positions(layout, nodes), with_new);
  assert.equal(layout.at("new"), undefined);
}

// Nothing, a single node, parts without links, and links to nodes that are not there.
{
  assert.equal(new Layout().bounds(), null);
  const single = placed({ nodes: ["a"], edges: [["a", "a"], ["a", "gone"]] });
  assert.ok(Number.isFinite(single.at("a").x));
  const parts = placed({ nodes: ["a", "b", "c", "d"], edges: [["a", "b"]] });
  assert.ok(apart(parts.at("c"), parts.at("d")) > 10 && apart(parts.at("a"), parts.at("d")) > 10);
}
console.log("the layout is as expected");
