// View 2: what the client sent, the canonical conversation, and what the provider was sent, turn by turn; then the answer.
import { html, useEffect, useMemo, useRef, useState } from './vendor/htm-preact.js';
import { getBlob, getJson, getText, requestPath } from './api.js';
import { PartOfBody, Peek } from './json.js';
import { Changes } from './list.js';
import { NoBodies, useCall, usePolled } from './request.js';
import { LongText, Words, bytes, messageOf, number, plural } from './text.js';
import { MeasuredList } from './windows.js';

const COLUMNS = [['client', 'Client'], ['canonical', 'Canonical'], ['provider', 'Provider']];
const PIECE = 100; // turns that are read at a time
const PASSING_MS = 60;
const LIMIT = 20000;
const MAX_REPLY = 4000000;

export function ConversationView({ id, row, detail }) {
  const [column, setColumn] = useState('canonical');
  const [peeked, setPeeked] = useState(null);
  const box = useRef(null);
  const { total, turnAt, load } = useTurns(id, detail);
  const goto = useRef(null);
  goto.current ??= total > 8 ? { index: total, at: 0 } : { index: 0, at: 0 };
  const [target, setTarget] = useState(goto.current);

  const reports = detail.reports ?? [];
  const marked = useMemo(() => [...new Set(reports.filter((report) => report.side === 'request' && report.turn !== null && report.turn !== undefined).map((report) => report.turn))].sort((a, b) => a - b), [reports]);
  useLinks(box);
  if (!detail.canonical && !detail.reply_canonical) {
    return html`<div class="plain-page"><${NoBodies} detail=${detail} />${reports.length > 0 && html`<h2>What was changed</h2>${reports.map((report) => html`<${Report} id=${id} report=${report} />`)}`}</div>`;
  }
  const jump = (step) => {
    const current = target.index - 1;
    const next = step > 0 ? marked.find((turn) => turn > current) ?? marked[0] : marked.findLast((turn) => turn < current) ?? marked[marked.length - 1];
    setTarget({ index: next + 1 });
  };
  const sent = row.state !== 'unsent';
  const item = (index) => {
    if (index === 0) return html`<${FirstRow} id=${id} detail=${detail} peek=${setPeeked} />`;
    if (index === total + 1) return html`<${Answer} id=${id} row=${row} detail=${detail} peek=${setPeeked} />`;
    const turn = turnAt(index - 1);
    return turn ? html`<${Turn} id=${id} detail=${detail} turn=${turn} peek=${setPeeked} />` : html`<article class="nothing turn-loading">Turn ${number(index)}\u2026</article>`;
  };
  return html`<div class=${`columns show-${column}`} ref=${box}>
    <div class="bar columns-bar">
      <div class="segments only-narrow" role="group" aria-label="Which column">${COLUMNS.map(([name, text]) => html`<button aria-pressed=${column === name} onClick=${() => setColumn(name)}>${text}</button>`)}</div>
      <span class="dim">${plural(total, 'turn')}${detail.unchanged ? ` \u00b7 ${sent ? 'sent' : 'would be sent'} byte for byte` : ''}</span>
      ${total > 1 && html`<span class="segments" role="group" aria-label="Go to"><button onClick=${() => setTarget({ index: 0 })}>First</button><button onClick=${() => setTarget({ index: sent ? total + 1 : total })}>${sent ? 'Answer' : 'Last'}</button></span>`}
      ${marked.length > 0 && html`<span class="segments" role="group" aria-label="Changed turns"><button aria-label="Previous change" onClick=${() => jump(-1)}>\u2191</button><button onClick=${() => jump(1)}>Next change \u2193</button></span><span class="dim">${plural(marked.length, 'turn')} changed</span>`}
    </div>
    <div class="column-heads" aria-hidden="true"><span class="cell-client">Client <span class="dim">sent ${row.protocol ?? ''}</span></span><span class="cell-canonical">Canonical</span><span class="cell-provider">Provider <span class="dim">${row.target ? `${sent ? 'was' : 'would be'} sent ${row.target}` : ''}</span></span></div>
    <${MeasuredList} class="turns" role="feed" aria-label="The conversation in three columns" count=${sent ? total + 2 : total + 1} estimate=${180} item=${item} goto=${target} onRange=${load} />
    ${peeked !== null && html`<${Peek} text=${peeked} close=${() => setPeeked(null)} />`}
  </div>`;
}

