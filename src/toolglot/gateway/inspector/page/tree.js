// Rows as conversations, and a conversation as a tree. Pure: rows in, entries of a list out.

// Whether a row is what a search asks for. Words are looked for everywhere; `model:x`, `client:x`, `upstream:x`, `status:x`
// and `is:failed|running|changed|lossy|clean|replay|streamed` name a part.
export function matcher(search, filters) {
  const tests = [];
  for (const word of search.toLowerCase().split(/\s+/).filter(Boolean)) {
    const [, part, value] = /^(model|client|upstream|status|is):(.+)$/.exec(word) ?? [];
    tests.push(part ? (row) => hasPart(row, part, value) : (row) => textOf(row).includes(word));
  }
  for (const [part, value] of Object.entries(filters)) if (value) tests.push((row) => isExactly(row, part, value));
  return (row) => tests.every((test) => test(row));
}

const CLASSES = {
  failed: (row) => row.state === 'failed' || row.status >= 400,
  running: (row) => row.state === 'running',
  changed: (row) => row.changes > 0,
  lossy: (row) => row.losses > 0,
  clean: (row) => (row.state === 'done' || row.state === 'unsent') && !row.changes && !row.losses,
  replay: (row) => Boolean(row.replay_of),
  streamed: (row) => Boolean(row.stream),
};

export const REPORT_CLASSES = [['lossy', 'with losses'], ['changed', 'with changes'], ['clean', 'nothing changed'], ['failed', 'failed'], ['running', 'running'], ['replay', 'replays']];

function clientOf(row) {
  return row.agent || row.client || '';
}

function hasPart(row, part, value) {
  if (part === 'is') return Object.hasOwn(CLASSES, value) && CLASSES[value](row);
  const texts = { model: [row.model, row.sent_model], client: [row.client, row.agent], upstream: [row.upstream, row.target], status: [row.status] }[part];
  return texts.some((text) => String(text ?? '').toLowerCase().includes(value));
}

function isExactly(row, part, value) {
  if (part === 'class') return CLASSES[value](row);
  if (part === 'client') return clientOf(row) === value;
  if (part === 'model') return row.model === value || row.sent_model === value;
  if (part === 'status') return value === 'none' ? !row.status : String(row.status ?? '')[0] === value;
  return row[part] === value;
}

const lowered = new WeakMap();

function textOf(row) {
  let text = lowered.get(row);
  if (text === undefined) {
    text = [row.id, row.title, row.latest, row.client, row.agent, row.model, row.sent_model, row.upstream, row.target, row.status, row.error, row.stop, row.conversation]
      .filter((part) => part !== null && part !== undefined).join('\n').toLowerCase();
    lowered.set(row, text);
  }
  return text;
}

// The values that a filter can have.
export function choices(rows) {
  const found = { client: new Set(), model: new Set(), upstream: new Set() };
  for (const row of rows) {
    if (clientOf(row)) found.client.add(clientOf(row));
    if (row.model) found.model.add(row.model);
    if (row.upstream) found.upstream.add(row.upstream);
  }
  return Object.fromEntries(Object.entries(found).map(([name, values]) => [name, [...values].sort()]));
}

// The entries of the list: rows (newest first), or conversations with the rows of those that are open below them.
export function entriesOf(rows, grouped, open) {
  if (!grouped) return rows.map((row) => ({ kind: 'row', key: row.id, row, depth: 0 }));
  const groups = new Map();
  for (const row of rows) {
    const id = row.conversation ?? row.id;
    if (groups.has(id)) groups.get(id).push(row);
    else groups.set(id, [row]);
  }
  const entries = [];
  for (const [id, members] of groups) {
    if (members.length === 1) {
      entries.push({ kind: 'row', key: members[0].id, row: members[0], depth: 0 });
      continue;
    }
    entries.push({ kind: 'group', key: `group ${id}`, id, rows: members, sum: sumOf(members), open: open.has(id) });
    if (open.has(id)) entries.push(...treeOf(members));
  }
  return entries;
}

function sumOf(rows) {
  const sum = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cost_usd: null, losses: 0, changes: 0, seconds: 0, running: 0, failed: 0, models: [] };
  const models = new Set();
  for (const row of rows) {
    for (const name of ['input_tokens', 'output_tokens', 'cache_read_tokens', 'losses', 'changes', 'seconds']) sum[name] += row[name] ?? 0;
    if (row.cost_usd !== null && row.cost_usd !== undefined) sum.cost_usd = (sum.cost_usd ?? 0) + row.cost_usd;
    if (row.state === 'running') sum.running += 1;
    if (CLASSES.failed(row)) sum.failed += 1;
    if (row.model) models.add(row.model);
  }
  sum.models = [...models];
  return sum;
}

// The rows of one conversation, oldest first, each below the one that it continues. Only where it branches are rows indented:
// the branch with the newest request goes straight on.
function treeOf(rows) {
  const known = new Map(rows.map((row) => [row.id, row]));
  const children = new Map();
  const roots = [];
  for (const row of [...rows].reverse()) {
    if (row.parent && row.parent !== row.id && known.has(row.parent)) {
      if (children.has(row.parent)) children.get(row.parent).push(row);
      else children.set(row.parent, [row]);
    } else roots.push(row);
  }
  const entries = [];
  const seenRows = new Set();
  const stack = roots.reverse().map((row) => ({ row, depth: 1, branch: roots.length > 1 ? 'root' : '' }));
  while (stack.length) {
    const { row, depth, branch } = stack.pop();
    if (seenRows.has(row.id)) continue;
    seenRows.add(row.id);
    entries.push({ kind: 'row', key: row.id, row, depth, branch });
    const next = children.get(row.id) ?? [];
    const main = next[next.length - 1];
    if (main) stack.push({ row: main, depth, branch: '' });
    for (const side of next.slice(0, -1).reverse()) stack.push({ row: side, depth: Math.min(depth + 1, 12), branch: 'side' });
  }
  for (const row of rows) if (!seenRows.has(row.id)) entries.push({ kind: 'row', key: row.id, row, depth: 1, branch: '' });
  return entries;
}
