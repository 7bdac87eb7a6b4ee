// A tree of squares over points (Barnes and Hut, 1986): what is far away is taken together as one heavier point.

// Least ratio of distance and size of a square from which on its points are taken together.
const FAR = 1.1;
// Squares in squares; points that are closer than the smallest ones are taken together.
const MOST_DEPTH = 24;
// Marks of a square in place of its only point: no or several points, or squares in it.
const MANY = -1;
const DIVIDED = -2;

export class Quadtree {
  // Of each square: middle and half of a side, number of its points, sums of their coordinates, its only point, and the
  // four squares in it. The lists are kept for the next tree.
  #room = 0;
  #middleX;
  #middleY;
  #half;
  #mass;
  #sumX;
  #sumY;
  #point;
  #inner;
  #squares = 0;
  #open = [];
  #x = [];
  #y = [];
  // Squares and points that were looked at since the tree was built.
  looks = 0;
  // Force on the point that `push` was called for.
  pushX = 0;
  pushY = 0;

  // Builds the tree over points.
  build(x, y) {
    [this.#x, this.#y, this.looks, this.#squares] = [x, y, 0, 0];
    if (this.#room === 0) this.#grow(1024);
    let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity;
    for (let at = 0; at < x.length; at++) {
      left = Math.min(left, x[at]);
      right = Math.max(right, x[at]);
      top = Math.min(top, y[at]);
      bottom = Math.max(bottom, y[at]);
    }
    const half = Math.max(right - left, bottom - top, 1) / 2 + 1;
    this.#square((left + right) / 2, (top + bottom) / 2, half);
    for (let at = 0; at < x.length; at++) this.#insert(at);
  }

  #grow(room) {
    const longer = (list, length) => {
      const made = new Float64Array(length);
      if (list) made.set(list);
      return made;
    };
    const whole = (list, length) => {
      const made = new Int32Array(length);
      if (list) made.set(list);
      return made;
    };
    this.#room = room;
    this.#middleX = longer(this.#middleX, room);
    this.#middleY = longer(this.#middleY, room);
    this.#half = longer(this.#half, room);
    this.#sumX = longer(this.#sumX, room);
    this.#sumY = longer(this.#sumY, room);
    this.#mass = whole(this.#mass, room);
    this.#point = whole(this.#point, room);
    this.#inner = whole(this.#inner, room * 4);
  }

  #square(middleX, middleY, half) {
    if (this.#squares === this.#room) this.#grow(2 * this.#room);
    const made = this.#squares;
    this.#squares += 1;
    this.#middleX[made] = middleX;
    this.#middleY[made] = middleY;
    this.#half[made] = half;
    this.#mass[made] = 0;
    this.#sumX[made] = 0;
    this.#sumY[made] = 0;
    this.#point[made] = MANY;
    this.#inner.fill(-1, made * 4, made * 4 + 4);
    return made;
  }

  #add(square, at) {
    this.#mass[square] += 1;
    this.#sumX[square] += this.#x[at];
    this.#sumY[square] += this.#y[at];
  }

  // Returns the square inside of another in which a point is.
  #within(square, at) {
    const isRight = this.#x[at] >= this.#middleX[square], isLow = this.#y[at] >= this.#middleY[square];
    const place = square * 4 + (isRight ? 1 : 0) + (isLow ? 2 : 0);
    if (this.#inner[place] < 0) {
      const half = this.#half[square] / 2;
      const middleX = this.#middleX[square] + (isRight ? half : -half);
      const middleY = this.#middleY[square] + (isLow ? half : -half);
      // The lists may grow while the square is made.
      const made = this.#square(middleX, middleY, half);
      this.#inner[place] = made;
    }
    return this.#inner[place];
  }

  #insert(at) {
    let square = 0;
    for (let depth = 0; ; depth++) {
      const isEmpty = this.#mass[square] === 0;
      this.#add(square, at);
      if (isEmpty) {
        this.#point[square] = at;
        return;
      }
      if (this.#point[square] !== DIVIDED) {
        if (depth >= MOST_DEPTH) {
          this.#point[square] = MANY;
          return;
        }
        const other = this.#point[square];
        this.#point[square] = DIVIDED;
        const place = this.#within(square, other);
        this.#add(place, other);
        this.#point[place] = other;
      }
      square = this.#within(square, at);
    }
  }

  // Works out the force with which all others push a point: for each, the square of `length` over the distance, which
  // is at least `near`. The result is in `pushX` and `pushY`.
  push(at, length, near) {
    const x = this.#x[at], y = this.#y[at], open = this.#open, inner = this.#inner, point = this.#point;
    const mass = this.#mass, sumX = this.#sumX, sumY = this.#sumY, half = this.#half;
    const square = length * length, nearest = near * near;
    let pushX = 0, pushY = 0, looks = 0, waiting = 1;
    open[0] = 0;
    while (waiting > 0) {
      waiting -= 1;
      const one = open[waiting];
      if (point[one] === at) continue;
      looks += 1;
      const dx = x - sumX[one] / mass[one] || 0.1, dy = y - sumY[one] / mass[one] || 0.1;
      const distance = dx * dx + dy * dy, size = FAR * 2 * half[one];
      if (point[one] === DIVIDED && distance < size * size) {
        for (let next = one * 4; next < one * 4 + 4; next++) {
          if (inner[next] < 0) continue;
          open[waiting] = inner[next];
          waiting += 1;
        }
        continue;
      }
      const force = (mass[one] * square) / Math.max(distance, nearest);
      pushX += dx * force;
      pushY += dy * force;
    }
    this.looks += looks;
    this.pushX = pushX;
    this.pushY = pushY;
  }
}
