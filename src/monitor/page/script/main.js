// Which view is shown: by the address behind the #, so that a link to it can be shared. Keys, theme, start.

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
    const next = make(parts, new URLSearchParams(query));
    put(document.getElementById('main'), next.root);
    this.current = next;
    const tab = TABS[name] ?? (VIEWS[name] ? name : 'overview');
    for (const link of document.querySelectorAll('header nav a')) {
      if (link.dataset.view === tab) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    window.scrollTo(0, 0);
    next.tick?.();
  },
};
stream.listeners.add((frame) => frame && view.current?.epoch?.(frame));

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
      // Where nothing may be stored, it holds until the page is closed.
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
  if (value) location.hash = at.document(value);
});
document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  document.getElementById('main').focus();
});

document.addEventListener('keydown', (event) => {
  const isTyping = event.target.matches('input, textarea, select');
  if (event.key === 'Escape') {
    if (isTyping) event.target.blur();
    if (view.current?.escape?.()) return;
    return;
  }
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === '/') {
    event.preventDefault();
    document.getElementById('search-id').focus();
    return;
  }
  const list = event.target.closest('[data-list]');
  if (list && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
    const links = [...list.querySelectorAll(':scope > li > a')];
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
stream.open();
tick();
