// Small plots over time: one line or two of samples, interrupted where a run ended; axes with few round numbers.

/** The points of each uninterrupted stretch: [[x, y], …]. A missing value or another run ends a stretch. */
function stretches(samples, value) {
  const found = [[]];
  for (let i = 0; i < samples.length; i += 1) {
    const y = value(samples, i);
    const isCut = i > 0 && samples[i].run !== samples[i - 1].run;
    if (isCut || y === null || Number.isNaN(y)) found.push([]);
    if (y !== null && !Number.isNaN(y)) found.at(-1).push([samples[i].at, y]);
  }
  return found.filter((points) => points.length > 1);
}

/** The growth of a count per second up to each sample, over about `seconds`. Never negative; null where the run changed. */
const rising = (value, seconds = 3) => (samples, i) => {
  let first = i - 1;
  while (first > 0 && samples[i].at - samples[first].at < seconds && samples[first - 1].run === samples[i].run) first -= 1;
  if (first < 0 || samples[first].run !== samples[i].run || samples[i].at <= samples[first].at) return null;
  const rose = value(samples[i]) - value(samples[first]);
  return rose < 0 ? null : rose / (samples[i].at - samples[first].at);
};
const level = (value) => (samples, i) => value(samples[i]) ?? null;

/** A round number at or above, whose half is round too. */
function roundUp(most) {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 4, 10].map((step) => step * power).find((round) => round >= most);
}

/** Steps of the time axis in seconds. */
const TIME_STEPS = [10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** Two to four round times within a range, with their words. */
function timeTicks(from, until) {
  const step = TIME_STEPS.find((one) => (until - from) / one < 4) ?? 86400;
  // Round in the time zone of the browser.
  const offset = new Date(from * 1000).getTimezoneOffset() * 60;
  const ticks = [];
  for (let time = Math.ceil((from - offset) / step) * step + offset; time <= until; time += step) ticks.push(time);
  const parts = { hour: '2-digit', minute: '2-digit', hour12: false, ...(step < 60 && { second: '2-digit' }) };
  return ticks.map((time) => [time, new Date(time * 1000).toLocaleTimeString('en-GB', parts)]);
}

class Plot {
  /** `lines`: one or two of { name, value, unit }. */
  constructor(title, lines, { round = roundUp, words = count } = {}) {
    Object.assign(this, { title, lines, round, words });
    this.now = lines.map(() => el('b'));
    this.axes = el('div.axes', { 'aria-hidden': 'true' });
    this.drawn = '';
    this.hint = el('div.empty', {}, 'Not enough samples yet');
    this.svg = svg('svg', { preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    this.frame = el('div.frame', {}, this.svg, this.axes, this.hint);
    const keys = lines.map((line, i) => el(i ? 'span.key.two' : 'span.key', {}, `${line.name} `, this.now[i]));
    this.root = el('figure.plot', { role: 'group', 'aria-label': title }, el('figcaption', {}, keys), this.frame);
    this.frame.addEventListener('pointermove', (event) => {
      const box = this.frame.getBoundingClientRect();
      this.pointed = (event.clientX - box.left) / box.width;
      this.draw(this.samples);
    });
    this.frame.addEventListener('pointerleave', () => {
      this.pointed = null;
      this.draw(this.samples);
    });
  }

  draw(samples) {
    this.samples = samples;
    const all = this.lines.map((line) => stretches(samples, line.value));
    const points = all.flat(2);
    this.hint.hidden = points.length > 0;
    this.axes.hidden = !points.length;
    if (!points.length) return void this.svg.replaceChildren();
    const [from, until] = [samples[0].at, samples.at(-1).at];
    const most = this.round(points.reduce((y, point) => Math.max(y, point[1]), 0));
    const width = 600;
    const x = (time) => ((time - from) / (until - from || 1)) * width;
    const y = (value) => 98 - (value / most) * 92;
    const path = (stretch) => stretch.map(([time, value], i) => `${i ? 'L' : 'M'}${x(time).toFixed(1)} ${y(value).toFixed(1)}`).join('');
    const area = (stretch) => `${path(stretch)}L${x(stretch.at(-1)[0]).toFixed(1)} 98L${x(stretch[0][0]).toFixed(1)} 98Z`;
    const times = timeTicks(from, until);
    const shapes = [svg('path', { class: 'rule', d: `M0 98H${width}M0 ${y(most)}H${width}M0 ${y(most / 2)}H${width}${times.map(([time]) => `M${x(time).toFixed(1)} 98V6`).join('')}` })];
    this.drawAxes(most, (value) => y(value), times.map(([time, words]) => [x(time) / width, words]));
    for (const stretch of all[0]) shapes.push(svg('path', { class: 'area', d: area(stretch) }));
    for (let i = 1; i < samples.length; i += 1) if (samples[i].run !== samples[i - 1].run) shapes.push(svg('path', { class: 'cut', d: `M${x(samples[i].at)} 0V98` }));
    all.forEach((stretch, i) => stretch.forEach((one) => shapes.push(svg('path', { class: i ? 'line-two' : 'line-one', d: path(one) }))));
    const isPointed = this.pointed !== null && this.pointed !== undefined;
    const time = isPointed ? from + this.pointed * (until - from) : until;
    if (isPointed) shapes.push(svg('path', { class: 'rule', d: `M${this.pointed * width} 0V98` }));
    this.svg.setAttribute('viewBox', `0 0 ${width} 100`);
    this.svg.replaceChildren(...shapes);
    all.forEach((stretch, i) => {
      const near = stretch.flat().reduce((best, point) => (best && Math.abs(best[0] - time) < Math.abs(point[0] - time) ? best : point), null);
      say(this.now[i], near ? `${this.words(near[1])}${this.lines[i].unit ?? ''}` : '–');
    });
    this.pointedAt.hidden = !isPointed;
    if (isPointed) {
      say(this.pointedAt, clock(time));
      this.pointedAt.style.left = `${Math.min(80, Math.max(0, this.pointed * 100 - 10))}%`;
    }
  }

  /** Values at the top and in the middle; times below. `places`: [share of the width, words]. */
  drawAxes(most, y, places) {
    const key = JSON.stringify([most, places]);
    if (key === this.drawn) return;
    this.drawn = key;
    const at = (kind, words, style) => {
      const label = el(`span.${kind}`, {}, words);
      Object.assign(label.style, style);
      return label;
    };
    const unit = this.lines[0].unit ?? '';
    const values = [most, most / 2, 0].map((value) => at('value-tick', `${this.words(value).replace(/\.0(?!\d)/, '')}${unit}`, { top: `${y(value)}%` }));
    const times = places.filter(([place]) => place > 0.04 && place < 0.96).map(([place, words]) => at('time-tick', words, { left: `${place * 100}%` }));
    this.pointedAt = el('span.pointed', { hidden: true });
    put(this.axes, values, times, this.pointedAt);
  }
}
