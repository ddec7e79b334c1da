// The page: where it is, the rows that the gateway sends, the key, the theme.
import { html, render, useCallback, useEffect, useRef, useState } from './vendor/htm-preact.js';
import { follow, getJson, recall, remember, send, setKey } from './api.js';
import { FleetView } from './fleet.js';
import { Dialog } from './json.js';
import { Help, useKeys } from './keys.js';
import { RequestList } from './list.js';
import { RequestView } from './request.js';
import { Words, messageOf, plural } from './text.js';

const MAX_ROWS = 5000;
const PAGE = 500;
const HIDDEN_MS = 20000; // after which a hidden page follows no more

function decode(word) {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

// #/ , #/fleet , #/r/ID , #/r/ID/TAB , #/r/ID/TAB/PART
function readPlace() {
  const [view = '', id = '', tab = '', part = ''] = location.hash.replace(/^#\/?/, '').split('/').map(decode);
  return { view: view === 'r' && id ? 'request' : view === 'fleet' ? 'fleet' : 'list', id, tab, part };
}

function usePlace() {
  const [place, setPlace] = useState(readPlace);
  useEffect(() => {
    const change = () => setPlace(readPlace());
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return place;
}

// The rows, newest first, as they are and as they change. A burst of events is one change of the page.
function useRows(info, paused) {
  const [shown, setShown] = useState([]);
  const [live, setLive] = useState('waiting');
  const [error, setError] = useState(null);
  const [waiting, setWaiting] = useState(0);
  const all = useRef(new Map());
  const halted = useRef(paused);
  const fresh = useRef(new Set());
  halted.current = paused;
  const publish = useCallback(() => {
    const sorted = [...all.current.values()].sort((a, b) => b.time - a.time || (a.id < b.id ? 1 : -1));
    for (const row of sorted.splice(MAX_ROWS)) all.current.delete(row.id);
    setShown(sorted);
  }, []);
  useEffect(() => {
    if (!paused) {
      fresh.current.clear();
      setWaiting(0);
      publish();
    }
  }, [paused]);
  useEffect(() => {
    if (!info) return undefined;
    const control = new AbortController();
    let timer = 0;
    const later = () => {
      timer ||= setTimeout(() => {
        timer = 0;
        if (halted.current) setWaiting(fresh.current.size);
        else publish();
      }, 100);
    };
    const read = async () => {
      try {
        const found = new Map();
        let before = '';
        for (let more = true; more && found.size < MAX_ROWS;) {
          const answer = await getJson(`/requests?limit=${PAGE}${before && `&before=${encodeURIComponent(before)}`}`, control.signal);
          for (const row of answer.rows) found.set(row.id, row);
          more = answer.more && answer.rows.length > 0;
          before = answer.next ?? answer.rows[answer.rows.length - 1]?.id ?? '';
        }
        all.current = found;
        setError(null);
        publish();
      } catch (failure) {
        if (failure.name !== 'AbortError') setError(failure);
      }
    };
    const receive = (name, value) => {
      if (name === 'row') {
        if (!all.current.has(value.id)) fresh.current.add(value.id);
        all.current.set(value.id, value);
      } else if (name === 'drop') {
        for (const id of value.ids) {
          all.current.delete(id);
          fresh.current.delete(id);
        }
      } else return;
      later();
    };
    const state = (next) => {
      setLive(typeof next === 'string' ? next : 'off');
      if (next === 'live') read();
      else if (typeof next !== 'string') setError(next);
    };
    if (info.mode !== 'gateway') {
      read();
      return () => control.abort();
    }
    // A browser has six connections for a gateway: a page that nobody sees leaves its own to others.
    let following = null;
    let leaving = 0;
    const start = () => {
      clearTimeout(leaving);
      if (following) return;
      following = new AbortController();
      follow(receive, state, following.signal);
    };
    const stop = () => {
      following?.abort();
      following = null;
    };
    const look = () => {
      if (!document.hidden) start();
      else leaving = setTimeout(stop, HIDDEN_MS);
    };
    addEventListener('pagehide', stop);
    addEventListener('pageshow', look);
    document.addEventListener('visibilitychange', look);
    start();
    return () => {
      removeEventListener('pagehide', stop);
      removeEventListener('pageshow', look);
      document.removeEventListener('visibilitychange', look);
      stop();
      control.abort();
      clearTimeout(timer);
      clearTimeout(leaving);
    };
  }, [info]);
  const clear = () => {
    all.current = new Map();
    publish();
  };
  return { rows: shown, live, error, waiting, clear };
}

function useTheme() {
  const [theme, setTheme] = useState(recall('toolglot-theme') ?? 'auto');
  useEffect(() => {
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    remember('toolglot-theme', theme);
  }, [theme]);
  const dark = theme === 'dark' || (theme === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches);
  return [dark ? 'dark' : 'light', () => setTheme(dark ? 'light' : 'dark')];
}

const LIVE = { live: 'Live', waiting: 'Connecting\u2026', off: 'Not connected' };

function App() {
  const place = usePlace();
  const [theme, switchTheme] = useTheme();
  const [info, setInfo] = useState(null);
  const [refused, setRefused] = useState(null);
  const [tries, setTries] = useState(0);
  const [help, setHelp] = useState(false);
  const [paused, setPaused] = useState(false);
  const [purging, setPurging] = useState(false);
  const { rows, live, error, waiting, clear } = useRows(info, paused);

  useEffect(() => {
    getJson('/info').then((found) => {
      setRefused(null);
      setInfo(found);
    }, setRefused);
  }, [tries]);
  useEffect(() => {
    if (error?.status === 401) setRefused(error);
  }, [error]);
  const go = (hash) => {
    location.hash = hash;
  };
  const openRequest = (id, tab = '') => go(`#/r/${encodeURIComponent(id)}${tab ? `/${tab}` : ''}`);
  useKeys({
    '?': () => setHelp(true),
    t: switchTheme,
    l: () => go('#/'),
    f: () => info?.mode === 'gateway' && go('#/fleet'),
    ...(place.view === 'fleet' ? { Escape: () => go('#/') } : {}),
  });
  const purge = async () => {
    await send('DELETE', '/requests');
    clear();
    setPurging(false);
  };

  return html`
    <header class="top">
      <a class="brand" href="#/">toolglot</a>
      ${info && html`<nav aria-label="Main"><a href="#/" aria-current=${place.view === 'list' ? 'page' : undefined}>Requests</a>${info.mode === 'gateway' && html`<a href="#/fleet" aria-current=${place.view === 'fleet' ? 'page' : undefined}>Fleet</a>`}</nav>`}
      <span class="right"></span>
      ${info?.mode === 'gateway' && html`<span class=${`live ${paused ? 'paused' : live}`} role="status">${paused ? 'Paused' : LIVE[live]}</span>`}
      ${info && info.mode !== 'gateway' && html`<span class="dim">${info.mode === 'export' ? 'Exported file' : 'From files'}</span>`}
      ${info && html`<span class="dim only-wide">${info.version}</span>`}
      <button class="plain" aria-label=${`Switch to ${theme === 'dark' ? 'light' : 'dark'}`} title="Light or dark ( t )" onClick=${switchTheme}>${theme === 'dark' ? '\u263c' : '\u263e'}</button>
      <button class="plain" aria-label="Help" title="Keyboard ( ? )" onClick=${() => setHelp(true)}>?</button>
    </header>
    ${refused?.status === 401 ? html`<${KeyForm} message=${tries ? refused.message : ''} enter=${(key) => {
      setKey(key);
      setInfo(null);
      setTries(tries + 1);
    }} />`
    : refused ? html`<main class="view"><p class="note bad" role="alert"><${Words} text=${messageOf(refused)} max=${600} /></p><p class="nothing"><button onClick=${() => setTries(tries + 1)}>Try again</button></p></main>`
    : !info ? html`<main class="view"><p class="nothing" role="status">Connecting\u2026</p></main>`
    : place.view === 'request' ? html`<${RequestView} key=${place.id} id=${place.id} tab=${place.tab} part=${place.part} rows=${rows} info=${info} openRequest=${openRequest} go=${go} back=${() => go('#/')} />`
    : place.view === 'fleet' ? html`<${FleetView} theme=${theme} />`
    : html`<${RequestList} rows=${rows} info=${info} live=${live} paused=${paused} waiting=${waiting} setPaused=${setPaused} purge=${() => setPurging(true)} openRequest=${openRequest} error=${error} />`}
    ${help && html`<${Help} close=${() => setHelp(false)} />`}
    ${purging && html`<${Dialog} title="Forget all requests?" class="narrow" close=${() => setPurging(false)}>
      <p>The gateway drops ${info.is_admin ? 'everything that it keeps of requests' : 'what it keeps of the requests of your key'} (${plural(rows.length, 'request')}). Usage and budgets stay as they are.</p>
      <p class="actions"><button onClick=${() => setPurging(false)}>Keep them</button><button class="danger" onClick=${purge}>Forget all</button></p><//>`}`;
}

function KeyForm({ message, enter }) {
  const field = useRef(null);
  useEffect(() => field.current.focus(), []);
  return html`<main class="view"><form class="key-form" onSubmit=${(event) => {
    event.preventDefault();
    enter(field.current.value.trim());
  }}>
    <h1>This gateway asks for a key</h1>
    <p>With a client key you see the requests of this key; with an admin key, all of them. The key stays in this tab.</p>
    <label>Key <input ref=${field} type="password" autocomplete="off" required /></label>
    ${message && html`<p class="note bad" role="alert"><${Words} text=${message} max=${300} /></p>`}
    <button class="primary">Open the inspector</button>
  </form></main>`;
}

render(html`<${App} />`, document.getElementById('app'));
