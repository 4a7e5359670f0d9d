// Navigation: the address after # selects the view. Keys, theme, start.

const VIEWS = { '': overview, deltas, pairs, clusters, cluster, document: document_, pair, pipeline: pipelineView, similar, views: viewTables, watch: watchList };
const TABS = { '': 'overview', cluster: 'clusters', document: '', pair: 'pairs' };

const view = {
  current: null,
  show() {
    const [path, query = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
    const [name, ...rest] = path.split('/');
    let parts;
    try {
      parts = [decodeURIComponent(rest.join('/'))];
    } catch {
      parts = [rest.join('/')];
    }
    const make = VIEWS[name] ?? overview;
    this.current?.close?.();
    this.current = null;
    place.take();
    const next = make(parts, new URLSearchParams(query));
    put(document.getElementById('main'), next.root);
    this.current = next;
    const tab = TABS[name] ?? (VIEWS[name] ? name : 'overview');
    for (const link of document.querySelectorAll('header nav a')) {
      if (link.dataset.view === tab) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    showFrame();
    next.tick?.();
    place.restore();
  },
};
stream.listeners.add((frame) => frame && view.current?.epoch?.(frame));

/** The box for ids: opens the document of this id, or else the pairs with a part of it. */
async function search(text) {
  const answer = await ask(`/document?id=${encodeURIComponent(text)}`);
  location.hash = answer.status === 404 ? address('pairs', { q: text }) : at.document(text);
}

const THEMES = ['auto', 'light', 'dark'];
const theme = {
  get() {
    try {
      return THEMES.includes(localStorage.getItem('theme')) ? localStorage.getItem('theme') : 'auto';
    } catch {
      return this.kept ?? 'auto';
    }
  },
  set(name) {
    this.kept = name;
    try {
      localStorage.setItem('theme', name);
    } catch {
      // Without storage the theme lasts until the page is closed.
    }
    this.apply();
  },
  apply() {
    const name = this.get();
    if (name === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    say(document.getElementById('theme'), `Theme: ${name}`);
  },
};

document.getElementById('theme').addEventListener('click', () => theme.set(THEMES[(THEMES.indexOf(theme.get()) + 1) % THEMES.length]));
document.getElementById('search').addEventListener('submit', (event) => {
  event.preventDefault();
  const { value } = document.getElementById('search-id');
  if (value) search(value);
});
document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  document.getElementById('main').focus();
});

document.addEventListener('keydown', (event) => {
  const isTyping = event.target.matches('input, textarea, select');
  if (document.querySelector('dialog[open]')) return;
  if (event.key === 'Escape') {
    if (isTyping) event.target.blur();
    if (view.current?.escape?.()) return;
    return;
  }
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === '?') return void showKeys();
  const nth = '12345678'.indexOf(event.key);
  if (nth >= 0) return void document.querySelectorAll('header nav a:not([hidden])')[nth]?.click();
  if (event.key === '/') {
    event.preventDefault();
    document.getElementById('search-id').focus();
    return;
  }
  const list = event.target.closest('[data-list]');
  if (list && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
    const links = [...list.querySelectorAll(':scope > li > a, :scope > li .about > a')];
    const next = links[links.indexOf(event.target.closest('a')) + (event.key === 'ArrowDown' ? 1 : -1)];
    event.preventDefault();
    next?.focus();
    return;
  }
  if (view.current?.key?.(event)) event.preventDefault();
});

window.addEventListener('hashchange', () => {
  view.show();
  document.getElementById('main').focus({ preventScroll: true });
});
theme.apply();
view.show();
tick();
