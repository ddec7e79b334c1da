// Text and numbers as people read them. Law: text of others becomes text nodes only, and what cannot be seen is shown.
import { html, useState } from './vendor/htm-preact.js';

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

function seen(char) {
  return `\u27e8U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
}

// The text with its control characters, and those that turn its direction, as visible signs.
export function visible(text) {
  return String(text ?? '').replace(UNSEEN, seen);
}

// The first characters of a text; a sign that is two of them long is not cut in the middle.
export function head(text, max) {
  const last = text.charCodeAt(max - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? max - 1 : max);
}

// What a button says that shows some of what is left.
export function moreOf(shown, left, one) {
  return shown < left ? `Show ${number(shown)} more of ${plural(left, one)}` : `Show ${number(left)} more ${left === 1 ? one : `${one}s`}`;
}

// One line of untrusted text: its direction does not reach what is around it.
export function Words({ text, max = 300, class: name = '' }) {
  const whole = String(text ?? '');
  const shown = whole.length > max ? `${head(whole, max)}\u2026` : whole;
  return html`<bdi class=${name} title=${shown === whole ? undefined : visible(whole.slice(0, 2000))}>${visible(shown)}</bdi>`;
}

const FIRST = 1600;
const STEP = 20000;

// Text of any length: its beginning, and the rest piece by piece.
export function LongText({ text, cut = 0, first = FIRST, class: name = '' }) {
  const [limit, setLimit] = useState(first);
  const whole = String(text ?? '');
  const left = whole.length - limit;
  return html`<div class="long">
    <pre class=${`text ${name}`} dir="auto">${visible(left > 0 ? head(whole, limit) : whole)}</pre>
    ${left > 0 && html`<button class="more" onClick=${() => setLimit(limit + STEP)}>${moreOf(Math.min(STEP, left), left, 'character')}</button>`}
    ${left <= 0 && cut > 0 && html`<p class="dim">${number(cut)} more characters are in the raw JSON.</p>`}
  </div>`;
}

const WHOLE = new Intl.NumberFormat('en');

export function number(value) {
  return value === null || value === undefined ? '' : WHOLE.format(value);
}

// A number in few characters: 950, 12.3k, 4.1M.
export function brief(value) {
  if (value === null || value === undefined) return '';
  for (const [size, letter] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (value >= size) return `${(value / size).toFixed(value >= 100 * size ? 0 : 1)}${letter}`;
  }
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}

export function dollars(value) {
  if (value === null || value === undefined) return '';
  if (value === 0) return '$0';
  if (value < 0.0001) return '<$.0001';
  return `$${value.toFixed(value < 1 ? 4 : 2)}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return '';
  if (seconds < 0.00995 && seconds > 0) return `${(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const whole = Math.round(seconds);
  return whole < 3600 ? `${Math.floor(whole / 60)}m ${whole % 60}s` : `${Math.floor(whole / 3600)}h ${Math.floor((whole % 3600) / 60)}m`;
}

export function clock(time) {
  return time ? new Date(time * 1000).toLocaleTimeString('en-GB') : '';
}

export function moment(time) {
  return time ? new Date(time * 1000).toLocaleString('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit' }) : '';
}

export function bytes(count) {
  if (count === null || count === undefined) return '';
  if (count < 1000) return `${count} B`;
  return count < 1e6 ? `${(count / 1e3).toFixed(1)} kB` : `${(count / 1e6).toFixed(1)} MB`;
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
