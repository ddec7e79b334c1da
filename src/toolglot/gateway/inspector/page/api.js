// Everything that the page asks for: from the gateway, or from the data of an exported file.
const holder = document.getElementById('toolglot-data');
const exported = holder ? JSON.parse(holder.textContent) : null;
const API = '/inspector/api';
const NOT_IN_FILE = 'This file does not have it. Open the request in the inspector of the gateway.';

export class CallError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let clientKey = recall('toolglot-key', true) ?? '';

// What the browser remembers of this page: of the tab, or for good. It may refuse to.
export function recall(name, tab = false) {
  try {
    return (tab ? sessionStorage : localStorage).getItem(name);
  } catch {
    return null;
  }
}

export function remember(name, value, tab = false) {
  try {
    (tab ? sessionStorage : localStorage).setItem(name, value);
  } catch {
    // Nothing is remembered then.
  }
}

export function setKey(key) {
  clientKey = key;
  remember('toolglot-key', key, true);
}

function headers(more = {}) {
  return clientKey ? { ...more, authorization: `Bearer ${clientKey}` } : more;
}

async function failure(response) {
  let message = `The gateway answered with ${response.status}.`;
  try {
    message = (await response.json()).error?.message ?? message;
  } catch {
    // The status says it.
  }
  return new CallError(response.status, message);
}

async function fetched(path, options = {}) {
  let response;
  try {
    response = await fetch(API + path, { cache: 'no-store', ...options, headers: headers(options.headers) });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new CallError(0, 'The gateway does not answer. Is it still running?');
  }
  if (!response.ok) throw await failure(response);
  return response;
}

export async function getJson(path, signal) {
  return exported ? fromFile(path) : (await fetched(path, { signal })).json();
}

export async function getText(path, signal) {
  return exported ? fromFile(path) : (await fetched(path, { signal })).text();
}

export async function getBlob(path) {
  if (exported) throw new CallError(404, NOT_IN_FILE);
  return (await fetched(path)).blob();
}

export async function send(method, path, value) {
  if (exported) throw new CallError(404, NOT_IN_FILE);
  const body = value === undefined ? undefined : JSON.stringify(value);
  const response = await fetched(path, { method, body, headers: body ? { 'content-type': 'application/json' } : {} });
  return response.json();
}

export const requestPath = (id) => `/requests/${encodeURIComponent(id)}`;

// --- an exported file -------------------------------------------------------------------------------

const PARTS = { diff: 'diffs', timeline: 'timelines', targets: 'targets' };

function own(holds, name) {
  return holds && Object.hasOwn(holds, name) ? holds[name] : undefined;
}

function fromFile(path) {
  const [route, query] = path.split('?');
  const words = route.split('/').slice(1).map(decodeURIComponent);
  const asked = new URLSearchParams(query);
  let found;
  if (route === '/info') found = exported.info;
  else if (route === '/requests') found = { rows: exported.rows, more: false };
  else if (words[0] === 'requests' && words.length === 2) found = turnsOf(own(exported.details, words[1]), asked);
  else if (words[2] === 'body') found = own(exported.details, words[1])?.[words[3]] ?? undefined;
  else if (words[2] === 'explain') found = own(exported.explains, asked.get('rule'));
  else if (words[2] === 'code') found = own(own(exported.codes, words[1]), asked.get('as'));
  else if (words[2] === 'targets' && words[3]) found = own(own(exported.renderings, words[1]), words[3]);
  else if (Object.hasOwn(PARTS, words[2] ?? '')) found = own(exported[PARTS[words[2]]], words[1]);
  if (found === undefined) throw new CallError(404, NOT_IN_FILE);
  return found;
}

function turnsOf(detail, asked) {
  if (!detail?.canonical || !asked.has('from')) return detail;
  const turns = detail.canonical.turns.slice(Number(asked.get('from')), Number(asked.get('to')));
  return { ...detail, canonical: { ...detail.canonical, turns } };
}

// --- server-sent events -----------------------------------------------------------------------------

// Read the events of a body. `receive` gets the name and the value of each.
async function readEvents(body, receive) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split('\n\n');
    rest = events.pop();
    for (const event of events) {
      let name = 'message';
      const data = [];
      for (const line of event.split('\n')) {
        if (line.startsWith('event:')) name = line.slice(6).trim();
        else if (line.startsWith('data:')) data.push(line.slice(5).trimStart());
      }
      if (data.length) receive(name, JSON.parse(data.join('\n')));
    }
  }
}

// Follow the events of the gateway until the signal says stop. `onState` gets "live", "waiting", and for a failure that
// waiting does not help against, the error. It connects again with growing pauses.
export async function follow(receive, onState, signal) {
  if (exported) return;
  for (let pause = 500; !signal.aborted; pause = Math.min(2 * pause, 10000)) {
    try {
      const response = await fetched('/events', { signal, headers: { accept: 'text/event-stream' } });
      onState('live');
      pause = 500;
      await readEvents(response.body, receive);
    } catch (error) {
      if (signal.aborted) return;
      if ([401, 403, 404].includes(error.status)) {
        onState(error);
        return;
      }
    }
    if (signal.aborted) return;
    onState('waiting');
    await new Promise((resume) => setTimeout(resume, pause));
  }
}

// Save what the gateway answers as a file.
export async function download(path, name) {
  const address = URL.createObjectURL(await getBlob(path));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}
