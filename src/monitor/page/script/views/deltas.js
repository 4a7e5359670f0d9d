// The last deltas, with a pause and filters.

function deltas(_, query) {
  const words = el('input', { type: 'search', placeholder: 'Part of an id', 'aria-label': 'Part of an id', autocomplete: 'off', spellcheck: false, value: query.get('q') ?? '' });
  const cause = el('select', { 'aria-label': 'Cause' }, el('option', { value: '' }, 'any cause'),
    Object.entries(CAUSES).map(([name, [word]]) => el('option', { value: name }, name.startsWith('block') ? `${word}: ${name.slice(6)}` : word)));
  const sign = el('select', { 'aria-label': 'Sign' }, el('option', { value: '' }, '+ and −'), el('option', { value: '1' }, '+ only'), el('option', { value: '-1' }, '− only'));
  cause.value = CAUSES[query.get('cause')] ? query.get('cause') : '';
  sign.value = ['1', '-1'].includes(query.get('sign')) ? query.get('sign') : '';
  const pause = el('button', { type: 'button', 'aria-pressed': 'false' }, 'Pause');
  const state = el('span.quiet', {});
  const causes = el('span.quiet.small', {});
  const onstate = ({ held, waiting, shown }) => {
    pause.setAttribute('aria-pressed', String(held));
    say(pause, held ? 'Go on' : 'Pause');
    const skipped = stream.skipped.deltas ? `, ${count(stream.skipped.deltas)} skipped` : '';
    const came = `${count(stream.fresh)} since this page was opened${skipped}`;
    say(state, held && waiting ? `${plural(waiting, 'new one')} above · ${came}` : `${count(shown)} shown · ${came}`);
  };
  const list = new DeltaList({ tall: true, onstate });
  const filter = (isFirst) => {
    if (isFirst !== true) place.address(address('deltas', { q: words.value, cause: cause.value, sign: sign.value }));
    const wanted = words.value;
    const isNone = !wanted && !cause.value && !sign.value;
    if (isFirst === true && isNone) return;
    list.setFilter(isNone ? null : (delta) =>
      (!wanted || delta.a.includes(wanted) || delta.b.includes(wanted)) && (!cause.value || delta.cause === cause.value) && (!sign.value || delta.diff === Number(sign.value)));
  };
  filter(true);
  words.addEventListener('input', filter);
  cause.addEventListener('change', filter);
  sign.addEventListener('change', filter);
  pause.addEventListener('click', () => list.setPaused(pause.getAttribute('aria-pressed') !== 'true'));
  const tick = () => {
    const found = Object.entries(run.status?.causes ?? {}).filter(([, n]) => n > 0);
    say(causes, found.length ? `Of this run: ${found.map(([name, n]) => `${count(n)} ${name.startsWith('block') ? name.replace('-', ' ') : causeWord(name)}`).join(', ')}` : '');
  };
  return {
    title: 'Deltas',
    root: [
      el('div.title', {}, el('h1', {}, 'Deltas'), causes, saveAs('deltas')),
      panel(el('span.filters', {}, words, cause, sign, pause), { 'aria-label': 'Deltas', end: state }, list.box),
    ],
    tick,
    close: () => list.close(),
    key: (event) => {
      if (event.key !== ' ' || event.target.matches('button')) return false;
      pause.click();
      return true;
    },
    escape: () => {
      if (!words.value && !cause.value && !sign.value) return false;
      words.value = cause.value = sign.value = '';
      filter();
      return true;
    },
  };
}
