// The place in a view, kept in the entry of the browser's history: how far it is scrolled, how many rows are loaded.
// So *Back*, *Forward* and a reload return to it. What selects the rows is in the address.

const RESTORE_MS = 5000;

const place = {
  /** What was kept of the entry that is shown; empty for a new entry. */
  kept: {},
  timer: null,
  restoring: null,

  /** A view is about to be shown. */
  take() {
    this.kept = history.state?.place ?? {};
  },

  keep(part) {
    this.kept = { ...this.kept, ...part };
    history.replaceState({ place: this.kept }, '');
  },

  /** Replaces the address without a new entry, for filters. */
  address(hash) {
    if (location.hash !== hash) history.replaceState({ place: this.kept }, '', hash);
  },

  keepScroll() {
    clearTimeout(this.timer);
    this.timer = null;
    if (this.restoring === null && (this.kept.y ?? 0) !== window.scrollY) this.keep({ y: Math.round(window.scrollY) });
  },

  /** Scrolls to where the entry was, as soon as enough rows are there, unless the user scrolls first. */
  restore() {
    cancelAnimationFrame(this.restoring);
    this.restoring = null;
    const y = this.kept.y ?? 0;
    if (!y) return void window.scrollTo(0, 0);
    const end = performance.now() + RESTORE_MS;
    const look = () => {
      const isThere = document.documentElement.scrollHeight >= y + window.innerHeight;
      if (isThere || performance.now() > end) {
        this.restoring = null;
        return void window.scrollTo(0, y);
      }
      this.restoring = requestAnimationFrame(look);
    };
    look();
  },

  giveUp() {
    cancelAnimationFrame(this.restoring);
    this.restoring = null;
  },
};

history.scrollRestoration = 'manual';
window.addEventListener('scroll', () => { place.timer ??= setTimeout(() => place.keepScroll(), 150); }, { passive: true });
for (const name of ['wheel', 'touchstart']) window.addEventListener(name, () => place.giveUp(), { passive: true });
// Before a link changes the entry.
for (const name of ['click', 'keydown']) document.addEventListener(name, () => place.timer && place.keepScroll(), { capture: true });
window.addEventListener('pagehide', () => place.keepScroll());

/** A path with parameters: "pairs?order=time&q=a"; those without a value are left out. */
function asking(path, parameters) {
  const wanted = Object.entries(parameters).filter(([, value]) => value !== '' && value !== null && value !== undefined);
  return `${path}${wanted.length ? `?${wanted.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')}` : ''}`;
}

/** The address of a view. */
const address = (view, parameters) => `#/${asking(view, parameters)}`;
