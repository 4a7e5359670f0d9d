// One pair at a time; answers are kept in this browser until they are saved.
'use strict';
const pairs = [...document.querySelectorAll('.sides')];
const store = `dupflow-calibrate ${pairs.length} ${pairs[0]?.dataset.yes}`;
const byId = (id) => document.getElementById(id);
let answers = {};
try {
  answers = JSON.parse(localStorage.getItem(store)) ?? {};
} catch {
  // Without storage the answers last until the page is closed.
}
let at = 0;
while (at < pairs.length && String(at) in answers) at += 1;

function show() {
  pairs.forEach((pair, n) => { pair.hidden = n !== at; });
  for (const id of ['yes', 'no', 'skip']) byId(id).disabled = at >= pairs.length;
  byId('undo').disabled = at === 0;
  const judged = Object.keys(answers).length;
  byId('state').textContent = at < pairs.length ? `pair ${at + 1} of ${pairs.length}, ${judged} judged` : `all ${pairs.length} pairs were shown, ${judged} judged: save the answers`;
  window.scrollTo(0, 0);
}

function keep() {
  try {
    localStorage.setItem(store, JSON.stringify(answers));
  } catch {
    // As above.
  }
}

function answer(word) {
  if (at >= pairs.length) return;
  if (word) answers[at] = word;
  else delete answers[at];
  at += 1;
  keep();
  show();
}

function undo() {
  if (at === 0) return;
  at -= 1;
  delete answers[at];
  keep();
  show();
}

function save() {
  const lines = pairs.flatMap((pair, n) => (n in answers ? [`${pair.dataset[answers[n]]}\n`] : []));
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob(lines, { type: 'application/jsonl' }));
  link.download = 'judged.jsonl';
  link.click();
}

const KEYS = { y: () => answer('yes'), n: () => answer('no'), s: () => answer(null), u: undo };
byId('yes').addEventListener('click', KEYS.y);
byId('no').addEventListener('click', KEYS.n);
byId('skip').addEventListener('click', KEYS.s);
byId('undo').addEventListener('click', undo);
byId('save').addEventListener('click', save);
document.addEventListener('keydown', (event) => {
  if (!event.ctrlKey && !event.metaKey && !event.altKey) KEYS[event.key]?.();
});
show();
