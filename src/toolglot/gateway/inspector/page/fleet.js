// View 7: all requests over time, the upstreams, and the keys.
import { html, useEffect, useMemo, useRef, useState } from './vendor/htm-preact.js';
import { Loading, useCall } from './request.js';
import { Words, brief, dollars, duration, number, plural } from './text.js';

const HOURS = [[1, '1 hour'], [6, '6 hours'], [24, '24 hours'], [168, '7 days']];
const BY = [['model', 'by model'], ['upstream', 'by upstream'], ['client', 'by key']];
const percent = (value) => `${Math.round(value * 100)} %`;
const CHARTS = [
  { title: 'Requests', names: ['requests'], show: brief, join: 'sum' },
  { title: 'Errors', names: ['errors'], show: brief, by: 'kind', join: 'sum' },
  { title: 'Latency', names: ['p50', 'p95'], show: duration, join: 'max' },
  { title: 'Tokens', names: ['input_tokens', 'output_tokens'], show: brief, join: 'sum' },
  { title: 'Cached share of the input', names: ['cached_share'], show: percent, join: 'mean' },
  { title: 'Cost', names: ['cost_usd'], show: dollars, join: 'sum' },
];
const COLOURS = ['#4c6ef5', '#e8590c', '#2b8a3e', '#c2255c', '#7048e8', '#0c8599', '#e67700', '#868e96'];
const MAX_LINES_OF_CHART = 6;
const LABELS = { p50: 'median', p95: '95th percentile', input_tokens: 'input', output_tokens: 'output', requests: 'requests', errors: 'errors', cached_share: 'cached', cost_usd: 'cost' };

const COUNTS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();

// A time on an axis: the day where it is about days.
function timeOf(time, buckets) {
  const days = buckets[buckets.length - 1] - buckets[0] > 36 * 3600;
  return new Date(time * 1000).toLocaleString('en-GB', days ? { day: 'numeric', month: 'short' } : { hour: '2-digit', minute: '2-digit' });
}

let plotting = null;

// uPlot is read when a chart is looked at.
function loadPlot() {
  plotting ??= new Promise((resolve, reject) => {
    if (globalThis.uPlot) resolve(globalThis.uPlot);
    const style = document.createElement('link');
    style.rel = 'stylesheet';
    style.href = '/inspector/static/vendor/uPlot.css';
    document.head.append(style);
    const script = document.createElement('script');
    script.src = '/inspector/static/vendor/uPlot.js';
    script.onload = () => resolve(globalThis.uPlot);
    script.onerror = () => reject(new Error('The plotting library could not be read.'));
    document.head.append(script);
  });
  return plotting;
}

// The lines of a chart: series of the same name and the same value of `by` are one line. Of many values, the largest are
// shown; the others are one line where they can be added.
function linesOf(fleet, chart, by) {
  const dimension = chart.by ?? by;
  const groups = new Map(); // by value: the lines of each name
  for (const series of fleet.series.filter((each) => chart.names.includes(each.name))) {
    const value = series.by?.[dimension] ?? (Object.keys(series.by ?? {}).length ? null : '');
    if (value === null) continue;
    if (!groups.has(value)) groups.set(value, new Map());
    addTo(groups.get(value), series.name, series.values, chart.join);
  }
  const size = (lines) => [...lines.values()].reduce((sum, line) => sum + line.values.reduce((all, value) => all + (value ?? 0), 0), 0);
  const sorted = [...groups].sort(([, a], [, b]) => size(b) - size(a));
  const most = Math.max(1, Math.floor(MAX_LINES_OF_CHART / chart.names.length));
  const shown = sorted.slice(0, most);
  const rest = sorted.slice(most).filter(([, lines]) => size(lines) > 0);
  if (rest.length && chart.join === 'sum') {
    const others = new Map();
    for (const [, lines] of rest) for (const [name, line] of lines) addTo(others, name, line.values, 'sum');
    shown.push([plural(rest.length, 'other'), others]);
  }
  return shown.flatMap(([value, lines]) => chart.names.filter((name) => lines.has(name)).map((name) => {
    const line = lines.get(name);
    const values = chart.join === 'mean' ? line.values.map((each, index) => (each === null ? null : each / Math.max(1, line.counts[index]))) : line.values;
    return { label: [chart.names.length > 1 || !value ? LABELS[name] : '', value].filter(Boolean).join(' \u00b7 '), values, total: totalOf(values, chart.join) };
  }));
}

