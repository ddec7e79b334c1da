// The keyboard: which key does what, and the page that says so.
import { html, useLayoutEffect, useRef } from './vendor/htm-preact.js';
import { Dialog } from './json.js';

export const KEYS = [
  ['/', 'Search'],
  ['j  k', 'Next and previous request'],
  ['Enter', 'Open the request; fold or unfold a conversation'],
  ['Esc', 'Back, close, or clear the search'],
  ['1 \u2026 6', 'In a request: conversation, diff, timeline, targets, replay, raw'],
  ['g', 'Group by conversation'],
  ['p', 'Pause'],
  ['l  f', 'Requests; fleet'],
  ['t', 'Light or dark'],
  ['?', 'This help'],
];

// Call the function of a key that is pressed anywhere outside of a field.
export function useKeys(actions) {
  const latest = useRef(actions);
  latest.current = actions;
  useLayoutEffect(() => { // with what it shows: a key that is pressed at once is not lost
    const press = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (document.querySelector('.veil')) return;
      const field = event.target.closest?.('input:not([type=checkbox]), select, textarea');
      if (field && event.key !== 'Escape') return;
      if (event.key === 'Enter' && event.target.closest?.('a, button')) return;
      const action = Object.hasOwn(latest.current, event.key) ? latest.current[event.key] : null;
      if (!action) return;
      if (field) field.blur();
      if (action(event) !== false) event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

export function Help({ close }) {
  return html`<${Dialog} title="Keyboard" close=${close} class="narrow">
    <dl class="keys">${KEYS.map(([key, text]) => html`<dt><kbd>${key}</kbd></dt><dd>${text}</dd>`)}</dl>
    <p class="dim">Search takes words, and <code>model:</code>, <code>client:</code>, <code>upstream:</code>, <code>status:</code>, <code>is:failed</code>, <code>is:running</code>, <code>is:changed</code>, <code>is:lossy</code>, <code>is:clean</code>, <code>is:replay</code>.</p>
  <//>`;
}
