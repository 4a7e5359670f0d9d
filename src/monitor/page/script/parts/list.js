// The list of deltas: only the visible rows are elements; drawn at most once per frame.

/** Newest first. While it is paused or scrolled away from the top, its rows stay, and newer ones are counted. */
class DeltaList {
  constructor({ tall = false, onstate = () => {} } = {}) {
    this.onstate = onstate;
    this.filter = null;
    this.paused = false;
    /** Numbers of the rows of the stream that pass the filter, ascending. */
    this.numbers = [];
    this.read = stream.first;
    /** Rows up to this one are shown; null: all. */
    this.upto = null;
    this.dirty = false;
    this.drawn = 0;
    /** The newest row that has been drawn. */
    this.newest = -1;
    this.spacer = el('div.spacer');
    this.none = el('div.none', {}, 'No delta yet. They appear here when they are committed.');
    this.box = el('div', { className: `deltas${tall ? ' tall' : ''}`, id: 'delta-list', role: 'group', 'aria-label': 'Deltas, newest first', tabIndex: 0 }, this.spacer, this.none);
    this.pool = [];
    this.box.addEventListener('scroll', () => this.draw(), { passive: true });
    // A row is about to be opened: *Back* returns to the same rows.
    this.box.addEventListener('click', () => place.keep({ list: { upto: this.shownEnd, top: this.box.scrollTop } }), { capture: true });
    this.box.addEventListener('keydown', (event) => this.key(event));
    if (place.kept.list) {
      Object.assign(this, { paused: true, upto: place.kept.list.upto });
      this.top = place.kept.list.top;
    }
    this.listen = () => this.draw();
    stream.listeners.add(this.listen);
    this.resized = new ResizeObserver(() => {
      this.height = parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--row')) || 30;
      this.draw();
    });
    this.resized.observe(this.box);
  }

  close() {
    stream.listeners.delete(this.listen);
    this.resized.disconnect();
  }

  setFilter(filter) {
    this.filter = filter;
    this.numbers = [];
    this.read = stream.first;
    if (this.top === undefined) this.box.scrollTop = 0;
    this.draw();
  }

  setPaused(paused) {
    this.paused = paused;
    if (!paused) {
      this.box.scrollTop = 0;
      place.keep({ list: null });
    }
    this.draw();
  }

  draw() {
    if (this.dirty) return;
    this.dirty = true;
    requestAnimationFrame(() => {
      this.dirty = false;
      if (this.box.isConnected) this.paint();
    });
  }

  /** Takes the rows since the last frame. */
  catchUp() {
    const { numbers } = this;
    let gone = 0;
    while (gone < numbers.length && numbers[gone] < stream.first) gone += 1;
    if (gone) numbers.splice(0, gone);
    for (let number = Math.max(this.read, stream.first); number < stream.end; number += 1) {
      const row = stream.rows[number - stream.first];
      if (row.note || !this.filter || this.filter(row)) numbers.push(number);
    }
    this.read = stream.end;
  }

  paint() {
    const { box, numbers } = this;
    const { height } = this;
    if (!height) return;
    const held = this.paused || box.scrollTop > 4;
    this.catchUp();
    if (!held) this.upto = null;
    else if (this.upto === null) this.upto = this.shownEnd ?? stream.end;
    let end = numbers.length;
    if (this.upto !== null) while (end > 0 && numbers[end - 1] >= this.upto) end -= 1;
    this.shownEnd = this.upto ?? stream.end;
    const waiting = numbers.length - end;
    this.none.hidden = end > 0;
    if (!end && waiting) say(this.none, 'These rows are no longer among the last 10,000 deltas.');
    else if (!end) say(this.none, this.filter ? 'No delta among the last 10,000 passes the filter.' : 'No delta yet. They appear here when they are committed.');
    this.spacer.style.height = `${end * height}px`;
    if (this.top !== undefined && end) {
      box.scrollTop = this.top;
      this.top = undefined;
    }
    const first = Math.max(0, Math.floor(box.scrollTop / height) - 2);
    const rows = Math.min(end - first, Math.ceil(box.clientHeight / height) + 4);
    while (this.pool.length < rows) this.pool.push(this.makeRow());
    this.drawn += 1;
    for (let place = first; place < first + rows; place += 1) {
      // A delta keeps its element while it is visible, so only new rows are filled.
      const nth = end - 1 - place;
      const row = this.pool[nth % this.pool.length];
      row.drawn = this.drawn;
      this.fill(row, numbers[nth], place * height);
    }
    for (const row of this.pool) row.root.hidden = row.drawn !== this.drawn;
    this.total = end;
    this.newest = Math.max(this.newest, end ? numbers[end - 1] : -1);
    this.onstate({ held, waiting, shown: end });
  }

