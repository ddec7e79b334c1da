// One request: what it was, and the views of it.
import { html, useEffect, useRef, useState } from './vendor/htm-preact.js';
import { getJson, getText, requestPath } from './api.js';
import { ConversationView } from './conversation.js';
import { DiffView } from './diff.js';
import { BodyView } from './json.js';
import { useKeys } from './keys.js';
import { Changes, CopyButton, DownloadButton, Model, Status } from './list.js';
import { ReplayView } from './replay.js';
import { TargetsView } from './targets.js';
import { Words, bytes, dollars, duration, messageOf, moment, number } from './text.js';
import { TimelineView } from './timeline.js';

const TABS = [
  ['', 'Conversation'], ['diff', 'Diff'], ['timeline', 'Timeline'], ['targets', 'Targets'], ['replay', 'Replay'], ['raw', 'Raw'],
];

// What a path answers: {value, error}. `version` asks again.
export function useCall(path, version = 0, read = getJson) {
  const [answer, setAnswer] = useState({ path: '', value: null, error: null });
  useEffect(() => {
    if (!path) return undefined;
    const control = new AbortController();
    const take = (next) => !control.signal.aborted && setAnswer({ path, ...next });
    (async () => read(path, control.signal))().then(
      (value) => take({ value, error: null }),
      (error) => error.name !== 'AbortError' && take({ value: null, error }),
    );
    return () => control.abort();
  }, [path, version]);
  return answer.path === path ? answer : { value: null, error: null };
}

const POLL_MS = 800;

// What a path answers, again and again; an empty path is not asked for. What takes long is asked for less often.
export function usePolled(path) {
  const [answer, setAnswer] = useState({ path: '', value: null });
  useEffect(() => {
    if (!path) return undefined;
    const control = new AbortController();
    (async () => {
      while (!control.signal.aborted) {
        const began = performance.now();
        if (!document.hidden) {
          try {
            const value = await getJson(path, control.signal);
            if (!control.signal.aborted) setAnswer({ path, value });
          } catch {
            return; // it is over, or was forgotten: the list says so
          }
        }
        await new Promise((resume) => setTimeout(resume, Math.max(POLL_MS, 4 * (performance.now() - began))));
      }
    })();
    return () => control.abort();
  }, [path]);
  return answer.path === path ? answer.value : null;
}

export function Loading({ error, what }) {
  return error
    ? html`<p class="note bad" role="alert"><${Words} text=${messageOf(error)} max=${800} /></p>`
    : html`<p class="nothing" role="status">Reading ${what}\u2026</p>`;
}