// The turns of a request: the first answer has the last ones, the others are read when they come into view.
function useTurns(id, detail) {
  const [, redraw] = useState(0);
  const store = useRef(null);
  if (store.current?.detail !== detail) {
    const turns = new Map((detail.canonical?.turns ?? []).map((turn) => [turn.index, turn]));
    const whole = detail.canonical?.turns?.length ?? 0;
    store.current = { detail, turns, asked: new Set(), total: detail.total_turns ?? detail.canonical?.total_turns ?? whole };
  }
  const { turns, asked, total } = store.current;
  const read = (from, to) => {
    for (let start = Math.max(0, Math.floor((from - 1) / PIECE) * PIECE); start < Math.min(total, to); start += PIECE) {
      const stop = Math.min(total, start + PIECE);
      let whole = true;
      for (let index = start; index < stop; index += 1) whole &&= turns.has(index);
      if (whole || asked.has(start)) continue;
      asked.add(start);
      getJson(`${requestPath(id)}?from=${start}&to=${stop}&texts=0`).then((more) => {
        for (const turn of more.canonical?.turns ?? []) turns.set(turn.index, turn);
        redraw((old) => old + 1);
      }, () => asked.delete(start));
    }
  };
  // Turns that are only passed on the way are not read.
  const timer = useRef(0);
  const load = (from, to) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(read, PASSING_MS, from, to);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return { total, turnAt: (index) => turns.get(index), load };
}

// Whatever has the id of what the pointer or the focus is on, is marked.
function useLinks(box) {
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    let hot = '';
    const mark = (event) => {
      const link = event.target.closest?.('[data-link]')?.dataset.link ?? '';
      if (link === hot) return;
      hot = link;
      for (const each of element.querySelectorAll('[data-link]')) each.classList.toggle('hot', link !== '' && each.dataset.link === link);
    };
    element.addEventListener('pointerover', mark);
    element.addEventListener('focusin', mark);
    return () => {
      element.removeEventListener('pointerover', mark);
      element.removeEventListener('focusin', mark);
    };
  }, []);
}

function Row({ label, name, heading, client, canonical, provider, class: more = '' }) {
  return html`<article class=${`turn ${more}`} aria-label=${label} data-turn=${name}>
    <header>${heading}</header>
    <div class="cells">
      <div class="cell cell-client" role="group" aria-label="Client">${client}</div>
      <div class="cell cell-canonical" role="group" aria-label="Canonical">${canonical}</div>
      <div class="cell cell-provider" role="group" aria-label="Provider">${provider}</div>
    </div>
  </article>`;
}

// What of a body belongs to a turn, as it stands there.
function partOf(turn, side) {
  const text = turn[`${side}_text`];
  return typeof text === 'string' ? { text, cut: turn[`${side}_cut`] ?? 0 } : null;
}

function Part({ part, linked, peek, path, absent }) {
  if (!part) return html`<p class="dim absent">${absent}</p>`;
  return html`${path && html`<p class="path"><${Words} text=${path} max=${80} /></p>`}<${PartOfBody} text=${part.text} cut=${part.cut} linked=${linked} peek=${peek} />`;
}

function linksOf(blocks) {
  const linked = new Map();
  for (const block of blocks ?? []) {
    for (const each of [block.id, block.client_id, block.sent_id]) if (each) linked.set(each, block.id ?? each);
  }
  return linked;
}

function marksOf(detail, marks) {
  return (marks ?? []).map((index) => detail.reports[index]).filter(Boolean);
}

const worst = (reports) => ['loss', 'change', 'housekeeping'].find((gravity) => reports.some((report) => report.gravity === gravity));

