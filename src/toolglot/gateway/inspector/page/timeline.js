// View 4: what happened when, from the request to its end.
import { html, useMemo, useState } from './vendor/htm-preact.js';
import { requestPath } from './api.js';
import { Loading, useCall, usePolled } from './request.js';
import { Words, bytes, duration, number, visible } from './text.js';
import { FixedList } from './windows.js';

const LANES = [
  ['request', 'Request', ['request', 'stop', 'end', 'error', 'more']],
  ['upstream', 'Upstream', ['upstream', 'failed', 'retried', 'first_byte', 'usage']],
  ['thinking', 'Thinking', ['thinking']],
  ['text', 'Text', ['text']],
  ['calls', 'Calls', ['call_open', 'call_close', 'arguments']],
  ['waiting', 'Gaps', ['gap', 'keep_alive']],
];

const NAMES = {
  request: 'request', upstream: 'upstream called', failed: 'failed', retried: 'sent again', first_byte: 'first byte', text: 'text', thinking: 'thinking',
  call_open: 'call opens', call_close: 'call closes', keep_alive: 'keep-alive', usage: 'usage', arguments: 'arguments', more: 'more', gap: 'gap', stop: 'stop', end: 'end', error: 'error',
};

function directionOf(event) {
  if (event.kind === 'request') return 'from the client';
  return { received: 'from the provider', sent: 'to the client' }[event.direction] ?? '';
}

function laneOf(kind) {
  return LANES.find(([, , kinds]) => kinds.includes(kind))?.[0] ?? 'request';
}

// Calls and gaps as bars: from, to. The rest are marks.
function barsOf(events, total) {
  const bars = [];
  const openCalls = [];
  for (const event of events) {
    if (event.kind === 'call_open') openCalls.push({ ...event, from: event.at });
    else if (event.kind === 'call_close') {
      const at = Math.max(0, openCalls.findIndex((call) => call.label === event.label));
      const [call] = openCalls.splice(at, 1);
      if (call) bars.push({ lane: 'calls', kind: 'call', from: call.from, to: event.at, label: call.label });
    } else if (event.kind === 'gap') bars.push({ lane: 'waiting', kind: 'gap', from: event.at, to: Math.min(total, event.until ?? event.at), label: event.label });
  }
  for (const call of openCalls) bars.push({ lane: 'calls', kind: 'call open', from: call.from, to: total, label: call.label });
  return bars;
}

function ticksOf(total) {
  const step = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600].find((each) => total / each <= 8) ?? total / 8;
  const ticks = [];
  for (let at = 0; at <= total; at += step) ticks.push(at);
  return ticks;
}

export function TimelineView({ id, row }) {
  const path = `${requestPath(id)}/timeline`;
  const { value: first, error } = useCall(path, row.state);
  const isRunning = row.state === 'running';
  const polled = usePolled(isRunning ? path : '');
  const value = isRunning ? polled ?? first : first;
  const [cursor, setCursor] = useState(-1);
  const events = value?.events ?? [];
  const total = Math.max(0.001, value?.seconds ?? 0, ...events.slice(-1).map((event) => event.at));
  const bars = useMemo(() => barsOf(events, total), [value]);
  if (!value) return html`<${Loading} error=${error} what="the timeline" />`;
  const x = (at) => `${(100 * Math.min(at, total)) / total}%`;
  return html`<div class="timeline">
    <div class="lanes" role="img" aria-label=${`${number(events.length)} events in ${duration(total)}; they are listed below`}>
      <div class="lane axis"><span class="lane-name"></span><div class="track">${ticksOf(total).map((at) => html`<span class="tick" style=${{ left: x(at) }}>${duration(at)}</span>`)}</div></div>
      ${LANES.map(([lane, name]) => html`<div class=${`lane lane-${lane}`}><span class="lane-name">${name}</span><div class="track">
        ${ticksOf(total).map((at) => html`<span class="rule-line" style=${{ left: x(at) }}></span>`)}
        ${bars.filter((bar) => bar.lane === lane).map((bar) => html`<span class=${`span ${bar.kind}`} style=${{ left: x(bar.from), width: x(bar.to - bar.from) }} title=${`${visible(bar.label ?? bar.kind)}: ${duration(bar.from)} to ${duration(bar.to)}`}><${Words} text=${bar.label ?? ''} max=${40} /></span>`)}
        ${events.map((event, index) => laneOf(event.kind) === lane && !event.kind.startsWith('call_') && event.kind !== 'gap' && html`<span class=${`tap ${event.kind} ${index === cursor ? 'current' : ''}`} style=${{ left: x(event.at) }} title=${`${NAMES[event.kind] ?? event.kind} at ${duration(event.at)}`} onPointerEnter=${() => setCursor(index)}></span>`)}
        ${cursor >= 0 && events[cursor] && html`<span class="now" style=${{ left: x(events[cursor].at) }}></span>`}
      </div></div>`)}
    </div>
    <div class="row head event-row" role="presentation"><span class="n">At</span><span class="n">Since</span><span>Event</span><span>Direction</span><span class="n">Size</span><span></span></div>
    <${FixedList} class="events" role="list" aria-label="Events" height=${24} count=${events.length} cursor=${cursor} item=${(index) => {
      const event = events[index];
      return html`<div key=${index} role="listitem" class=${`row event-row ${index === cursor ? 'current' : ''}`} onPointerEnter=${() => setCursor(index)}>
        <span class="n">${duration(event.at)}</span><span class="n dim">${index ? `+${duration(event.at - events[index - 1].at)}` : ''}</span><span class=${`kind ${event.kind}`}>${NAMES[event.kind] ?? event.kind}</span><span class="dim">${directionOf(event)}</span><span class="n">${event.size ? bytes(event.size) : ''}</span><span class="event-label"><${Words} text=${event.label ?? ''} max=${200} /></span>
      </div>`;
    }} />
  </div>`;
}