export function RequestView({ id, tab, part, rows, info, openRequest, back, go }) {
  const live = rows.find((row) => row.id === id);
  const state = live?.state ?? 'done';
  const { value: detail, error } = useCall(requestPath(id), state);
  const row = live ?? detail?.row;
  const at = rows.findIndex((each) => each.id === id);
  const tabs = TABS.filter(([name]) => (name !== 'replay' || info.mode === 'gateway') && (name !== 'timeline' || row?.state !== 'unsent'));
  const base = `#/r/${encodeURIComponent(id)}`;
  const move = (step) => {
    const next = rows[at + step];
    if (next) openRequest(next.id, tab);
  };
  useKeys({
    Escape: () => (part ? go(`${base}/${tab}`) : back()),
    j: () => move(1),
    k: () => move(-1),
    ...Object.fromEntries(tabs.map(([name], index) => [String(index + 1), () => go(name ? `${base}/${name}` : base)])),
  });
  if (!row) return html`<main class="view"><div class="bar"><a class="back" href="#/">\u2190 Requests</a></div><${Loading} error=${error} what="the request" /></main>`;
  return html`<main class="view request-view">
    <div class="bar title-bar">
      <a class="back" href="#/" aria-label="Back to the requests">\u2190<span class="only-wide"> Requests</span></a>
      <h1><${Words} text=${row.title || row.path || row.id} max=${160} /></h1>
      <${Status} row=${row} /><${Changes} losses=${row.losses} changes=${row.changes} />
      ${row.replay_of && html`<a class="chip" href=${`#/r/${encodeURIComponent(row.replay_of)}`}>replay of another</a>`}
      <span class="steps"><button aria-label="Newer request" disabled=${at <= 0} onClick=${() => move(-1)}>\u2191</button><button aria-label="Older request" disabled=${at < 0 || at >= rows.length - 1} onClick=${() => move(1)}>\u2193</button></span>
    </div>
    <${Facts} row=${row} />
    ${row.error && html`<p class="note bad"><${Words} text=${row.error} max=${1000} /></p>`}
    <div class="bar tab-bar">
      <nav class="tabs" aria-label="Views of the request">${tabs.map(([name, text], index) => html`<a href=${name ? `${base}/${name}` : base} aria-current=${tab === name ? 'page' : undefined} title=${`Key ${index + 1}`}>${text}</a>`)}</nav>
      <${Exports} id=${id} row=${row} info=${info} />
    </div>
    ${!detail ? html`<${Loading} error=${error} what="the request" />` : html`<${Tab} key=${`${id} ${tab}`} tab=${tab} part=${part} id=${id} row=${row} detail=${detail} info=${info} rows=${rows} go=${go} />`}
  </main>`;
}

function Tab({ tab, ...rest }) {
  if (tab === 'diff') return html`<${DiffView} ...${rest} />`;
  if (tab === 'timeline') return html`<${TimelineView} ...${rest} />`;
  if (tab === 'targets') return html`<${TargetsView} ...${rest} />`;
  if (tab === 'replay') return html`<${ReplayView} ...${rest} />`;
  if (tab === 'raw') return html`<${RawView} ...${rest} />`;
  return html`<${ConversationView} ...${rest} />`;
}

function Fact({ name, minor, children }) {
  return html`<div class=${minor ? 'minor' : ''}><dt>${name}</dt><dd>${children}</dd></div>`;
}