function Turn({ id, detail, turn, peek }) {
  const linked = useMemo(() => linksOf(turn.blocks), [turn]);
  const inBlocks = new Set(turn.blocks.flatMap((block) => block.marks ?? []));
  const own = marksOf(detail, (turn.marks ?? []).filter((index) => !inBlocks.has(index)));
  const all = marksOf(detail, [...new Set([...(turn.marks ?? []), ...inBlocks])]);
  const gravity = worst(all);
  const count = (name) => all.filter((report) => report.gravity === name).length;
  const absent = detail.bodies ? 'Not here as a part of its own.' : 'Bodies are not kept.';
  const heading = html`<span class="index">${number(turn.index + 1)}</span><span class=${`role role-${turn.role}`}>${turn.role}</span><${Changes} losses=${count('loss')} changes=${count('change')} />`;
  return html`<${Row} label=${`Turn ${turn.index + 1}, ${turn.role}`} name=${turn.index} class=${gravity ? `marked-${gravity}` : ''} heading=${heading}
    client=${html`<${Part} part=${partOf(turn, 'client')} linked=${linked} peek=${peek} path=${turn.client_path} absent=${absent} />`}
    canonical=${html`${own.map((report) => html`<${Report} id=${id} report=${report} />`)}${turn.blocks.map((block, index) => html`<${Block} key=${index} id=${id} block=${block} detail=${detail} peek=${peek} />`)}`}
    provider=${html`<${Part} part=${partOf(turn, 'sent')} linked=${linked} peek=${peek} path=${turn.sent_path} absent=${absent} />`} />`;
}

function FirstRow({ id, detail, peek }) {
  const canonical = detail.canonical ?? {};
  const free = (detail.reports ?? []).filter((report) => report.side === 'request' && (report.turn === null || report.turn === undefined));
  const tools = canonical.tools ?? [];
  const marks = new Map(free.flatMap((report) => (NAMES_OF[fieldOf(report)] ?? [fieldOf(report)]).map((name) => [name, { gravity: report.gravity, link: `$.${fieldOf(report)}` }])).reverse());
  const [allTools, setAllTools] = useState(false);
  const raw = `#/r/${encodeURIComponent(id)}/raw`;
  return html`<${Row} label="Settings and tools" name="head" class=${free.length ? `marked-${worst(free)}` : ''} heading=${html`<span class="role">settings and tools</span>`}
    client=${html`<${Head} head=${canonical.client_head} href=${`${raw}/request`} peek=${peek} marks=${marks} />`}
    provider=${html`<${Head} head=${canonical.sent_head} href=${`${raw}/rendered`} peek=${peek} marks=${marks} />`}
    canonical=${html`
      ${free.map((report) => html`<${Report} id=${id} report=${report} />`)}
      ${tools.length > 0 && html`<p class="label">${plural(tools.length, 'tool')}</p><ul class="tools">${(allTools ? tools : tools.slice(0, 12)).map((tool) => html`<li><code><${Words} text=${tool.name} max=${80} /></code>${tool.sent_as && tool.sent_as !== tool.name && html` <span class="chip change">sent as <${Words} text=${tool.sent_as} max=${80} /></span>`} <span class="dim"><${Words} text=${tool.description ?? ''} max=${110} /></span></li>`)}</ul>${!allTools && tools.length > 12 && html`<button class="more" onClick=${() => setAllTools(true)}>Show all ${number(Math.min(tools.length, 500))} tools</button>`}`}
      ${!tools.length && !free.length && html`<p class="dim absent">No tools, and nothing was changed.</p>`}`} />`;
}

// What protocols call a setting that has a name of its own in the canonical conversation.
const NAMES_OF = { reasoning: ['reasoning', 'reasoning_effort', 'thinking', 'output_config', 'generationConfig'] };

// The field of a body that an entry is about; empty: none.
function fieldOf(report) {
  return /^\$\.([A-Za-z_]\w*)/.exec(report.path ?? '')?.[1] ?? '';
}

// The fields of a body without its turns.
function Head({ head, href, peek, marks }) {
  if (!head?.text) return html`<p class="dim absent">Not kept.</p>`;
  return html`<p class="path"><a href=${href}>The whole body</a></p><${PartOfBody} text=${head.text} cut=${head.cut ?? 0} peek=${peek} lines=${24} folding marks=${marks} />`;
}

// A reply as it came. A large one is read by itself.
function ReplyPart({ id, detail, name, linked, peek, absent }) {
  const here = detail[name];
  const size = detail.sizes?.[name] ?? 0;
  const asked = useCall(typeof here !== 'string' && size > 0 && size < MAX_REPLY ? `${requestPath(id)}/body/${name}` : '', size, getText);
  const text = here ?? asked.value;
  const part = typeof text === 'string' ? { text: text.slice(0, LIMIT), cut: Math.max(0, text.length - LIMIT) } : null;
  return html`<${Part} part=${part} linked=${linked} peek=${peek} absent=${size ? 'It is under Raw.' : absent} />`;
}

