// Elements, ids and numbers. Data of the run becomes text nodes, never markup.

/** An element: its tag with classes ("a.id.whole"), its attributes, and what is in it. */
function el(tag, attributes = {}, ...content) {
  const [name, ...classes] = tag.split('.');
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(' ');
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== 'list' && key !== 'role') element[key] = value;
    else element.setAttribute(key, value === true ? '' : value);
  }
  put(element, ...content);
  return element;
}

/** Replaces what is in an element. */
function put(element, ...content) {
  element.replaceChildren(...content.flat(3).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

const svg = (name, attributes = {}, ...content) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...content);
  return element;
};

/** Sets a text only if it differs, so that a tick without changes costs no layout. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const UNSEEN = {
  0x061c: 'ALM', 0x200b: 'ZWSP', 0x200e: 'LRM', 0x200f: 'RLM', 0x2028: 'LS', 0x2029: 'PS', 0x202a: 'LRE', 0x202b: 'RLE', 0x202c: 'PDF',
  0x202d: 'LRO', 0x202e: 'RLO', 0x2060: 'WJ', 0x2066: 'LRI', 0x2067: 'RLI', 0x2068: 'FSI', 0x2069: 'PDI', 0xfeff: 'BOM',
};

/** A text in which control characters, and those that change the direction, are visible. `keep`: line ends and tabs are unchanged. */
function visible(text, keep = false) {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\0-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/g, (c) => {
    const code = c.charCodeAt(0);
    if (keep && (code === 9 || code === 10)) return c;
    if (keep && code === 13) return '';
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return '\u2421';
    return `\u2039${UNSEEN[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`}\u203a`;
  });
}

const isKnown = (one) => one !== null && one !== undefined;
const idText = (id) => (id === '' ? '(empty id)' : visible(id));
/** An id for a title. */
const shortId = (id) => (idText(id).length > 40 ? `${idText(id).slice(0, 39)}…` : idText(id));
/** The beginning and the end of an id. Where there is too little room, the middle is left out: ids of one site differ at their ends. */
function idParts(id) {
  const text = idText(id);
  // Only between printable ASCII, since others may be shaped together.
  return text.length > 40 && /^[!-~]{16}$/.test(text.slice(-16)) ? [text.slice(0, -15), text.slice(-15)] : [text, ''];
}
const idContent = (id) => idParts(id).map((part, i) => (part ? el(i ? 'span.id-end' : 'span.id-start', {}, part) : null));
const idSpan = (id, kind = 'span.id') => el(kind, { title: visible(id), dir: 'auto' }, kind.includes('whole') ? idText(id) : idContent(id));
const at = {
  document: (id) => `#/document/${encodeURIComponent(id)}`,
  cluster: (id) => `#/cluster/${encodeURIComponent(id)}`,
  pair: (a, b) => `#/pair?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`,
};
const idLink = (id, to = at.document(id)) => el('a.id', { href: to, title: visible(id), dir: 'auto' }, idContent(id));

const WHOLE = new Intl.NumberFormat('en');
const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });
const count = (n) => (n === null || n === undefined ? '–' : n < 1e6 ? WHOLE.format(n) : SHORT.format(n));
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? '' : 's'}`;
const rate = (n) => (n === null || n === undefined ? '–' : n >= 99.5 ? count(Math.round(n)) : n >= 9.95 ? n.toFixed(0) : n > 0 ? n.toFixed(1) : '0');
const share = (x) => (x === null || x === undefined ? '–' : `${Math.floor(x * 1000) / 10}%`);

function bytes(n) {
  if (n === null || n === undefined) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit += 1) n /= 1024;
  return `${unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[unit]}`;
}

/** A similarity with three digits; "1" only if it is 1. */
const similarity = (s) => (s === null || s === undefined ? '–' : s === 1 ? '1' : Math.min(s, 0.999).toFixed(3));
const about = (s) => (s === 1 ? '1' : Math.min(s, 0.999).toFixed(2));

/** Causes of deltas: in a word, and as a sentence. */
const CAUSES = {
  insert: ['inserted', 'a document was inserted'],
  update: ['edited', 'a document has another text'],
  delete: ['deleted', 'a document was deleted'],
  expire: ['expired', 'a document has expired'],
  're-weighed': ['re-weighed', 'the weights of features have changed'],
  're-grouped': ['copies', 'a document begins or ceases to stand for its copies: their group has passed output.expand_limit, or has another smallest id'],
  'block-died': ['block', 'a block in which they met has got hot or has lost a leader'],
  'block-revived': ['block', 'they meet in a block again, or anew'],
  correction: ['corrected', 'the output is corrected'],
};
const causeWord = (cause) => CAUSES[cause]?.[0] ?? cause ?? '';
const causeChip = (cause) => (cause ? el('span.chip', { className: `chip ${CAUSES[cause] ? cause : ''}`, title: CAUSES[cause]?.[1] ?? '' }, causeWord(cause)) : null);

/** A similarity and how certain it is: "about 0.94 ± 0.01" by sketches, "exactly 0.943" where features were compared. */
function certainty(found, estimate) {
  if (found && !found.look && !found.components) return 'the same sketch';
  if (!found?.standard_error) return `exactly ${similarity(estimate)}`;
  return `about ${about(estimate)}\u00a0±\u00a0${found.standard_error < 0.005 ? found.standard_error.toFixed(3) : found.standard_error.toFixed(2)}`;
}

/** How much of each text the other one has, where these shares differ: "0.980 of a in b, 0.040 of b in a". */
const within = (a, b, inB, inA) => {
  if (!isKnown(inA) || !isKnown(inB)) return '';
  const [most, least] = [[inB, a, b], [inA, b, a]].sort(([x], [y]) => y - x).map(([share, of, other]) => `${similarity(share)} of ${shortId(of)} in ${shortId(other)}`);
  return `${most}, ${least}`;
};

/** What a similarity rests on: "13 of 18 blocks, decided after 128 of 448 components, about 0.94 ± 0.01". */
function evidence(found, estimate) {
  if (!found) return '';
  if (!found.look && !found.components) return 'the same sketch';
  const words = [];
  if (found.of_blocks) words.push(`${found.blocks} of ${plural(found.of_blocks, 'block')}`);
  if (found.components && found.of_components) words.push(`decided after ${count(found.components)} of ${plural(found.of_components, 'component')}`);
  else if (found.components) words.push(`decided after ${plural(found.components, 'component')}`);
  if (isKnown(estimate)) words.push(certainty(found, estimate));
  return words.join(', ');
}

function bar(part, title) {
  const inside = el('i');
  inside.style.width = `${Math.max(0, Math.min(1, part)) * 100}%`;
  return el('span.bar', { title, 'aria-hidden': 'true' }, inside);
}

function panel(title, attributes, ...content) {
  const { end, classes = '', ...others } = attributes;
  const head = title && el('div.head', {}, typeof title === 'string' ? el('h2', {}, title) : title, end && el('div.end', {}, end));
  return el('section', { className: `panel ${classes}`, ...others, ...(typeof title === 'string' && { 'aria-label': title }) }, head, content);
}

const facts = (rows) => el('dl.facts', {}, rows.filter(Boolean).map(([name, ...value]) => [el('dt', {}, name), el('dd', {}, value)]));
