// A box for a text: the documents with which a new document of this text would form pairs.

function similar() {
  const text = el('textarea', { id: 'similar-text', 'aria-label': 'A text', placeholder: 'Paste a text. Nothing of it is kept.', spellcheck: false, dir: 'auto' });
  const top = el('input', { type: 'number', min: 1, max: 1000, value: 20, 'aria-label': 'How many documents at most' });
  top.style.width = '80px';
  const button = el('button.main', { type: 'submit', id: 'similar-ask' }, 'Find similar documents');
  const state = el('p.quiet', { id: 'similar-state' }, 'Ctrl+Enter');
  const found = el('div', { id: 'similar-found' });
  const send = async () => {
    if (button.disabled) return;
    button.disabled = true;
    say(state, 'Asking …');
    const began = performance.now();
    const answer = await ask('/similar', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ text: text.value, top: Math.max(1, Number(top.value) || 20) }) });
    const took = performance.now() - began;
    button.disabled = false;
    if (!answer.ok) {
      const busy = answer.status === 503 ? ` Many are being answered: try again${answer.after ? ` in ${answer.after} s` : ''}.` : '';
      say(state, refusal(answer) + busy);
      return void put(found);
    }
    const { documents, more, empty, epoch } = answer.data;
    const words = `(${asOf(epoch)}, round trip ${took.toFixed(took < 10 ? 1 : 0)} ms)`;
    if (empty) say(state, 'The text has no token, so there is nothing to compare.');
    else say(state, documents.length ? `${plural(documents.length + (more ?? 0), 'document')} ${documents.length + (more ?? 0) === 1 ? 'is' : 'are'} similar ${words}.` : `No similar document ${words}.`);
    put(found, documents.length ? panel('Most similar first', {}, el('ul.pick', { 'data-list': true }, documents.map((one) => el('li', {}, el('a.answer-line', one.old ? {} : { href: at.document(one.id) },
      el('b', {}, similarity(one.similarity)), bar(one.similarity), idSpan(one.id), el('span.why', {}, [evidence(one.evidence, one.similarity), within('the text', one.id, one.in_id, one.of_id), one.old ? 'of the reference' : null].filter(Boolean).join('; '), one.cluster ? `; of cluster ${idText(one.cluster)}` : ''))))),
    more ? el('p.note', {}, `${plural(more, 'more document')} are not listed.`) : null) : null);
  };
  text.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send();
  });
  return {
    title: 'Try a text',
    root: [
      el('div.title', {}, el('h1', {}, 'Try a text'), el('span.quiet', {}, 'It is compared with all documents alive, and leaves no trace.')),
      panel(null, { 'aria-label': 'A text to compare' }, el('form.body', { onsubmit: (event) => { event.preventDefault(); send(); } }, text, el('div.form', {}, button, el('label', {}, 'at most ', top), state))),
      found,
    ],
  };
}