function Answer({ id, row, detail: first, peek }) {
  const isRunning = row.state === 'running';
  // While it runs, only the answer is read again, and not the conversation before it.
  const polled = usePolled(isRunning ? `${requestPath(id)}?from=0&to=0&texts=0` : '');
  const detail = isRunning ? polled ?? first : first;
  const turn = detail.reply_canonical;
  const linked = useMemo(() => linksOf(turn?.blocks), [turn]);
  const reports = (detail.reports ?? []).filter((report) => report.side === 'reply');
  const inBlocks = new Set((turn?.blocks ?? []).flatMap((block) => block.marks ?? []));
  const free = reports.filter((report) => !inBlocks.has(detail.reports.indexOf(report)));
  const absent = row.state === 'running' ? 'The answer is running.' : detail.bodies ? 'There is none.' : 'Bodies are not kept.';
  return html`<${Row} label="The answer" name="answer" class=${`answer ${reports.length ? `marked-${worst(reports)}` : ''}`} heading=${html`<span class="role role-assistant">answer</span>${isRunning ? html`<span class="chip running">running</span>` : html`<span class="dim">from the provider, through the canonical turn, to the client</span>`}`}
    client=${html`<${ReplyPart} id=${id} detail=${detail} name="response" linked=${linked} peek=${peek} absent=${absent} />`}
    provider=${html`<${ReplyPart} id=${id} detail=${detail} name="reply" linked=${linked} peek=${peek} absent=${absent} />`}
    canonical=${html`${free.map((report) => html`<${Report} id=${id} report=${report} />`)}${turn ? turn.blocks.map((block) => html`<${Block} id=${id} block=${block} detail=${detail} peek=${peek} />`) : html`<p class="dim absent">${detail.error ? html`<${Words} text=${detail.error.message ?? ''} max=${600} />` : row.state === 'running' ? 'The answer is running.' : 'There is none.'}</p>`}`} />`;
}

const KINDS = { text: 'Text', thinking: 'Thinking', call: 'Tool call', result: 'Tool result', media: 'Picture or file', server_tool: 'Server tool', compaction: 'Compaction', tool_reference: 'Tool that is loaded', tool_change: 'Tools that changed', opaque: 'Carried as it is' };

export function Block({ id, block, detail, peek }) {
  const reports = detail ? marksOf(detail, block.marks) : [];
  const linkId = block.id || undefined;
  const otherIds = [['client', block.client_id], ['provider', block.sent_id]].filter(([, value]) => value && value !== linkId);
  const gravity = worst(reports);
  const wordy = block.kind === 'text' && !block.is_refusal;
  return html`<div class=${`block block-${block.kind} ${gravity ? `marked-${gravity}` : ''}`} data-link=${linkId}>
    ${!wordy && html`<p class="label">${KINDS[block.kind] ?? block.kind}${block.name && html` <code><${Words} text=${block.name} max=${80} /></code>`}${block.sent_name && block.sent_name !== block.name && html` <span class="chip change">sent as <${Words} text=${block.sent_name} max=${80} /></span>`}${block.is_error && html` <span class="chip bad">error</span>`}${block.is_refusal && html` <span class="chip bad">refusal</span>`}${block.is_signed && html` <span class="chip">signed</span>`}</p>`}
    ${linkId && html`<p class="ids"><button class="id" data-link=${linkId} title="The canonical id"><${Words} text=${linkId} max=${60} /></button>${otherIds.map(([side, value]) => html`<span class="id-pair"><span class="dim">${side}</span><span class="id" data-link=${linkId}><${Words} text=${value} max=${60} /></span></span>`)}</p>`}
    ${block.kind === 'media' ? html`<${Media} id=${id} block=${block} />` : block.kind === 'call' ? html`<${PartOfBody} text=${argumentsOf(block)} cut=${block.cut ?? 0} peek=${peek} />` : block.text && html`<${LongText} text=${block.text} cut=${block.cut ?? 0} class=${block.kind} />`}
    ${(block.parts ?? []).map((part, index) => html`<${Block} key=${index} id=${id} block=${part} detail=${detail} peek=${peek} />`)}
    ${reports.map((report) => html`<${Report} id=${id} report=${report} />`)}
  </div>`;
}

