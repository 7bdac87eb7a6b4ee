// The part of the map that is seen: zoom and pan by mouse, touch and keys.
const MARGIN = 50;
// Pixels for one unit of the map, at least and at most.
const LEAST_SCALE = 0.02;
const MOST_SCALE = 8;
// Pixels for one unit below which names are left out, and above which loads are written.
const FAR_SCALE = 0.35;
const NEAR_SCALE = 0.8;
// Pixels that a pointer moves before it counts as dragging.
const DRAG = 4;
const KEY_ZOOM = 1.25;
const KEY_PAN = 60;

export class View {
  #svg;
  // Middle of what is seen, and pixels for one unit.
  #middle = { x: 0, y: 0 };
  #scale = 1;
  #bounds = null;
  #pointers = new Map();
  #isDragged = false;
  // True until the operator zooms or pans: the whole network is seen.
  isFitted = true;

  constructor(svg) {
    this.#svg = svg;
    svg.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    svg.addEventListener("pointerdown", (event) => this.#down(event));
    svg.addEventListener("pointermove", (event) => this.#move(event));
    for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, (event) => this.#up(event));
    svg.addEventListener("click", (event) => this.#click(event), { capture: true });
    svg.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#show()).observe(svg);
  }

  // Sets the bounds of the network; null without nodes.
  setBounds(bounds) {
    this.#bounds = bounds;
    if (this.isFitted) this.fit();
  }

  // Shows the whole network.
  fit() {
    this.isFitted = true;
    const { left, top, right, bottom } = this.#bounds ?? { left: -50, top: -50, right: 50, bottom: 50 };
    const { width, height } = this.#size();
    this.#middle = { x: (left + right) / 2, y: (top + bottom) / 2 };
    const scale = Math.min(width / (right - left + 2 * MARGIN), height / (bottom - top + 2 * MARGIN));
    this.#scale = Math.min(scale, MOST_SCALE / 4);
    this.#draw();
  }

  // Zooms by a factor; the point of the screen, measured from the map's middle in pixels, stays where it is.
  zoom(factor, x = 0, y = 0) {
    const before = this.#scale;
    this.isFitted = false;
    this.#scale = Math.min(Math.max(before * factor, LEAST_SCALE), MOST_SCALE);
    this.#middle.x += x / before - x / this.#scale;
    this.#middle.y += y / before - y / this.#scale;
    this.#draw();
  }

  // Moves what is seen by pixels.
  pan(x, y) {
    this.isFitted = false;
    this.#middle.x += x / this.#scale;
    this.#middle.y += y / this.#scale;
    this.#draw();
  }

  // Shows a point in the middle, near enough to read names.
  show({ x, y }) {
    this.isFitted = false;
    [this.#middle, this.#scale] = [{ x, y }, Math.max(this.#scale, NEAR_SCALE)];
    this.#draw();
  }

  #size() {
    const { width, height } = this.#svg.getBoundingClientRect();
    return { width: Math.max(width, 1), height: Math.max(height, 1) };
  }

  #show() {
    if (this.isFitted) this.fit();
    else this.#draw();
  }

  #draw() {
    const size = this.#size(), width = size.width / this.#scale, height = size.height / this.#scale;
    const box = [this.#middle.x - width / 2, this.#middle.y - height / 2, width, height];
    this.#svg.setAttribute("viewBox", box.map((part) => part.toFixed(2)).join(" "));
    this.#svg.classList.toggle("far", this.#scale < FAR_SCALE);
    this.#svg.classList.toggle("near", this.#scale >= NEAR_SCALE);
  }

  // Returns a point of the screen, measured from the map's middle in pixels.
  #fromMiddle({ clientX, clientY }) {
    const box = this.#svg.getBoundingClientRect();
    return { x: clientX - box.left - box.width / 2, y: clientY - box.top - box.height / 2 };
  }

  #wheel(event) {
    event.preventDefault();
    // Wheels tell lines (1) or pages (2) in place of pixels.
    const pixels = event.deltaY * [1, 16, 400][event.deltaMode];
    const { x, y } = this.#fromMiddle(event);
    this.zoom(Math.exp(-Math.max(-400, Math.min(pixels, 400)) / 400), x, y);
  }

  #down(event) {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    if (this.#pointers.size === 0) this.#isDragged = false;
    this.#pointers.set(event.pointerId, { ...this.#fromMiddle(event), startX: event.clientX, startY: event.clientY });
  }

  #move(event) {
    const before = this.#pointers.get(event.pointerId);
    if (!before) return;
    const now = this.#fromMiddle(event);
    if (!this.#isDragged) {
      if (Math.hypot(event.clientX - before.startX, event.clientY - before.startY) < DRAG) return;
      this.#isDragged = true;
      this.#svg.setPointerCapture(event.pointerId);
    }
    const other = [...this.#pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      // Two fingers: what is between them stays there.
      const apart = (point) => Math.max(Math.hypot(point.x - other.x, point.y - other.y), 1);
      const between = (point) => ({ x: (point.x + other.x) / 2, y: (point.y + other.y) / 2 });
      const [from, to] = [between(before), between(now)];
      this.pan(from.x - to.x, from.y - to.y);
      this.zoom(apart(now) / apart(before), to.x, to.y);
    } else {
      this.pan(before.x - now.x, before.y - now.y);
    }
    this.#pointers.set(event.pointerId, { ...before, ...now });
  }

  #up(event) {
    this.#pointers.delete(event.pointerId);
  }

  // The end of dragging is no click on what is below.
  #click(event) {
    if (!this.#isDragged) return;
    this.#isDragged = false;
    event.stopPropagation();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      "+": () => this.zoom(KEY_ZOOM), "=": () => this.zoom(KEY_ZOOM), "-": () => this.zoom(1 / KEY_ZOOM),
      0: () => this.fit(), ArrowLeft: () => this.pan(-KEY_PAN, 0), ArrowRight: () => this.pan(KEY_PAN, 0),
      ArrowUp: () => this.pan(0, -KEY_PAN), ArrowDown: () => this.pan(0, KEY_PAN),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
}