function Facts({ row }) {
  return html`<dl class="facts">
    <${Fact} name="Model"><${Model} row=${row} /><//>
    ${row.upstream && html`<${Fact} name="Upstream" minor><${Words} text=${row.upstream} max=${60} />${row.target && row.target !== row.upstream && html` <span class="dim">as <${Words} text=${row.target} max=${60} /></span>`}<//>`}
    <${Fact} name="Client" minor><${Words} text=${[row.agent, row.protocol].filter(Boolean).join(' \u00b7 ') || row.client} max=${80} /><//>
    <${Fact} name="Tokens">${row.input_tokens === null || row.input_tokens === undefined ? html`<span class="dim">not known</span>` : html`${number(row.input_tokens)} in${row.cache_read_tokens ? ` (${number(row.cache_read_tokens)} cached)` : ''} \u00b7 ${number(row.output_tokens)} out`}<//>
    ${row.cost_usd !== null && row.cost_usd !== undefined && html`<${Fact} name="Cost">${dollars(row.cost_usd)}<//>`}
    ${row.state !== 'unsent' && html`<${Fact} name="Time">${row.state === 'running' ? 'running' : duration(row.seconds)}${row.first_byte ? html` <span class="dim">first byte ${duration(row.first_byte)}</span>` : ''}<//>`}
    ${row.stop && html`<${Fact} name="Stop" minor><${Words} text=${row.stop} max=${40} /><//>`}
    <${Fact} name="Began" minor>${moment(row.time)}<//>
    <${Fact} name="Id" minor><code><${Words} text=${row.id} max=${60} /></code><//>
  </dl>`;
}

const CODES = [['curl', 'curl'], ['python_client', 'Python, SDK of the client'], ['python_provider', 'Python, SDK of the provider']];

function Exports({ id, row, info }) {
  const menu = useRef(null);
  const path = requestPath(id);
  const conversation = row.conversation && `/conversations/${encodeURIComponent(row.conversation)}`;
  const code = async (as) => (await getJson(`${path}/code?as=${as}`)).text;
  useEffect(() => {
    const shut = (event) => {
      if (menu.current?.open && !menu.current.contains(event.target)) menu.current.open = false;
    };
    addEventListener('pointerdown', shut);
    return () => removeEventListener('pointerdown', shut);
  }, []);
  return html`<details class="menu" ref=${menu} onKeyDown=${(event) => {
    if (event.key !== 'Escape' || !menu.current.open) return;
    menu.current.open = false;
    menu.current.firstChild.focus();
    event.stopPropagation();
    event.preventDefault();
  }}><summary>Copy and export</summary><div class="menu-body">
    <h2>Copy as</h2>
    ${CODES.map(([as, text]) => html`<${CopyButton} class="" text=${() => code(as)} label=${text} />`)}
    ${info.mode !== 'export' && html`
    <h2>Export the request</h2>
    <${DownloadButton} path=${`${path}/export?form=html`} name=${`${id}.html`} label="HTML, one file" />
    <${DownloadButton} path=${`${path}/export?form=jsonl`} name=${`${id}.jsonl`} label="JSONL, a capture" />
    ${conversation && html`<h2>Export the conversation</h2>
    <${DownloadButton} path=${`${conversation}/export?form=html`} name=${`${row.conversation}.html`} label="HTML, one file" />
    <${DownloadButton} path=${`${conversation}/export?form=jsonl`} name=${`${row.conversation}.jsonl`} label="JSONL, captures" />`}`}
  </div></details>`;
}

// What a body is called where the request was only read from a file.
const UNSENT = { rendered: 'what the provider would be sent' };
const BODIES = [
  ['request', 'Request of the client', 'what the client sent'],
  ['rendered', 'Request to the provider', 'what the provider was sent'],
  ['reply', 'Reply of the provider', 'what the provider sent'],
  ['response', 'Reply to the client', 'what the client got'],
];

function RawView({ id, row, detail, part, go }) {
  const sent = row.state !== 'unsent';
  const shown = BODIES.filter(([each]) => sent || each === 'request' || each === 'rendered');
  const name = shown.some(([each]) => each === part) ? part : 'request';
  const here = detail[name];
  const known = detail.sizes ? detail.sizes[name] !== null && detail.sizes[name] !== undefined : here !== null && here !== undefined;
  const asked = useCall(known && (here === null || here === undefined) ? `${requestPath(id)}/body/${name}` : '', 0, getText);
  const text = here ?? asked.value;
  return html`<div class="raw">
    <div class="bar"><div class="segments" role="group" aria-label="Which body">${shown.map(([each, label, title]) => html`<button aria-pressed=${each === name} title=${(!sent && UNSENT[each]) || title} onClick=${() => go(`#/r/${encodeURIComponent(id)}/raw/${each}`)}>${label}</button>`)}</div>
      ${typeof text === 'string' && html`<span class="dim">${bytes(text.length)}</span><${CopyButton} text=${text} />`}
      ${name === 'rendered' && detail.unchanged && html`<span class="chip good">byte for byte as the client sent it</span>`}
      ${detail.cut && (name === 'reply' || name === 'response') && html`<span class="chip change">the end is not kept</span>`}</div>
    ${!known ? html`<${NoBodies} detail=${detail} />` : typeof text === 'string' ? html`<${BodyView} key=${name} text=${text} label=${name} />` : html`<${Loading} error=${asked.error} what="the body" />`}
  </div>`;
}

export function NoBodies({ detail }) {
  return html`<p class="nothing">${detail.bodies ? 'There is none.' : html`The bodies of this request are not kept. Put <code>keep = "bodies"</code> into <code>[inspector]</code> of the configuration.`}</p>`;
}