  makeRow() {
    const parts = { sign: el('span.sign'), cause: el('span.chip'), similarity: el('span.similarity'), a: el('span.id.one', { dir: 'auto' }, el('span.id-start', {}, ''), el('span.id-end', {}, '')), b: el('span.id.two', { dir: 'auto' }, el('span.id-start', {}, ''), el('span.id-end', {}, '')), epoch: el('span.epoch'), time: el('span.time'), words: el('span.words') };
    for (const part of Object.values(parts)) if (!part.firstChild) part.append('');
    const { sign, cause, similarity: estimate, a, b, epoch, time, words } = parts;
    const root = el('a.delta', { tabIndex: -1 }, sign, cause, estimate, el('span.ids', {}, a, b), epoch, time, words);
    this.box.append(root);
    return { root, ...parts, number: null, drawn: 0 };
  }

  fill(row, number, top) {
    row.root.style.transform = `translateY(${top}px)`;
    if (row.number === number) return;
    row.number = number;
    const fresh = number > this.newest && this.newest >= 0 && number > stream.end - 30 ? ' fresh' : '';
    const delta = stream.rows[number - stream.first];
    if (delta.note) {
      row.root.className = 'delta note-row';
      row.root.removeAttribute('href');
      row.words.firstChild.data = delta.note;
      return;
    }
    row.root.className = `delta ${delta.diff > 0 ? 'plus' : 'minus'}${fresh}`;
    if (delta.old) row.root.removeAttribute('href');
    else row.root.href = at.pair(delta.a, delta.b);
    row.words.firstChild.data = delta.old ? 'reference' : '';
    row.sign.firstChild.data = delta.diff > 0 ? '+' : '−';
    row.cause.firstChild.data = causeWord(delta.cause);
    row.cause.className = `chip ${CAUSES[delta.cause] ? delta.cause : ''}`;
    row.similarity.firstChild.data = similarity(delta.similarity);
    for (const side of ['a', 'b']) {
      idParts(delta[side]).forEach((part, i) => { row[side].children[i].firstChild.data = part; });
      row[side].title = visible(delta[side]);
    }
    row.epoch.firstChild.data = count(delta.epoch);
    row.epoch.title = `epoch ${count(delta.epoch)}`;
    row.time.firstChild.data = isKnown(delta.at) ? clock(delta.at) : '';
  }

  /** Arrow keys move from row to row; the list is paused. */
  key(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined || !this.total) return;
    event.preventDefault();
    const focused = this.pool.find((row) => row.root === document.activeElement);
    const now = focused ? Math.round(parseFloat(focused.root.style.transform.slice(11)) / this.height) : -1;
    const next = Math.max(0, Math.min(this.total - 1, now + step));
    const top = next * this.height;
    this.paused = true;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    if (top + this.height > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = top + this.height - this.box.clientHeight;
    this.paint();
    this.pool.find((row) => !row.root.hidden && row.root.style.transform === `translateY(${top}px)`)?.root.focus({ preventScroll: true });
  }
}