function addTo(lines, name, values, join) {
  const line = lines.get(name);
  if (!line) {
    lines.set(name, { values: [...values], counts: values.map((each) => (each === null ? 0 : 1)) });
    return;
  }
  values.forEach((each, index) => {
    if (each === null) return;
    const old = line.values[index];
    line.values[index] = old === null ? each : join === 'max' ? Math.max(old, each) : old + each;
    line.counts[index] += 1;
  });
}

// What the legend says of a line: the sum of what is counted, otherwise the last value that is known.
function totalOf(values, join) {
  const known = values.filter((value) => value !== null && value !== undefined);
  return join === 'sum' ? known.reduce((sum, value) => sum + value, 0) : known[known.length - 1] ?? 0;
}

export function FleetView({ theme }) {
  const [hours, setHours] = useState(1);
  const [by, setBy] = useState('model');
  const [version, setVersion] = useState(0);
  const { value: fleet, error } = useCall(`/fleet?hours=${hours}`, version);
  const [shown, setShown] = useState(null);
  useEffect(() => {
    if (fleet) setShown(fleet);
  }, [fleet]);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && setVersion((old) => old + 1), 10000);
    return () => clearInterval(timer);
  }, []);
  return html`<main class="view fleet">
    <div class="bar"><h1>Fleet</h1>
      <div class="segments" role="group" aria-label="How far back">${HOURS.map(([value, text]) => html`<button aria-pressed=${hours === value} onClick=${() => setHours(value)}>${text}</button>`)}</div>
      <div class="segments" role="group" aria-label="What lines are">${BY.map(([value, text]) => html`<button aria-pressed=${by === value} onClick=${() => setBy(value)}>${text}</button>`)}</div>
      <button onClick=${() => setVersion(version + 1)}>Refresh</button>
    </div>
    ${!shown ? html`<${Loading} error=${error} what="the fleet" />` : html`<div class="scroll fleet-body" tabindex="0" role="group" aria-label="Charts, upstreams and keys">
      <div class="charts">${CHARTS.map((chart) => html`<${Chart} key=${chart.title} chart=${chart} fleet=${shown} by=${by} theme=${theme} />`)}</div>
      <${UpstreamTable} upstreams=${shown.upstreams ?? []} />
      <${KeyTable} keys=${shown.keys ?? []} />
    </div>`}
  </main>`;
}

