// View 1: the requests as they run, as a list or as conversations.
import { html, useEffect, useMemo, useRef, useState } from './vendor/htm-preact.js';
import { download } from './api.js';
import { useKeys } from './keys.js';
import { Words, brief, clock, dollars, duration, messageOf, moment, number, plural, visible } from './text.js';
import { REPORT_CLASSES, choices, entriesOf, matcher } from './tree.js';
import { FixedList } from './windows.js';

const WIDE = matchMedia('(min-width: 960px)');

function useWide() {
  const [wide, setWide] = useState(WIDE.matches);
  useEffect(() => {
    const change = () => setWide(WIDE.matches);
    WIDE.addEventListener('change', change);
    return () => WIDE.removeEventListener('change', change);
  }, []);
  return wide;
}

// The state of the list outlives the view, so that Esc leads back to the same place.
export const kept = { search: '', filters: {}, grouped: true, open: new Set(), cursor: '', showFilters: false };

function useKept(name) {
  const [value, setValue] = useState(kept[name]);
  return [value, (next) => {
    kept[name] = next;
    setValue(next);
  }];
}

export function RequestList({ rows, info, live, paused, waiting, setPaused, purge, openRequest, error }) {
  const [search, setSearch] = useKept('search');
  const [filters, setFilters] = useKept('filters');
  const [grouped, setGrouped] = useKept('grouped');
  const [open, setOpen] = useKept('open');
  const [cursor, setCursor] = useKept('cursor');
  const [showFilters, setShowFilters] = useKept('showFilters');
  const wide = useWide();
  const field = useRef(null);

  const found = useMemo(() => rows.filter(matcher(search, filters)), [rows, search, filters]);
  const entries = useMemo(() => entriesOf(found, grouped, open), [found, grouped, open]);
  const at = entries.findIndex((entry) => entry.key === cursor);

  const toggle = (id) => {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
  };
  const enter = (entry) => {
    setCursor(entry.key);
    if (entry.kind === 'group') toggle(entry.id);
    else openRequest(entry.row.id);
  };
  const move = (step) => {
    if (entries.length) setCursor(entries[Math.max(0, Math.min(entries.length - 1, at < 0 ? 0 : at + step))].key);
  };
  useKeys({
    '/': () => field.current.focus(),
    j: () => move(1),
    ArrowDown: () => move(1),
    k: () => move(-1),
    ArrowUp: () => move(-1),
    Enter: () => at >= 0 && enter(entries[at]),
    ArrowRight: () => at >= 0 && entries[at].kind === 'group' && !entries[at].open && toggle(entries[at].id),
    ArrowLeft: () => at >= 0 && entries[at].kind === 'group' && entries[at].open && toggle(entries[at].id),
    g: () => setGrouped(!grouped),
    p: () => setPaused(!paused),
    Escape: () => setSearch(''),
  });

  const values = useMemo(() => choices(rows), [rows]);
  const chosen = Object.values(filters).filter(Boolean).length;
  const select = (name, label, options) => html`<label class="filter"><span class="hidden">${label}</span>
    <select value=${filters[name] ?? ''} onChange=${(event) => setFilters({ ...filters, [name]: event.target.value })}>
      <option value="">${label}</option>
      ${options.map(([value, text]) => html`<option value=${value}>${text}</option>`)}
    </select></label>`;
  const same = (list) => list.map((value) => [value, value.length > 60 ? `${value.slice(0, 60)}\u2026` : value]);

  return html`<main class="view list-view">
    <h1 class="hidden">Requests</h1>
    <div class="bar">
      <input ref=${field} type="search" class="search" placeholder="Search requests  ( / )" aria-label="Search requests" value=${search}
        onInput=${(event) => setSearch(event.target.value)} />
      <button class="only-narrow" aria-expanded=${showFilters} onClick=${() => setShowFilters(!showFilters)}>Filters${chosen ? ` (${chosen})` : ''}</button>
      <div class=${`filters ${showFilters ? 'shown' : ''}`}>
        ${select('client', 'All clients', same(values.client))}
        ${select('model', 'All models', same(values.model))}
        ${select('upstream', 'All upstreams', same(values.upstream))}
        ${select('status', 'Any status', [['2', '2xx'], ['4', '4xx'], ['5', '5xx'], ['none', 'none yet']])}
        ${select('class', 'Any change', REPORT_CLASSES)}
      </div>
      <div class="segments" role="group" aria-label="How requests are listed">
        <button aria-pressed=${grouped} onClick=${() => setGrouped(true)}>Conversations</button>
        <button aria-pressed=${!grouped} onClick=${() => setGrouped(false)}>Requests</button>
      </div>
      ${info.mode === 'gateway' && html`<button class="pause" aria-pressed=${paused} onClick=${() => setPaused(!paused)}>${paused ? `Resume${waiting ? ` (${number(waiting)} new)` : ''}` : 'Pause'}</button>`}
      <span class="end"><span class="dim count" role="status">${found.length === rows.length ? plural(rows.length, 'request') : `${number(found.length)} of ${plural(rows.length, 'request')}`}</span>
      ${info.mode === 'gateway' && rows.length > 0 && html`<button class="plain" title="Drop everything that is kept" onClick=${purge}>Forget all\u2026</button>`}</span>
    </div>
    ${error && html`<p class="note bad" role="alert">${visibleError(error)}</p>`}
    ${rows.length === 0 && !error ? html`<${Empty} info=${info} />` : entries.length === 0 ? html`<p class="nothing">No request matches. <button onClick=${() => {
      setSearch('');
      setFilters({});
    }}>Clear the search</button></p>` : html`
    <div class="table" role="treegrid" aria-label="Requests" aria-rowcount=${entries.length + 1}>
      <div class="row head" role="row" aria-rowindex="1">${HEADS.map(([name, text, title]) => html`<span class=${`c-${name}`} role="columnheader" title=${title}>${text}</span>`)}</div>
      <${FixedList} class="rows" role="rowgroup" aria-label="Requests, newest first" height=${wide ? 30 : 62} count=${entries.length} cursor=${at}
        item=${(index) => entries[index].kind === 'group'
          ? html`<${GroupRow} key=${entries[index].key} index=${index} entry=${entries[index]} current=${index === at} enter=${enter} wide=${wide} />`
          : html`<${OneRow} key=${entries[index].key} index=${index} entry=${entries[index]} current=${index === at} enter=${enter} wide=${wide} />`} />
    </div>`}
  </main>`;
}

