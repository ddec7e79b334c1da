// View 6: the request once more, to another model, beside the first answer. Never without a click.
import { html, useState } from './vendor/htm-preact.js';
import { requestPath, send } from './api.js';
import { Block } from './conversation.js';
import { Status } from './list.js';
import { Loading, useCall } from './request.js';
import { Words, dollars, duration, messageOf, number } from './text.js';

const lastReplays = new Map(); // of each request, the newest replay; the list remembers the others

export function ReplayView({ id, row, detail, info, rows }) {
  const own = rows.find((each) => each.replay_of === id);
  const [replay, setReplay] = useState(lastReplays.get(id) ?? own?.id ?? '');
  const [model, setModel] = useState(row.model ?? '');
  const [stream, setStream] = useState(Boolean(row.stream));
  const [state, setState] = useState({ busy: false, error: '' });
  const others = rows.filter((each) => each.replay_of === id);
  const start = async (event) => {
    event.preventDefault();
    setState({ busy: true, error: '' });
    try {
      const answer = await send('POST', `${requestPath(id)}/replay`, { model, stream });
      lastReplays.set(id, answer.id);
      setReplay(answer.id);
      setState({ busy: false, error: '' });
    } catch (error) {
      setState({ busy: false, error: messageOf(error) });
    }
  };
  return html`<div class="replay">
    <form class="bar" onSubmit=${start}>
      <label>Model <input class="model" list="models" required value=${model} onInput=${(event) => setModel(event.target.value)} /></label>
      <datalist id="models">${(info.models ?? []).map((name) => html`<option value=${name}></option>`)}</datalist>
      <label class="check"><input type="checkbox" checked=${stream} onChange=${(event) => setStream(event.target.checked)} /> Stream</label>
      <button class="primary" disabled=${state.busy || !info.can_replay || !detail.bodies}>${state.busy ? 'Sending\u2026' : 'Send it again'}</button>
      <span class="dim">${!info.can_replay ? 'Your key may not replay requests.' : !detail.bodies ? 'The bodies of this request are not kept.' : 'It is a real request: it costs what the model costs, and is marked as a replay in usage.'}</span>
    </form>
    ${state.error && html`<p class="note bad" role="alert"><${Words} text=${state.error} max=${800} /></p>`}
    ${others.length > 1 && html`<div class="bar"><label>Compare with <select value=${replay} onChange=${(event) => setReplay(event.target.value)}>${others.map((each) => html`<option value=${each.id}>${`${each.model ?? each.id} \u00b7 ${each.status ?? each.state}`.slice(0, 100)}</option>`)}</select></label></div>`}
    <div class="pair">
      <section aria-label="The first answer"><h2>The first answer</h2><${AnswerOf} row=${row} detail=${detail} id=${id} /></section>
      <section aria-label="The replay"><h2>The replay</h2>${replay ? html`<${ReplayAnswer} key=${replay} id=${replay} rows=${rows} />` : html`<p class="nothing">Not sent yet.</p>`}</section>
    </div>
  </div>`;
}

function ReplayAnswer({ id, rows }) {
  const live = rows.find((row) => row.id === id);
  const { value, error } = useCall(requestPath(id), live?.state ?? '');
  const row = live ?? value?.row;
  if (!row || !value) return html`<${Loading} error=${error} what="the answer" />`;
  return html`<${AnswerOf} row=${row} detail=${value} id=${id} open />`;
}

function AnswerOf({ row, detail, id, open }) {
  const turn = detail.reply_canonical;
  return html`<p class="line"><${Status} row=${row} /> <${Words} text=${row.model ?? ''} max=${80} />${open && html` <a href=${`#/r/${encodeURIComponent(id)}`}>Open</a>`}</p>
    <dl class="pairs"><dt>Upstream</dt><dd><${Words} text=${row.upstream ?? ''} max=${60} /></dd><dt>Tokens</dt><dd>${number(row.input_tokens)} in, ${number(row.output_tokens)} out</dd><dt>Cost</dt><dd>${dollars(row.cost_usd) || 'not known'}</dd>${row.first_byte ? html`<dt>First byte</dt><dd>${duration(row.first_byte)}</dd>` : ''}<dt>Duration</dt><dd>${row.state === 'running' ? 'running' : duration(row.seconds)}</dd><dt>Stop</dt><dd><${Words} text=${row.stop ?? ''} max=${40} /></dd></dl>
    ${row.error && html`<p class="note bad"><${Words} text=${row.error} max=${800} /></p>`}
    ${turn ? turn.blocks.map((block) => html`<${Block} id=${id} block=${block} detail=${detail} />`) : html`<p class="dim">${row.state === 'running' ? 'The answer is running.' : 'No answer is kept.'}</p>`}`;
}
