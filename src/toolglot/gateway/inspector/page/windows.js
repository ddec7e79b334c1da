// Lists of which only what is in view is in the page. Law: the number of nodes does not grow with the list.
import { html, useEffect, useLayoutEffect, useRef, useState } from './vendor/htm-preact.js';

const BEYOND = 400; // pixels above and below that are rendered too

// Where a box is scrolled to, and its size, as state.
function useScroll(box) {
  const [view, setView] = useState({ top: 0, height: 800 });
  useLayoutEffect(() => {
    const element = box.current;
    let frame = 0;
    const measure = () => {
      frame = 0;
      setView((old) => {
        const top = element.scrollTop;
        const height = element.clientHeight;
        return old.top === top && old.height === height ? old : { top, height };
      });
    };
    const later = () => {
      frame ||= requestAnimationFrame(measure);
    };
    measure();
    element.addEventListener('scroll', later, { passive: true });
    const observer = new ResizeObserver(later);
    observer.observe(element);
    return () => {
      element.removeEventListener('scroll', later);
      observer.disconnect();
      cancelAnimationFrame(frame);
    };
  }, []);
  return view;
}

// A list whose items all have the same height. `cursor` is kept in view when it changes.
export function FixedList({ count, height, item, cursor = -1, class: name = '', ...attributes }) {
  const box = useRef(null);
  const view = useScroll(box);
  const from = Math.max(0, Math.floor((view.top - BEYOND) / height));
  const to = Math.min(count, Math.ceil((view.top + view.height + BEYOND) / height));
  useLayoutEffect(() => {
    const element = box.current;
    if (cursor < 0) return;
    if (cursor * height < element.scrollTop) element.scrollTop = cursor * height;
    else if ((cursor + 1) * height > element.scrollTop + element.clientHeight) {
      element.scrollTop = (cursor + 1) * height - element.clientHeight;
    }
  }, [cursor, height]);
  const items = [];
  for (let index = from; index < to; index += 1) items.push(item(index));
  return html`<div class=${`scroll ${name}`} ref=${box} tabindex="0" ...${attributes}>
    <div class="window" style=${{ height: `${count * height}px` }} role="presentation">
      <div class="window-items" style=${{ transform: `translateY(${from * height}px)` }} role="presentation">${items}</div>
    </div>
  </div>`;
}

// A list whose items have heights that are known when they are rendered. `goto` is {index, at}: a new object scrolls there.
// What is above the view and turns out higher or lower does not move the view.
export function MeasuredList({ count, estimate, item, onRange, goto, class: name = '', ...attributes }) {
  const box = useRef(null);
  const heights = useRef(new Map());
  const [, redraw] = useState(0);
  const view = useScroll(box);
  const wanted = useRef(null);

  const tops = [];
  let total = 0;
  for (let index = 0; index < count; index += 1) {
    tops.push(total);
    total += heights.current.get(index) ?? estimate;
  }
  const find = (y) => {
    let low = 0;
    let high = count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tops[middle] <= y) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  };
  const from = count ? find(view.top - BEYOND) : 0;
  const to = count ? Math.min(count, find(view.top + view.height + BEYOND) + 1) : 0;

  const observer = useRef(null);
  observer.current ??= new ResizeObserver((entries) => {
    const element = box.current;
    if (!element) return;
    let changed = false;
    let moved = 0;
    for (const entry of entries) {
      const index = Number(entry.target.dataset.index);
      const height = entry.borderBoxSize[0].blockSize;
      if (!entry.target.isConnected || height === 0) continue;
      const old = heights.current.get(index) ?? estimate;
      changed ||= !heights.current.has(index) || Math.abs(old - height) >= 1;
      heights.current.set(index, height);
      if (entry.target.offsetTop + old <= element.scrollTop) moved += height - old;
    }
    if (moved && wanted.current === null) element.scrollTop += moved;
    if (changed) redraw((old) => old + 1);
  });
  useEffect(() => () => observer.current.disconnect(), []);
  useEffect(() => onRange?.(from, to), [from, to, count]);

  useLayoutEffect(() => {
    wanted.current = goto ? Math.max(0, Math.min(count - 1, goto.index)) : null;
  }, [goto]);
  // It is scrolled to again until the heights of what is in view are known; then the reader has the wheel.
  useLayoutEffect(() => {
    if (wanted.current === null || !count) return;
    const element = box.current;
    const target = Math.max(0, Math.min(tops[wanted.current], total - element.clientHeight));
    if (Math.abs(element.scrollTop - target) > 1) {
      element.scrollTop = target;
      return;
    }
    for (let index = from; index < to; index += 1) if (!heights.current.has(index)) return;
    wanted.current = null;
  });

  const items = [];
  for (let index = from; index < to; index += 1) {
    items.push(html`<${Measured} key=${index} index=${index} top=${tops[index]} observer=${observer.current}>${item(index)}<//>`);
  }
  return html`<div class=${`scroll ${name}`} ref=${box} tabindex="0" ...${attributes}>
    <div class="window" style=${{ height: `${total}px` }} role="presentation">${items}</div>
  </div>`;
}

function Measured({ index, top, observer, children }) {
  const element = useRef(null);
  useLayoutEffect(() => {
    const here = element.current;
    observer.observe(here);
    return () => observer.unobserve(here);
  }, []);
  return html`<div class="measured" ref=${element} data-index=${index} style=${{ top: `${top}px` }} role="presentation">${children}</div>`;
}
