// JSON as it stands in a body: indented and foldable, each literal as it was sent. Law: reading it is linear in its length.
import { html, useEffect, useLayoutEffect, useMemo, useState } from './vendor/htm-preact.js';
import { LongText, Words, head, moreOf, number, visible } from './text.js';
import { FixedList } from './windows.js';

const MAX_LINES = 1200000;
const LARGE = 12; // lines of a field that is folded at first
const FEW = 6; // lines that are not worth a button
const LITERAL = 360; // characters of a literal that a line shows

// The lines of a JSON text, or of several with commas between, or null if it is not JSON. If the text is cut, its end may be
// missing. A line: depth, key ("" or with its quotes), text, and for a line that
// opens something: close (the index of the line that closes it) and size (how much is in it).
export function jsonLines(text, isCut = false) {
  const lines = [];
  const open = [];
  const end = text.length;
  let at = 0;
  let key = '';
  const space = () => {
    for (let code = text.charCodeAt(at); code === 32 || code === 10 || code === 13 || code === 9;) {
      at += 1;
      code = text.charCodeAt(at);
    }
  };
  const broken = () => (isCut && lines.length ? lines : null);
  const string = () => {
    const start = at;
    let quote = at;
    for (;;) {
      quote = text.indexOf('"', quote + 1);
      if (quote < 0) {
        if (!isCut) return null;
        at = end;
        return text.slice(start);
      }
      let back = quote - 1;
      while (back > start && text.charCodeAt(back) === 92) back -= 1;
      if ((quote - back) % 2 === 1) break;
    }
    at = quote + 1;
    return text.slice(start, at);
  };
  const readKey = () => {
    space();
    if (text[at] !== '"') return false;
    key = string();
    space();
    if (key === null || text[at] !== ':') return false;
    at += 1;
    return true;
  };
  for (;;) {
    space();
    if (at >= end || lines.length > MAX_LINES) return broken();
    const first = text[at];
    if (first === '{' || first === '[') {
      const closer = first === '{' ? '}' : ']';
      at += 1;
      space();
      if (text[at] === closer) {
        at += 1;
        lines.push({ depth: open.length, key, text: first + closer, close: -1, size: 0, comma: false });
        key = '';
      } else {
        lines.push({ depth: open.length, key, text: first, close: 0, size: 1, comma: false });
        open.push({ index: lines.length - 1, closer });
        key = '';
        if (first === '{' && !readKey()) return broken();
        continue;
      }
    } else {
      let literal;
      if (first === '"') literal = string();
      else {
        const start = at;
        while (at < end && !/[\s,\]}:"[{]/.test(text[at])) at += 1;
        literal = text.slice(start, at);
      }
      if (!literal) return broken();
      lines.push({ depth: open.length, key, text: literal, close: -1, size: 0, comma: false });
      key = '';
    }
    for (;;) {
      space();
      if (at >= end) return open.length ? broken() : lines;
      if (!open.length) {
        if (text[at] !== ',') return broken();
        at += 1;
        lines[lines.length - 1].comma = true;
        break;
      }
      const inner = open[open.length - 1];
      if (text[at] === ',') {
        at += 1;
        lines[lines.length - 1].comma = true;
        lines[inner.index].size += 1;
        if (inner.closer === '}' && !readKey()) return broken();
        break;
      }
      if (text[at] !== inner.closer) return broken();
      at += 1;
      open.pop();
      lines[inner.index].close = lines.length;
      lines.push({ depth: open.length, key: '', text: inner.closer, close: -1, size: 0, comma: false });
    }
  }
}

function literalClass(text) {
  if (text[0] === '"') return 'j-string';
  return text[0] === '{' || text[0] === '[' || text[0] === '}' || text[0] === ']' ? 'j-mark' : 'j-number';
}

function decoded(literal) {
  try {
    return JSON.parse(literal);
  } catch {
    return literal;
  }
}

// One line. `linked` gives the canonical id of a literal that is an id; `peek` shows a long literal as a whole.
export function JsonLine({ line, folded = false, linked, peek }) {
  const long = line.text.length > LITERAL;
  const link = linked && line.text[0] === '"' && line.text.length < 200 ? linked.get(line.text.slice(1, -1)) : undefined;
  const shown = long ? `${head(line.text, LITERAL)}\u2026` : line.text;
  const closer = line.text === '{' ? '}' : ']';
  return html`${line.key && html`<span class="j-key">${visible(line.key.length > 200 ? `${line.key.slice(0, 200)}\u2026` : line.key)}</span><span class="j-mark">: </span>`}<bdi
      class=${literalClass(line.text)} data-link=${link}>${visible(shown)}</bdi>${folded && html`<span class="dim"> ${number(line.size)} </span><span class="j-mark">${closer}</span>`}${
    long && html` <button class="more inline" onClick=${() => peek(decoded(line.text))}>all ${number(line.text.length)} characters</button>`}${
    line.comma && html`<span class="j-mark">,</span>`}`;
}

// A text that is shown over the page.
export function Peek({ text, title = 'The whole text', close }) {
  return html`<${Dialog} title=${title} close=${close}><${LongText} text=${text} first=${20000} /><//>`;
}

