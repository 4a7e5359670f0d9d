// Two texts side by side: what differs or what is common is marked; both can be scrolled together.

/** Positions of a longest ascending subsequence of distinct numbers. */
function ascending(numbers) {
  const ends = [];
  const before = [];
  numbers.forEach((number, i) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numbers[ends[middle]] < number) low = middle + 1;
      else high = middle;
    }
    before[i] = low ? ends[low - 1] : -1;
    ends[low] = i;
  });
  const found = [];
  for (let i = ends.at(-1) ?? -1; i >= 0; i = before[i]) found.unshift(i);
  return found;
}

/**
 * How two texts correspond. `anchors`: [piece of a, piece of b] of the passages that stand in the same order in both. Between two
 * anchors is at most one difference: its pieces of a and of b. Passages that are no anchors are in both, in another order.
 */
function correspondence(a, b) {
  const firstIn = (pieces) => {
    const found = new Map();
    pieces.forEach(({ passage }, i) => { if (isKnown(passage) && !found.has(passage)) found.set(passage, i); });
    return found;
  };
  const [inA, inB] = [firstIn(a), firstIn(b)];
  const shared = [...inB.keys()].filter((passage) => inA.has(passage));
  const kept = ascending(shared.map((passage) => inA.get(passage)));
  const anchors = kept.map((i) => [inA.get(shared[i]), inB.get(shared[i])]);
  const differs = (pieces, from, to) => {
    const found = [];
    for (let i = from; i < to; i += 1) if (!isKnown(pieces[i].passage) && pieces[i].text.trim() !== '') found.push(i);
    return found;
  };
  const differences = [];
  let [fromA, fromB] = [0, 0];
  for (const [toA, toB] of [...anchors, [a.length, b.length]]) {
    const found = { a: differs(a, fromA, toA), b: differs(b, fromB, toB), before: [fromA - 1, fromB - 1] };
    if (found.a.length || found.b.length) differences.push(found);
    [fromA, fromB] = [toA + 1, toB + 1];
  }
  return { anchors, differences };
}