// The arguments as the model wrote them.
function argumentsOf(block) {
  if (block.text) return block.text;
  return typeof block.arguments === 'string' ? block.arguments : JSON.stringify(block.arguments ?? {});
}

const PICTURES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

function Media({ id, block }) {
  const [source, setSource] = useState('');
  const [failed, setFailed] = useState('');
  useEffect(() => () => source.startsWith('blob:') && URL.revokeObjectURL(source), [source]);
  const is = PICTURES.includes(block.media_type);
  const show = async () => {
    try {
      if (block.data && is) setSource(`data:${block.media_type};base64,${block.data}`);
      else setSource(URL.createObjectURL(await getBlob(`${requestPath(id)}/media/${block.media}`)));
    } catch (error) {
      setFailed(messageOf(error));
    }
  };
  if (source) return html`<img class="picture" src=${source} alt="A picture of the conversation" />`;
  return html`<p class="media"><span class="dim"><${Words} text=${block.media_type ?? 'unknown type'} max=${60} />${block.size ? ` \u00b7 ${bytes(block.size)}` : ''}</span>
    ${is && (block.data || (block.media !== null && block.media !== undefined)) && html`<button class="show-picture" onClick=${show}>Show the picture</button>`}${failed && html`<span class="bad-text">${failed}</span>`}</p>`;
}

const CAUSES = { canonical: 'the conversation was broken', projection: 'the name or id could not stay', policy: 'a policy decided', loss: 'the target has no field for it', renderer: 'the target has another form for it' };

// One change: what, why, and the rule behind it, which is explained on a click.
export function Report({ id, report }) {
  const [open, setOpen] = useState(false);
  const [explained, setExplained] = useState(null);
  const explain = async () => {
    setOpen(!open);
    if (explained || !report.rule) return;
    try {
      setExplained(await getJson(`${requestPath(id)}/explain?rule=${encodeURIComponent(report.rule)}`));
    } catch (error) {
      setExplained({ text: messageOf(error) });
    }
  };
  const field = report.turn === null || report.turn === undefined ? fieldOf(report) : '';
  const reason = String(report.reason || report.text);
  return html`<div class=${`report ${report.gravity}`} data-link=${report.id || (field ? `$.${field}` : undefined)}>
    <p><span class=${`chip ${report.gravity}`}>${report.gravity}</span> <${Words} text=${report.rule ? reason.replace(` (${report.rule})`, '') : reason} max=${600} /></p>
    <p class="why"><span class="dim"><${Words} text=${report.action ?? ''} max=${80} /></span>${report.path && html`<code class="dim"><${Words} text=${report.path} max=${120} /></code>`}${report.fault && html`<span class="dim" title="The cause of the change"><${Words} text=${CAUSES[report.fault] ?? report.fault} max=${80} /></span>`}${report.rule && html`<button class="rule" aria-expanded=${open} onClick=${explain}><${Words} text=${report.rule} max=${100} /></button>`}</p>
    ${open && html`<div class="explained">${explained ? html`<${Explained} rule=${explained} />` : html`<p class="dim">Reading\u2026</p>`}</div>`}
  </div>`;
}

function Explained({ rule }) {
  const value = typeof rule.value === 'string' ? rule.value : JSON.stringify(rule.value);
  return html`${rule.title && html`<p><strong><${Words} text=${rule.title} max=${200} /></strong></p>`}
    ${rule.text && html`<${LongText} text=${rule.text} class="prose" />`}
    <dl class="pairs">${value !== undefined && value !== 'null' && html`<dt>Value</dt><dd><code><${Words} text=${value} max=${400} /></code></dd>`}
    ${rule.source && html`<dt>Source</dt><dd><${Words} text=${typeof rule.source === 'string' ? rule.source : JSON.stringify(rule.source)} max=${400} /></dd>`}
    ${rule.confidence && html`<dt>Confidence</dt><dd><${Words} text=${rule.confidence} max=${60} /></dd>`}</dl>`;
}