function visibleError(error) {
  return html`<${Words} text=${messageOf(error)} max=${600} />`;
}

const HEADS = [
  ['time', 'Time', 'When the request began'],
  ['title', 'Request', 'The first words of the conversation'],
  ['client', 'Client', 'The program that sent it'],
  ['model', 'Model', 'The model that was asked for, and the one that was used'],
  ['upstream', 'Upstream', 'Who answered'],
  ['status', 'Status', ''],
  ['tokens', 'In', 'Input tokens'],
  ['cached', 'Cached', 'Input tokens that were read from the prompt cache'],
  ['out', 'Out', 'Output tokens'],
  ['cost', 'Cost', ''],
  ['first', 'First', 'Time to the first byte'],
  ['total', 'Total', 'Duration'],
  ['changes', 'Changes', 'Losses and changes on the way'],
];

export function Status({ row }) {
  if (row.state === 'running') return html`<span class="chip running">${row.first_byte ? 'streaming' : 'running'}</span>`;
  if (row.state === 'unsent') return html`<span class="chip" title="This request is shown as it would be sent">not sent</span>`;
  const bad = row.state === 'failed' || row.status >= 400;
  return html`<span class=${`chip ${bad ? 'bad' : 'good'}`} title=${row.error ? visibleTitle(row.error) : undefined}>${row.status ?? 'failed'}</span>`;
}

function visibleTitle(text) {
  return visible(String(text).slice(0, 300));
}

export function Changes({ losses, changes }) {
  if (!losses && !changes) return null;
  return html`${losses > 0 && html`<span class="chip loss" title=${plural(losses, 'loss', 'losses')} aria-label=${plural(losses, 'loss', 'losses')}>${number(losses)}\u2009lost</span>`}${
    changes > 0 && html`<span class="chip change" title=${plural(changes, 'change')} aria-label=${plural(changes, 'change')}>${number(changes)}\u2009changed</span>`}`;
}

// The program in short; its version is in the title.
function Client({ row }) {
  const whole = row.agent || row.client || '';
  return html`<span title=${visible(whole).slice(0, 200)}><${Words} text=${whole.split('/')[0] || whole} max=${40} /></span>`;
}

