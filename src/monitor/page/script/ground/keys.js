// The keys, and the dialog that lists them.

const KEYS = [
  ['Everywhere', [['/', 'to the box for ids'], ['1 to 8', 'to a view, in the order of the navigation'], ['?', 'this list'], ['Escape', 'leave a box, close this list']]],
  ['In a list', [['↓ ↑', 'to the next row, to the one before'], ['Enter', 'open the row']]],
  ['Deltas', [['↓ ↑ Page Home End', 'from row to row; the list stands still while a row is chosen'], ['Space', 'pause, go on'], ['Escape', 'no filter']]],
  ['Pair', [['n', 'to the next difference or passage'], ['p', 'to the one before'], ['m', 'mark what differs, or what is common'], ['s', 'scroll both texts together, or each alone'], ['Escape', 'choose none']]],
  ['Try a text', [['Control Enter', 'find similar documents']]],
];

function keysDialog() {
  const rows = KEYS.map(([where, keys]) => [el('h3', {}, where), facts(keys.map(([key, what]) => [el('kbd', {}, key), what]))]);
  const close = el('button', { type: 'button', onclick: () => dialog.close() }, 'Close');
  const dialog = el('dialog', { id: 'keys', 'aria-label': 'Keys' }, el('div.head', {}, el('h2', {}, 'Keys'), close), rows);
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  return dialog;
}

function showKeys() {
  const dialog = document.getElementById('keys') ?? keysDialog();
  if (!dialog.open) dialog.showModal();
}
document.getElementById('keys-button').addEventListener('click', showKeys);