function Chart({ chart, fleet, by, theme }) {
  const box = useRef(null);
  const [failed, setFailed] = useState('');
  const lines = useMemo(() => linesOf(fleet, chart, by), [fleet, chart, by]);
  const empty = !lines.some((line) => line.values.some((value) => value));
  useEffect(() => {
    if (empty) return undefined;
    let plot = null;
    let gone = false;
    let observer = null;
    loadPlot().then((Plot) => {
      if (gone) return;
      const probe = document.createElement('span');
      probe.className = 'dim';
      box.current.append(probe);
      const dim = getComputedStyle(probe).color;
      probe.remove();
      const axis = { stroke: dim, grid: { stroke: dim.replace('rgb(', 'rgba(').replace(')', ', 0.15)'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' };
      plot = new Plot({
        width: box.current.clientWidth, height: 170, legend: { show: false }, padding: [8, 22, 0, 0], cursor: { y: false },
        axes: [{ ...axis, size: 26, values: (_, marks) => marks.map((mark) => timeOf(mark, fleet.buckets)) }, { ...axis, size: 62, ...(chart.show === brief ? { incrs: COUNTS } : {}), values: (_, marks) => marks.map((mark) => (mark === null ? '' : chart.show(mark))) }],
        scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
        series: [{}, ...lines.map((line, index) => ({ label: line.label, stroke: COLOURS[index], width: 1.5, points: { show: line.values.filter((value) => value !== null && value !== undefined).length < 4, size: 5 }, spanGaps: true }))],
      }, [fleet.buckets, ...lines.map((line) => line.values)], box.current);
      observer = new ResizeObserver(() => plot.setSize({ width: Math.max(100, box.current.clientWidth), height: 170 }));
      observer.observe(box.current);
    }, (error) => !gone && setFailed(error.message));
    return () => {
      gone = true;
      observer?.disconnect();
      plot?.destroy();
    };
  }, [lines, theme, empty]);
  return html`<figure class="chart"><figcaption><strong>${chart.title}</strong>${chart.join === 'sum' ? '' : html` <span class="dim">the latest</span>`}</figcaption>
    ${empty ? html`<p class="nothing">None in this time.</p>` : html`<div class="plot" ref=${box} role="img" aria-label=${`${chart.title}: ${lines.map((line) => `${line.label} ${chart.show(line.total)}`).join(', ').slice(0, 500)}`}></div>
    <ul class="legend">${lines.map((line, index) => html`<li><span class="swatch" style=${{ background: COLOURS[index] }}></span><${Words} text=${line.label} max=${60} /> <span class="dim">${chart.show(line.total)}</span></li>`)}</ul>`}
    ${failed && html`<p class="note bad">${failed}</p>`}
  </figure>`;
}

const STATES = { closed: ['good', 'working'], open: ['bad', 'not called'], half_open: ['change', 'being tried'] };

function Limits({ limits, absent = 'none' }) {
  const entries = Object.entries(limits ?? {});
  if (!entries.length) return html`<span class="dim">${absent}</span>`;
  return html`<ul class="inline-list">${entries.slice(0, 12).map(([name, value]) => html`<li><span class="dim"><${Words} text=${name.replaceAll('_', ' ')} max=${40} /></span> <${Words} text=${typeof value === 'object' ? JSON.stringify(value) : String(value)} max=${80} /></li>`)}</ul>`;
}

function UpstreamTable({ upstreams }) {
  if (!upstreams.length) return null;
  return html`<section><h2>Upstreams</h2><div class="table-box" tabindex="0" role="region" aria-label="Upstreams"><table><thead><tr><th scope="col">Upstream</th><th scope="col">State</th><th scope="col" class="n">Failures in a row</th><th scope="col" class="n">In progress</th><th scope="col">Rate limits left</th></tr></thead>
    <tbody>${upstreams.map((upstream) => html`<tr><th scope="row"><${Words} text=${upstream.name} max=${60} /></th><td><span class=${`chip ${(STATES[upstream.state] ?? [''])[0]}`}>${(STATES[upstream.state] ?? ['', upstream.state])[1]}</span></td><td class="n">${number(upstream.failures)}</td><td class="n">${number(upstream.in_flight)}</td><td><${Limits} limits=${upstream.rate_limits} absent="not reported" /></td></tr>`)}</tbody></table></div></section>`;
}

function KeyTable({ keys }) {
  if (!keys.length) return null;
  return html`<section><h2>Keys</h2><div class="table-box" tabindex="0" role="region" aria-label="Keys"><table><thead><tr><th scope="col">Key</th><th scope="col" class="n">Requests</th><th scope="col" class="n">Tokens</th><th scope="col" class="n">Cost</th><th scope="col">Budget</th><th scope="col">Limits</th></tr></thead>
    <tbody>${keys.map((key) => html`<tr><th scope="row"><${Words} text=${key.name} max=${60} /></th><td class="n">${number(key.requests)}</td><td class="n">${brief(key.tokens)}</td><td class="n">${dollars(key.cost_usd)}</td>
      <td>${key.budget_usd ? html`<span class="budget"><meter min="0" max=${key.budget_usd} high=${0.8 * key.budget_usd} value=${key.cost_usd ?? 0} aria-label="Part of the budget that is used"></meter> of ${dollars(key.budget_usd)}</span>` : html`<span class="dim">none</span>`}</td><td><${Limits} limits=${key.limits} /></td></tr>`)}</tbody></table></div></section>`;
}