export function Model({ row }) {
  const asked = String(row.model ?? '');
  const own = row.upstream && asked.startsWith(`${row.upstream}/`) ? asked.slice(row.upstream.length + 1) : asked;
  const other = row.sent_model && row.sent_model !== own && !own.endsWith(`/${row.sent_model}`);
  return html`<${Words} text=${own} max=${80} />${other && html`<span class="arrow" aria-label="used as"> \u2192 </span><${Words} text=${row.sent_model} max=${80} />`}`;
}

function OneRow({ entry, index, current, enter, wide }) {
  const { row, depth, branch } = entry;
  return html`<div class=${`row ${current ? 'current' : ''} ${row.state}`} role="row" aria-level=${depth + 1} aria-rowindex=${index + 2} aria-selected=${current} style=${{ height: wide ? '30px' : '62px' }} data-id=${row.id}
      onClick=${(event) => !event.target.closest('a') && enter(entry)}>
    <span class="c-time" role="gridcell" title=${moment(row.time)}>${clock(row.time)}</span>
    <span class="c-title" role="gridcell" style=${{ paddingInlineStart: `${depth * 16}px` }}>
      <span class="titles">${branch === 'side' && html`<span class="branch" title="It branches here">\u2514</span>`}
      <a href=${`#/r/${encodeURIComponent(row.id)}`} onClick=${() => {
        kept.cursor = entry.key;
      }}><${Words} text=${depth ? row.latest || row.title || row.path || row.id : row.title || row.path || row.id} max=${140} /></a>
      ${row.turns > 1 && html`<span class="mini">${plural(row.turns, 'turn')}</span>`}
      ${row.replay_of && html`<span class="chip">replay</span>`}${row.stream && html`<span class="mini" title="Streamed">stream</span>`}${row.simulated && html`<span class="mini">simulated</span>`}</span>
      ${!depth && row.latest && row.latest !== row.title && html`<span class="latest dim"><${Words} text=${row.latest} max=${100} /></span>`}
    </span>
    <span class="c-client" role="gridcell"><${Client} row=${row} /></span>
    <span class="c-model" role="gridcell"><${Model} row=${row} /></span>
    <span class="c-upstream" role="gridcell"><${Words} text=${row.upstream ?? ''} max=${40} /></span>
    <span class="c-status" role="gridcell"><${Status} row=${row} /></span>
    <span class="c-tokens n" role="gridcell" title=${number(row.input_tokens)}>${brief(row.input_tokens)}</span>
    <span class="c-cached n" role="gridcell" title=${number(row.cache_read_tokens)}>${row.cache_read_tokens ? brief(row.cache_read_tokens) : ''}</span>
    <span class="c-out n" role="gridcell" title=${number(row.output_tokens)}>${brief(row.output_tokens)}</span>
    <span class="c-cost n" role="gridcell">${dollars(row.cost_usd)}</span>
    <span class="c-first n" role="gridcell">${duration(row.first_byte)}</span>
    <span class="c-total n" role="gridcell">${row.state === 'running' ? '' : duration(row.seconds)}</span>
    <span class="c-changes" role="gridcell"><${Changes} losses=${row.losses} changes=${row.changes} /></span>
  </div>`;
}

function GroupRow({ entry, index, current, enter, wide }) {
  const { rows, sum, open } = entry;
  const newest = rows[0];
  const first = rows[rows.length - 1];
  return html`<div class=${`row group ${current ? 'current' : ''}`} role="row" aria-level="1" aria-rowindex=${index + 2} aria-selected=${current} aria-expanded=${open} style=${{ height: wide ? '30px' : '62px' }}
      data-conversation=${entry.id} onClick=${() => enter(entry)}>
    <span class="c-time" role="gridcell" title=${moment(newest.time)}>${clock(newest.time)}</span>
    <span class="c-title" role="gridcell"><span class="titles"><span class="twist" aria-hidden="true">${open ? '\u25be' : '\u25b8'}</span><strong><${Words} text=${first.title || first.path || entry.id} max=${140} /></strong><span class="mini">${plural(rows.length, 'request')}</span></span>${newest.latest && newest.latest !== first.title && html`<span class="latest dim"><${Words} text=${newest.latest} max=${100} /></span>`}</span>
    <span class="c-client" role="gridcell"><${Client} row=${newest} /></span>
    <span class="c-model" role="gridcell">${sum.models.length > 1 ? html`<span title=${visible(sum.models.slice(0, 20).join(', ').slice(0, 500))}>${plural(sum.models.length, 'model')}</span>` : html`<${Model} row=${newest} />`}</span>
    <span class="c-upstream" role="gridcell"><${Words} text=${newest.upstream ?? ''} max=${40} /></span>
    <span class="c-status" role="gridcell">${sum.running ? html`<span class="chip running">${number(sum.running)} running</span>` : sum.failed ? html`<span class="chip bad">${number(sum.failed)} failed</span>` : html`<${Status} row=${newest} />`}</span>
    <span class="c-tokens n" role="gridcell">${brief(sum.input_tokens)}</span>
    <span class="c-cached n" role="gridcell">${sum.cache_read_tokens ? brief(sum.cache_read_tokens) : ''}</span>
    <span class="c-out n" role="gridcell">${brief(sum.output_tokens)}</span>
    <span class="c-cost n" role="gridcell">${dollars(sum.cost_usd)}</span>
    <span class="c-first n" role="gridcell"></span>
    <span class="c-total n" role="gridcell">${duration(sum.seconds)}</span>
    <span class="c-changes" role="gridcell"><${Changes} losses=${sum.losses} changes=${sum.changes} /></span>
  </div>`;
}

function Empty({ info }) {
  if (info.mode !== 'gateway') return html`<p class="nothing">There is no request in this file.</p>`;
  if (info.keep === 'off') {
    return html`<section class="empty"><h2>Nothing is kept</h2><p>The configuration says so. To see requests here, put this into it:</p><pre class="code">[inspector]\nkeep = "bodies"</pre></section>`;
  }
  const address = location.origin;
  const key = info.needs_key ? 'YOUR_KEY' : 'any';
  const ways = [
    ['Claude Code', `export ANTHROPIC_BASE_URL=${address}\nexport ANTHROPIC_API_KEY=${key}\nclaude`],
    ['Codex', `export OPENAI_API_KEY=${key}\ncodex -c model_provider=toolglot \\\n  -c 'model_providers.toolglot={name="toolglot",base_url="${address}/v1",env_key="OPENAI_API_KEY",wire_api="responses"}'`],
    ['Gemini CLI', `export GOOGLE_GEMINI_BASE_URL=${address}\nexport GEMINI_API_KEY=${key}\ngemini`],
    ['OpenAI SDK', `export OPENAI_BASE_URL=${address}/v1\nexport OPENAI_API_KEY=${key}\npython your_program.py`],
    ['Anthropic SDK', `export ANTHROPIC_BASE_URL=${address}\nexport ANTHROPIC_API_KEY=${key}\npython your_program.py`],
  ];
  return html`<section class="empty">
    <h2>No requests yet</h2>
    <p>Start a client in another terminal. Its requests appear here at once.${info.simulated ? ' Simulated models answer: no key and no network are needed.' : ''}</p>
    ${ways.map(([name, text]) => html`<section><h3>${name}<${CopyButton} text=${text} /></h3><pre class="code">${text}</pre></section>`)}
  </section>`;
}

// A button that copies a text, or what a function promises.
export function CopyButton({ text, label = 'Copy', class: name = 'plain' }) {
  const [state, setState] = useState('');
  const copy = async () => {
    try {
      const value = typeof text === 'function' ? await text() : text;
      await copyText(value);
      setState('Copied');
    } catch (error) {
      setState(messageOf(error).slice(0, 100));
    }
    setTimeout(() => setState(''), 1500);
  };
  return html`<button class=${name} onClick=${copy}><span role="status">${state || label}</span></button>`;
}

async function copyText(text) {
  if (navigator.clipboard && isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'hidden';
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

// A button that saves a file, and says what went wrong where it does.
export function DownloadButton({ path, name, label }) {
  const [failed, setFailed] = useState('');
  const save = async () => {
    try {
      setFailed('');
      await download(path, name);
    } catch (error) {
      setFailed(messageOf(error));
    }
  };
  return html`<button onClick=${save} title=${failed || undefined}>${failed ? 'Failed: ' : ''}${label}</button>`;
}
