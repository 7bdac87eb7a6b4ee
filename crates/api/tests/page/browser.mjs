// Uses the page as an operator does, by mouse, touch and keys, in a browser that the DevTools protocol drives over
// pipes; crates/api/tests/api/page.rs runs it. Arguments: address of the page with its token, folder for the browser's
// profile.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";

const [address, profile] = process.argv.slice(2);
const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
  "--window-size=1200,900", "--ignore-certificate-errors", "--remote-debugging-pipe", `--user-data-dir=${profile}`, "about:blank"];
const browser = spawn("chromium", flags, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const [, , , toBrowser, fromBrowser] = browser.stdio;

// ---- DevTools protocol: JSON objects that end with a zero byte.
const waiting = new Map();
const requested = [];
let number = 0, arrived = "", session;
fromBrowser.on("data", (data) => {
  const parts = (arrived + data).split("\0");
  arrived = parts.pop();
  for (const part of parts) {
    const message = JSON.parse(part);
    if (message.method === "Network.requestWillBeSent") requested.push(message.params.request.url);
    const answer = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.error) answer?.fail(new Error(JSON.stringify(message.error)));
    else answer?.done(message.result);
  }
});

function send(method, params = {}) {
  number += 1;
  const id = number;
  toBrowser.write(`${JSON.stringify({ id, method, params, sessionId: session })}\0`);
  return new Promise((done, fail) => waiting.set(id, { done, fail }));
}

// Returns the value of an expression in the page; waits for a promise.
async function evaluate(expression) {
  const { result, exceptionDetails } = await send("Runtime.evaluate",
    { expression, awaitPromise: true, returnByValue: true });
  assert.ok(!exceptionDetails, JSON.stringify(exceptionDetails));
  return result.value;
}

// Waits until an expression is true in the page. What takes longer than the test's own limit ends with it.
const until = (expression) => evaluate(`new Promise((done) => {
  const look = () => (${expression}) ? done(true) : requestAnimationFrame(look);
  look();
})`);

// Part of the map that is seen, as an expression, and how it writes numbers.
const BOX = `document.getElementById("map").getAttribute("viewBox")`;
const written = (box) => JSON.stringify(box.map((part) => part.toFixed(2)).join(" "));
const box = async () => (await evaluate(BOX)).split(" ").map(Number);

// Waits until another part of the map is seen than before, and returns it.
async function boxAfter(before) {
  await until(`${BOX} !== ${written(before)}`);
  return box();
}

// Waits until a part of the map is seen.
const untilBox = (wanted) => until(`${BOX} === ${written(wanted)}`);

// Returns the middle of an element on the screen.
const middleOf = (selector) => evaluate(`(() => {
  const box = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect();
  return { x: box.left + box.width / 2, y: box.top + box.height / 2 };
})()`);

const mouse = (type, { x, y }, more = {}) => send("Input.dispatchMouseEvent",
  { type, x, y, button: "left", buttons: 1, clickCount: 1, pointerType: "mouse", ...more });

async function click(at) {
  await mouse("mousePressed", at);
  await mouse("mouseReleased", at);
}

async function press(key, text) {
  const codes = { Enter: 13, Tab: 9, ArrowLeft: 37, ArrowRight: 39 };
  const event = { key, code: key, windowsVirtualKeyCode: codes[key] ?? key.charCodeAt(0), ...(text ? { text } : {}) };
  await send("Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", ...event });
  await send("Input.dispatchKeyEvent", { type: "keyUp", ...event });
}

const touch = (type, points) => send("Input.dispatchTouchEvent",
  { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });

async function test() {
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  session = (await send("Target.attachToTarget", { targetId, flatten: true })).sessionId;
  await send("Network.enable");
  await send("Page.enable");
  await send("Emulation.setFocusEmulationEnabled", { enabled: true });
  await send("Page.navigate", { url: address });
  await until(`document.querySelectorAll('#map [aria-label^="switch "]').length === 4`);
  await until(`document.getElementById("connection").className === "live"`);
  await evaluate(`document.querySelector(".tools").scrollIntoView()`);
  // Nodes come to rest.
  await until(`(() => {
    const now = ${BOX};
    const count = now === window.before ? (window.same ?? 0) + 1 : 0;
    [window.before, window.same] = [now, count];
    return count > 30;
  })()`);
  const whole = await box();
  const seen = await evaluate(`[...document.querySelectorAll("#map .node")].every((node) => {
    const map = document.getElementById("map").getBoundingClientRect(), box = node.getBoundingClientRect();
    return box.left >= map.left && box.right <= map.right && box.top >= map.top && box.bottom <= map.bottom;
  })`);
  assert.ok(seen, "the whole network is seen");

  // Mouse: the wheel zooms about the pointer, dragging moves, a click chooses.
  const one = await middleOf('#map [aria-label="switch 1"]');
  await mouse("mouseWheel", one, { button: "none", buttons: 0, deltaX: 0, deltaY: -200 });
  const zoomed = await boxAfter(whole), there = await middleOf('#map [aria-label="switch 1"]');
  assert.ok(zoomed[2] < 0.7 * whole[2], `${zoomed} of ${whole}`);
  assert.ok(Math.hypot(there.x - one.x, there.y - one.y) < 2, "what is below the pointer stays there");
  await mouse("mousePressed", there);
  await mouse("mouseMoved", { x: there.x + 40, y: there.y + 25 });
  await mouse("mouseMoved", { x: there.x + 80, y: there.y + 50 });
  await mouse("mouseReleased", { x: there.x + 80, y: there.y + 50 });
  await until(`Math.hypot(...${JSON.stringify([there.x + 80, there.y + 50])}.map((wanted, at) => {
    const box = document.querySelector('#map [aria-label="switch 1"]').getBoundingClientRect();
    return wanted - (at === 0 ? box.left + box.width / 2 : box.top + box.height / 2);
  })) < 2`);
  const moved = await middleOf('#map [aria-label="switch 1"]');
  assert.equal(await evaluate(`document.querySelector("#map .chosen")`), null, "dragging chooses nothing");
  await click(moved);
  await until(`document.getElementById("selected").textContent.includes("0000000000000001")`);

  // Keys: plus, minus, arrows and 0 with the focus on the map or in it, and buttons.
  await evaluate(`document.getElementById("map").focus()`);
  const before = await box();
  await press("+", "+");
  const nearer = await boxAfter(before);
  assert.ok(nearer[2] < before[2], `${nearer} ${before}`);
  await press("-", "-");
  const again = await boxAfter(nearer);
  assert.ok(Math.abs(again[2] - before[2]) < 1, `${again} ${before}`);
  await press("ArrowRight");
  const right = await boxAfter(again);
  assert.ok(right[2] === again[2] && right[0] > again[0] && right[1] === again[1], `${right} ${again}`);
  await press("0", "0");
  await untilBox(whole);
  await click(await middleOf("#zoom-in"));
  const button = await boxAfter(whole);
  assert.ok(button[2] < whole[2], `${button} ${whole}`);
  await click(await middleOf("#fit"));
  await untilBox(whole);

  // Two fingers.
  const { x, y } = await middleOf("#map");
  await touch("touchStart", [[x - 40, y], [x + 40, y]]);
  await touch("touchMove", [[x - 70, y], [x + 70, y]]);
  await touch("touchMove", [[x - 120, y], [x + 120, y]]);
  await touch("touchEnd", []);
  await until(`Number(${BOX}.split(" ")[2]) < ${0.6 * whole[2]}`);

  // Finding a host shows it in the middle.
  await evaluate(`document.getElementById("find").focus()`);
  await send("Input.insertText", { text: "alice" });
  await press("Enter", "\r");
  await until(`document.getElementById("selected").textContent.includes("10.0.0.1")`);
  const alice = await middleOf('#map [aria-label="host alice"]'), map = await middleOf("#map");
  assert.ok(Math.hypot(alice.x - map.x, alice.y - map.y) < 12, JSON.stringify([alice, map]));
  await evaluate(`document.getElementById("find").value = ""`);
  await send("Input.insertText", { text: "bob" });
  await press("Enter", "\r");
  await until(`document.getElementById("find-problem").textContent === "there is no switch or host bob"`);

  // With keys alone: Tab reaches the tools, the map and what is on it; Enter chooses.
  await evaluate(`document.activeElement.blur()`);
  await evaluate(`document.querySelector(".skip a").focus()`);
  const reached = [];
  while (reached.length < 40 && reached.at(-1) !== "switch 2") {
    await press("Tab");
    reached.push(await evaluate(`document.activeElement.id || document.activeElement.getAttribute("aria-label")`));
  }
  const tools = ["find", "zoom-in", "zoom-out", "fit", "map"];
  for (const wanted of [...tools, "link 1:1 to 2:2, load 90 %", "switch 1", "switch 2"]) {
    assert.ok(reached.includes(wanted), `Tab does not reach ${wanted}: ${reached}`);
  }
  await press("Enter", "\r");
  await until(`document.getElementById("selected").textContent.includes("0000000000000002")`);

  // Nothing is loaded from elsewhere.
  const origin = new URL(address).origin;
  const foreign = requested.filter((url) => !url.startsWith(`${origin}/`) && url !== "about:blank");
  assert.deepEqual(foreign, []);
  assert.ok(requested.length > 10, requested.join(" "));
}

try {
  await test();
  console.log("the page is as expected");
} finally {
  session = undefined;
  await send("Browser.close").catch(() => {});
}