export function Dialog({ title, close, children, class: name = '' }) {
  useLayoutEffect(() => { // with what it shows: a key that is pressed at once reaches it
    const before = document.activeElement;
    document.querySelector('.dialog button')?.focus();
    return () => before?.focus?.();
  }, []);
  return html`<div class="veil" onClick=${(event) => event.target === event.currentTarget && close()}>
    <section class=${`dialog ${name}`} role="dialog" aria-modal="true" aria-label=${title}
      onKeyDown=${(event) => {
        if (event.key === 'Escape') close();
        event.stopPropagation();
      }}>
      <div class="dialog-head"><h2>${title}</h2><button class="plain" aria-label="Close" onClick=${close}>\u2715</button></div>
      <div class="dialog-body">${children}</div>
    </section>
  </div>`;
}

const LINE = 19;

// A whole body: JSON with folding, or lines of text, such as those of a stream.
export function BodyView({ text, label }) {
  const [peeked, setPeeked] = useState(null);
  const lines = useMemo(() => jsonLines(text), [text]);
  const plain = useMemo(() => (lines ? null : text.split('\n')), [text, lines]);
  const [folds, setFolds] = useState(new Set());
  useEffect(() => setFolds(new Set()), [text]);
  const shown = useMemo(() => (lines ? unfolded(lines, folds) : null), [lines, folds]);
  const toggle = (index) => {
    const next = new Set(folds);
    if (!next.delete(index)) next.add(index);
    setFolds(next);
  };
  const foldAll = (depth) => setFolds(new Set(lines.flatMap((line, index) => (line.close > 0 && line.depth >= depth ? [index] : []))));
  const jsonItem = (position) => {
    const index = shown[position];
    const line = lines[index];
    const opens = line.close > 0;
    return html`<div class="j-line" key=${index} style=${{ paddingInlineStart: `${18 + 14 * Math.min(line.depth, 60)}px` }}>
      ${opens && html`<button class="fold" aria-expanded=${!folds.has(index)} aria-label=${`Fold ${line.key || 'value'}`} onClick=${() => toggle(index)}>${folds.has(index) ? '\u25b8' : '\u25be'}</button>`}
      <${JsonLine} line=${line} folded=${folds.has(index)} peek=${setPeeked} />
    </div>`;
  };
  const plainItem = (index) => {
    const line = plain[index];
    return html`<div class="j-line" key=${index}><${Words} text=${line} max=${LITERAL} />${line.length > LITERAL
      && html` <button class="more inline" onClick=${() => setPeeked(line)}>all ${number(line.length)} characters</button>`}</div>`;
  };
  return html`<div class="body-view">
    ${lines && lines.length > 3 && html`<div class="bar quiet"><button onClick=${() => foldAll(1)}>Fold all</button><button onClick=${() => foldAll(2)}>Fold deeper</button><button onClick=${() => setFolds(new Set())}>Unfold all</button><span class="dim">${number(lines.length)} lines</span></div>`}
    <${FixedList} class="code" role="group" aria-label=${label} height=${LINE} count=${lines ? shown.length : plain.length} item=${lines ? jsonItem : plainItem} />
    ${peeked !== null && html`<${Peek} text=${peeked} close=${() => setPeeked(null)} />`}
  </div>`;
}

// The lines that are shown: those of what is folded are left out.
function unfolded(lines, folds) {
  if (!folds.size) return lines.map((_, index) => index);
  const shown = [];
  for (let index = 0; index < lines.length; index += 1) {
    shown.push(index);
    if (folds.has(index)) index = lines[index].close;
  }
  return shown;
}

// What is folded at first: the large fields of a body, of which the other columns have the content.
function largeFields(lines) {
  return new Set(lines.flatMap((line, index) => (line.depth === 1 && line.close > index + LARGE ? [index] : [])));
}

// A part of a body in a column: its first lines, and more on demand. `marks`: of a field, what became of it.
export function PartOfBody({ text, cut = 0, linked, peek, lines: first = 24, folding = false, marks }) {
  const [limit, setLimit] = useState(first);
  const lines = useMemo(() => jsonLines(text, cut > 0), [text, cut]);
  const [folds, setFolds] = useState(null);
  if (!lines) return html`<${LongText} class="code" text=${text} cut=${cut} first=${1200} />`;
  const folded = folds ?? (folding ? largeFields(lines) : new Set());
  const shown = unfolded(lines, folded);
  const left = shown.length - limit <= FEW ? 0 : shown.length - limit;
  const toggle = (index) => {
    const next = new Set(folded);
    if (!next.delete(index)) next.add(index);
    setFolds(next);
  };
  const one = (index) => {
    const line = lines[index];
    const mark = line.depth === 1 && line.key ? marks?.get(line.key.slice(1, -1)) : undefined;
    return html`<div key=${index} class=${mark && `field-${mark.gravity}`} data-link=${mark?.link} style=${{ paddingInlineStart: `${12 * Math.min(line.depth, 20)}px` }}>${folding && line.depth === 1 && line.close > 0
      && html`<button class="fold" aria-expanded=${!folded.has(index)} aria-label=${`Fold ${line.key || 'value'}`} onClick=${() => toggle(index)}>${folded.has(index) ? '\u25b8' : '\u25be'}</button>`}<${JsonLine} line=${line} folded=${folded.has(index)} linked=${linked} peek=${peek} /></div>`;
  };
  return html`<div class="code part">
    ${(left ? shown.slice(0, limit) : shown).map(one)}
    ${left > 0 && html`<button class="more" onClick=${() => setLimit(limit + 200)}>${moreOf(Math.min(200, left), left, 'line')}</button>`}
    ${!left && cut > 0 && html`<p class="dim cut-note">${number(cut)} more characters are in the raw JSON.</p>`}
  </div>`;
}
