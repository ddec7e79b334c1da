// View 5: the conversation rendered for every provider, with the referee's verdict.
import { html, useEffect, useState } from './vendor/htm-preact.js';
import { getJson, requestPath } from './api.js';
import { Report } from './conversation.js';
import { BodyView } from './json.js';
import { CopyButton } from './list.js';
import { Loading, useCall } from './request.js';
import { Words, messageOf, plural } from './text.js';

const VERDICTS = { ok: ['good', 'accepted'], refused: ['refused', 'refused'], violations: ['refused', 'violations'], waiting: ['', 'waiting\u2026'] };
const LARGE_REQUEST = 300000; // characters

function Verdict({ target }) {
  const [style, text] = VERDICTS[target.verdict] ?? ['', target.verdict];
  const lost = target.verdict === 'ok' && target.losses ? ['loss', 'accepted, with losses'] : target.verdict === 'ok' && target.changes ? ['change', 'accepted, changed'] : [style, text];
  return html`<span class=${`chip ${lost[0]}`}>${lost[1]}</span>`;
}

// The rows of the table. A large request is rendered for one target after the other, and no longer than somebody looks.
function useTargets(id, row, detail, info) {
  const path = `${requestPath(id)}/targets`;
  const isLarge = info.mode !== 'export' && (detail.sizes?.request ?? 0) > LARGE_REQUEST;
  const whole = useCall(isLarge ? '' : path, row.state);
  const [rows, setRows] = useState([]);
  useEffect(() => {
    if (!isLarge) return undefined;
    const control = new AbortController();
    const found = info.targets.map((target) => ({ name: target.name, verdict: 'waiting' }));
    (async () => {
      for (let index = 0; index < found.length; index += 1) {
        try {
          const answer = await getJson(`${path}?only=${encodeURIComponent(found[index].name)}`, control.signal);
          [found[index]] = answer.targets;
        } catch (error) {
          if (control.signal.aborted) return;
          found[index] = { ...found[index], verdict: 'refused', message: messageOf(error) };
        }
        setRows([...found]);
      }
    })();
    setRows([...found]);
    return () => control.abort();
  }, [path, isLarge]);
  return isLarge ? { value: { targets: rows }, error: null } : whole;
}

// The verdict on one target, as a row of the table has it.
function verdictOf(value) {
  const count = (gravity) => (value.reports ?? []).filter((report) => report.gravity === gravity).length;
  const verdict = value.refused ? 'refused' : value.violations?.length ? 'violations' : 'ok';
  return { verdict, losses: count('loss'), changes: count('change') };
}

export function TargetsView({ id, row, part, go, info, detail }) {
  const { value, error } = useTargets(id, row, detail, info);
  const base = `#/r/${encodeURIComponent(id)}/targets`;
  if (!value) return html`<${Loading} error=${error} what="every target" />`;
  const chosen = value.targets.find((target) => target.name === part);
  return html`<div class=${`targets ${chosen ? 'with-one' : ''}`}>
    <div class="targets-table"><table>
      <caption class="hidden">The conversation on every target</caption>
      <thead><tr><th scope="col">Target</th><th scope="col">Verdict</th><th scope="col" class="n">Lost</th><th scope="col" class="n">Changed</th><th scope="col" class="n violations">Violations</th><th scope="col" class="wide">Message</th></tr></thead>
      <tbody>${value.targets.map((target) => html`<tr class=${target.name === part ? 'current' : ''} onClick=${() => go(`${base}/${encodeURIComponent(target.name)}`)}>
        <th scope="row"><a href=${`${base}/${encodeURIComponent(target.name)}`} aria-current=${target.name === part ? 'true' : undefined}><${Words} text=${target.name} max=${60} /></a> <span class="dim model"><${Words} text=${target.model ?? ''} max=${60} /></span></th>
        <td><${Verdict} target=${target} /></td><td class="n">${target.losses || ''}</td><td class="n">${target.changes || ''}</td><td class="n violations">${target.violations || ''}</td><td class="wide dim"><${Words} text=${target.message ?? ''} max=${160} /></td>
      </tr>`)}</tbody>
    </table></div>
    ${chosen && html`<${OneTarget} key=${part} id=${id} target=${chosen} info=${info} close=${() => go(base)} />`}
  </div>`;
}

function OneTarget({ id, target, info, close }) {
  const [chosen, setChosen] = useState(target.model ?? '');
  const model = chosen ? `?model=${encodeURIComponent(chosen)}` : '';
  const { value, error } = useCall(`${requestPath(id)}/targets/${encodeURIComponent(target.name)}${model}`);
  const own = chosen === (target.model ?? '') ? target : value && verdictOf(value);
  return html`<section class="one-target" aria-label=${`The conversation on ${target.name}`}>
    <div class="bar"><h2><${Words} text=${target.name} max=${60} /></h2>${own && html`<${Verdict} target=${own} />`}
      ${info.mode !== 'export' && html`<label>Model <input class="model" value=${chosen} onChange=${(event) => setChosen(event.target.value.trim())} /></label>`}
      ${value?.body && html`<${CopyButton} text=${value.body} label="Copy the request" />`}<button class="plain right" aria-label="Close" onClick=${close}>\u2715</button></div>
    ${!value ? html`<${Loading} error=${error} what=${`the request for ${target.name}`} />` : html`
    <div class="verdicts">
      ${value.refused && html`<p class="note bad"><${Words} text=${value.refused} max=${800} /></p>`}
      ${(value.violations ?? []).slice(0, 200).map((violation) => html`<div class="report loss"><p><span class="chip bad">violation</span> <${Words} text=${violation.message} max=${500} /></p><p class="why"><code class="dim"><${Words} text=${violation.path ?? ''} max=${120} /></code><span class="dim"><${Words} text=${violation.rule ?? ''} max=${120} /></span></p>${violation.hint && html`<p><${Words} text=${violation.hint} max=${400} /></p>`}</div>`)}
      ${!value.refused && !(value.violations ?? []).length && html`<p class="note good">The referee finds nothing wrong with this request.</p>`}
      ${(value.reports ?? []).length > 0 ? html`<p class="label">${plural(value.reports.length, 'entry', 'entries')} in the report</p>${value.reports.slice(0, 200).map((report) => html`<${Report} id=${id} report=${report} />`)}` : !value.refused && html`<p class="dim">Nothing is changed or lost.</p>`}
    </div>
    ${value.body && html`<${BodyView} text=${value.body} label=${`The request for ${target.name}`} />`}`}
  </section>`;
}
