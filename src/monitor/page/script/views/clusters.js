// Clusters, by size and by recency.

function clusterList(clusters, most = Math.max(1, ...clusters.map((cluster) => cluster.size))) {
  if (!clusters.length) return el('p.note', {}, 'No clusters: no two documents are similar enough.');
  return el('ul.pick', { 'data-list': true }, clusters.map((cluster) => el('li', {}, clusterRow(cluster, most))));
}
const clusterRow = (cluster, most) => el('a.cluster-line', { href: at.cluster(cluster.cluster) },
  idSpan(cluster.cluster), bar(Math.log2(cluster.size) / Math.log2(Math.max(most, 2))), el('span.size', {}, newChip(cluster.born), ' ', `${plural(cluster.size, 'document')}${cluster.giant ? ', giant' : ''}`),
  el('span.when', {}, when(cluster)));

/** "new in epoch 3, 12:00:07; changed in epoch 5, 12:00:12". */
const when = (cluster) => [
  isKnown(cluster.born) && `since ${epochWords(cluster.born, cluster.born_at)}`,
  isKnown(cluster.changed) && cluster.changed !== cluster.born && `changed in ${epochWords(cluster.changed, cluster.changed_at)}`,
].filter(Boolean).join('; ');

function clusters(_, query) {
  const order = query.get('order') === 'recent' ? 'recent' : 'size';
  const links = [['size', 'By size'], ['recent', 'By recency']].map(([name, word]) => el('a', { href: `#/clusters?order=${name}`, 'aria-current': order === name ? 'true' : null }, word));
  const summary = el('span.quiet', {});
  let most = 1;
  const list = paged(async (after, least) => {
    const answer = await ask(`/clusters?order=${order}&limit=${Math.max(50, Math.min(least, 1000))}${after ? `&after=${encodeURIComponent(after)}` : ''}`);
    if (!answer.ok) return { error: refusal(answer) };
    most = Math.max(most, ...answer.data.clusters.map((cluster) => cluster.size));
    newest ??= answer.data.epoch;
    return { rows: answer.data.clusters.map((cluster) => clusterRow(cluster, most)), next: answer.data.next };
  }, 'No clusters: no two documents are similar enough.');
  let newest = null;
  let changes = 0;
  const fresh = el('button', { type: 'button', hidden: true, onclick: () => { place.keep({ rows: 0, y: 0 }); view.show(); } }, 'Clusters have changed: show');
  return {
    title: 'Clusters',
    root: [el('div.title', {}, el('h1', {}, 'Clusters'), summary, fresh), panel(el('nav', { 'aria-label': 'Order' }, links), { 'aria-label': 'Clusters', end: saveAs('clusters', { order }) }, list)],
    epoch: (frame) => { if (newest !== null && frame.epoch > newest) changes += frame.deltas.length; },
    tick: () => {
      const { status } = run;
      fresh.hidden = !changes;
      if (status && isKnown(status.clusters)) say(summary, `${plural(status.clusters, 'cluster')}${status.giant_clusters ? `, ${plural(status.giant_clusters, 'giant')}` : ''}`);
    },
  };
}