/** How many characters two texts share at their beginning and at their end, up to boundaries of words: [beginning, end]. */
function sharedEnds(a, b) {
  const isWithin = (text, i) => i > 0 && i < text.length && /[\p{L}\p{N}\p{M}\ud800-\udbff]/u.test(text[i - 1]) && /[\p{L}\p{N}\p{M}\udc00-\udfff\u200d]/u.test(text[i]);
  const most = Math.min(a.length, b.length);
  let start = 0;
  while (start < most && a[start] === b[start]) start += 1;
  while (start > 0 && (isWithin(a, start) || isWithin(b, start))) start -= 1;
  let end = 0;
  while (end < most - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  while (end > 0 && (isWithin(a, a.length - end) || isWithin(b, b.length - end))) end -= 1;
  return [start, end];
}

class TextPair {
  /** `onstate(words)` is called with what is chosen. */
  constructor(onstate) {
    Object.assign(this, { onstate, chosen: null, mode: 'differs', isTogether: true, leading: null, count: 0 });
    this.root = el('div.sides', {});
    this.root.addEventListener('click', (event) => {
      const one = event.target.closest('mark');
      if (one) this.choose(Number(one.dataset.number), one);
    });
    this.resized = new ResizeObserver(() => { this.heights = null; });
  }

  close() {
    this.resized.disconnect();
  }

  /** `found`: the answer of /compare. What is chosen stays so if the texts are those that are shown. */
  show(found) {
    const texts = JSON.stringify([found.a, found.b]);
    if (this.texts === texts && this.boxes[0].isConnected) return;
    Object.assign(this, { found, texts });
    this.pieces = [found.a.pieces, found.b.pieces];
    this.matched = correspondence(...this.pieces);
    this.draw();
  }

  setMode(mode) {
    this.mode = mode;
    if (this.found) this.draw();
  }

  draw() {
    const scrolled = this.boxes?.map((box) => box.scrollTop);
    this.heights = null;
    // By piece of each side: its number among what is marked, and its class.
    const marks = [new Map(), new Map()];
    if (this.mode === 'differs') {
      this.count = this.matched.differences.length;
      this.matched.differences.forEach((difference, number) => {
        const isOneEach = difference.a.length === 1 && difference.b.length === 1;
        const ends = isOneEach ? sharedEnds(this.pieces[0][difference.a[0]].text, this.pieces[1][difference.b[0]].text) : [0, 0];
        [difference.a, difference.b].forEach((pieces, side) => {
          for (const i of pieces) marks[side].set(i, [number, side ? 'only-b' : 'only-a', side ? 'only in the second text' : 'only in the first text', ends]);
        });
      });
    } else {
      this.count = new Set(this.pieces[0].map((piece) => piece.passage).filter(isKnown)).size;
      this.pieces.forEach((pieces, side) => pieces.forEach(({ passage }, i) => {
        if (isKnown(passage)) marks[side].set(i, [passage, `p${passage % 6}`, `passage ${passage + 1}`]);
      }));
    }
    const inOrder = [0, 1].map((side) => new Set(this.matched.anchors.map((anchor) => this.pieces[side][anchor[side]].passage)));
    const part = (side, piece, i) => {
      const shown = visible(piece.text, true);
      const marked = marks[side].get(i);
      if (marked) {
        const [number, kind, title, [start, end] = [0, 0]] = marked;
        const stop = piece.text.length - end;
        const [before, inside, after] = [piece.text.slice(0, start), piece.text.slice(start, stop), piece.text.slice(stop)].map((text) => visible(text, true));
        return el('span', {}, before, inside.trim() && el(`mark.${kind}`, { 'data-number': String(number), title }, inside), after);
      }
      const isMoved = this.mode === 'differs' && isKnown(piece.passage) && !inOrder[side].has(piece.passage);
      return el(isMoved ? 'span.moved' : 'span', isMoved ? { title: 'in both texts, in another place' } : {}, shown);
    };
    this.boxes = [0, 1].map((side) => {
      const box = el('div.typed', { dir: 'auto', tabIndex: 0, role: 'region', 'data-side': String(side), 'aria-label': side ? 'The second text' : 'The first text' },
        this.pieces[side].length ? this.pieces[side].map((piece, i) => part(side, piece, i)) : el('span.quiet', {}, 'The text is empty.'));
      for (const name of ['pointerenter', 'wheel', 'touchstart', 'keydown', 'focus']) box.addEventListener(name, () => { this.leading = side; }, { passive: true });
      box.addEventListener('scroll', () => this.follow(side), { passive: true });
      this.resized.observe(box);
      return box;
    });
    const head = (side, text) => el('div.head', {}, idLink(text.id), el('span.end.quiet', {}, text.place ? el('span.place', { title: visible(text.place), dir: 'auto' }, visible(text.place)) : null,
      el('span', {}, `${share(side ? this.found.shared_b : this.found.shared_a)} of it is in the other`)));
    put(this.root, [this.found.a, this.found.b].map((text, side) => el('section.panel', { 'aria-label': side ? 'Second document' : 'First document' }, head(side, text), this.boxes[side])));
    scrolled?.forEach((top, side) => { this.boxes[side].scrollTop = top; });
    this.choose(null);
  }

  marked(side, number) {
    return [...this.boxes[side].querySelectorAll(`mark[data-number="${number}"]`)];
  }

  /** Chooses what is marked with a number; `from`: the mark that was clicked, which stays where it is. */
  choose(number, from = null) {
    for (const old of this.root.querySelectorAll('mark.chosen')) old.classList.remove('chosen');
    this.chosen = number;
    const what = this.mode === 'differs' ? 'difference' : 'passage';
    if (number === null) return void this.onstate(this.count ? plural(this.count, what) : this.mode === 'differs' ? 'no difference' : 'nothing in common');
    this.onstate(`${what} ${count(number + 1)} of ${count(this.count)}`);
    const own = from ? Number(from.closest('.typed').dataset.side) : this.marked(0, number).length ? 0 : 1;
    const here = from ?? this.marked(own, number)[0];
    for (const side of [0, 1]) for (const one of this.marked(side, number)) one.classList.add('chosen');
    if (!here) return;
    const other = 1 - own;
    this.leading = null;
    if (!from) this.boxes[own].scrollTop = here.offsetTop - this.boxes[own].clientHeight / 3;
    const height = here.offsetTop - this.boxes[own].scrollTop;
    // Where nothing of the other text differs, the end of the passage before it.
    const before = this.matched.differences[number]?.before[other];
    const there = this.marked(other, number)[0] ?? (this.mode === 'differs' && before >= 0 ? this.boxes[other].children[before] : null);
    if (there) this.boxes[other].scrollTop = there.offsetTop + (there.matches('mark') ? 0 : there.offsetHeight - 24) - Math.max(8, Math.min(height, this.boxes[other].clientHeight - 40));
  }

  step(by) {
    if (!this.count) return;
    this.choose(this.chosen === null ? (by > 0 ? 0 : this.count - 1) : (this.chosen + by + this.count) % this.count);
  }

  /** The tops and ends of the anchors on both sides, in pixels, ascending. */
  measure() {
    const heights = [[0, 0]];
    for (const anchor of this.matched.anchors) {
      const [a, b] = [0, 1].map((side) => this.boxes[side].children[anchor[side]]);
      if (a && b) heights.push([a.offsetTop, b.offsetTop], [a.offsetTop + a.offsetHeight, b.offsetTop + b.offsetHeight]);
    }
    heights.push(this.boxes.map((box) => box.scrollHeight));
    return heights;
  }

  /** Scrolls the other text to the place that corresponds. */
  follow(side) {
    if (!this.isTogether || this.leading !== side || !this.found) return;
    this.heights ??= this.measure();
    const [box, other] = [this.boxes[side], this.boxes[1 - side]];
    const isAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 2;
    if (box.scrollTop <= 0 || isAtEnd) return void (other.scrollTop = isAtEnd && box.scrollTop > 0 ? other.scrollHeight : 0);
    const y = box.scrollTop + box.clientHeight / 3;
    const after = Math.max(1, this.heights.findIndex((pair) => pair[side] > y));
    const [low, high] = [this.heights[after - 1], this.heights[after]];
    const part = high[side] > low[side] ? (y - low[side]) / (high[side] - low[side]) : 0;
    other.scrollTop = low[1 - side] + part * (high[1 - side] - low[1 - side]) - other.clientHeight / 3;
  }
}
