// View 3: what is new since the request before it, and whether the prefix stayed byte for byte.
import { html, useState } from './vendor/htm-preact.js';
import { requestPath } from './api.js';
import { Block } from './conversation.js';
import { Loading, useCall } from './request.js';
import { Words, bytes, dollars, number, plural, visible } from './text.js';
import { MeasuredList } from './windows.js';

export function DiffView({ id, row }) {
  const { value: diff, error } = useCall(`${requestPath(id)}/diff`, row.state);
  if (!diff) return html`<${Loading} error=${error} what="the request before it" />`;
  if (!diff.previous) return html`<p class="nothing">This is the first request of its conversation that is kept.</p>`;
  const added = (diff.added ?? []).map((turn) => ({ turn, sign: '+' }));
  const removed = (diff.removed ?? []).map((turn) => ({ turn, sign: '\u2212' }));
  const turns = [...removed, ...added];
  return html`<div class="diff">
    <div class="diff-head">
      <p>Set against <a href=${`#/r/${encodeURIComponent(diff.previous)}`}>the request before it</a> of this conversation.</p>
      <${Prefix} diff=${diff} />
      ${diff.changed?.length > 0 && html`<${Paths} paths=${diff.changed} />`}
      <h2>${turns.length ? [added.length && `${plural(added.length, 'turn')} added`, removed.length && `${plural(removed.length, 'turn')} removed`].filter(Boolean).join(', ') : 'No turn was added or removed'}</h2>
    </div>
    <${MeasuredList} class="diff-turns" role="list" aria-label="Turns that differ" count=${turns.length} estimate=${120} item=${(index) => html`<div class=${`diff-turn ${turns[index].sign === '+' ? 'added' : 'removed'}`} role="listitem">
      <div class="diff-title"><span class="sign" role="img" aria-label=${turns[index].sign === '+' ? 'added' : 'removed'}>${turns[index].sign}</span><span class="index">${number(turns[index].turn.index + 1)}</span><span class="role">${turns[index].turn.role}</span></div>
      <div>${turns[index].turn.blocks.map((block) => html`<${Block} id=${id} block=${block} />`)}</div>
    </div>`} />
  </div>`;
}

function Prefix({ diff }) {
  const share = diff.prefix_bytes ? Math.min(1, diff.common_bytes / diff.prefix_bytes) : 1;
  if (diff.same_target === false) {
    return html`<section class="prefix other"><h2>It went to another provider</h2><p>The prompt cache of the one before it does not count there.</p></section>`;
  }
  if (diff.prefix_kept) {
    return html`<section class="prefix kept"><h2>The prefix stayed byte for byte</h2><p>The provider can read ${bytes(diff.prefix_bytes ?? diff.common_bytes)} of this request from its prompt cache.</p></section>`;
  }
  const first = diff.first_difference;
  return html`<section class="prefix broken" role="alert"><h2>The prompt cache is broken</h2>
    <p>${first ? html`The first byte that differs is byte <strong>${number(first.offset)}</strong>${first.path && html`, at <code><${Words} text=${first.path} max=${160} /></code>`}.` : 'The bodies differ.'}
      ${diff.lost_tokens !== null && diff.lost_tokens !== undefined && html` About <strong>${number(diff.lost_tokens)} tokens</strong> are read again${diff.lost_usd !== null && diff.lost_usd !== undefined ? html`, which costs <strong>${dollars(diff.lost_usd)}</strong>` : ''}.`}</p>
    <div class="meter" role="img" aria-label=${`${Math.round(share * 100)} % of the prefix is the same`}><span style=${{ width: `${Math.max(0, Math.min(100, share * 100))}%` }}></span></div>
    ${diff.counted && html`<p>The provider itself counted <strong>${number(diff.counted.tokens)} tokens</strong> that were cached before and were read again${diff.counted.cost_usd ? html`, which cost <strong>${dollars(diff.counted.cost_usd)}</strong>` : ''}.</p>`}
    ${first && html`<dl class="sides"><dt>Before</dt><dd><${Difference} text=${first.before} other=${first.after} /></dd><dt>Now</dt><dd><${Difference} text=${first.after} other=${first.before} /></dd></dl>`}
  </section>`;
}

// A short text in which what differs from the other one is marked.
function Difference({ text = '', other = '' }) {
  const here = String(text ?? '').slice(0, 2000);
  const there = String(other ?? '').slice(0, 2000);
  let same = 0;
  while (same < here.length && here[same] === there[same]) same += 1;
  let tail = 0;
  while (tail < Math.min(here.length, there.length) - same && here[here.length - 1 - tail] === there[there.length - 1 - tail]) tail += 1;
  return html`<code class="difference"><bdi>${visible(here.slice(0, same))}</bdi><mark>${visible(here.slice(same, here.length - tail)) || '\u2205'}</mark><bdi>${visible(here.slice(here.length - tail))}</bdi></code>`;
}

function Paths({ paths }) {
  const [all, setAll] = useState(false);
  return html`<p class="paths">Changed: ${(all ? paths.slice(0, 500) : paths.slice(0, 8)).map((path) => html`<code><${Words} text=${path} max=${120} /></code>`)}${!all && paths.length > 8 && html`<button class="more inline" onClick=${() => setAll(true)}>${number(paths.length - 8)} more</button>`}</p>`;
}
