// The window on the time axis.

function span(values) {
  let [from, to] = [Infinity, -Infinity];
  for (const value of values) if (isKnown(value)) [from, to] = [Math.min(from, value), Math.max(to, value)];
  return from <= to ? { from, to } : null;
}

const ownTimes = life => [
  0, life.length_ms, ...life.stages.flatMap(stage => [stage.start_ms, stage.end_ms]),
  ...(life.tokens?.steps ?? []).map(step => step.at_ms),
];
const aroundTimes = life => [
  ...life.events.map(event => event.at_ms), ...life.neighbours.flatMap(other => [other.start_ms, other.end_ms]),
];

class View {
  constructor(lives) {
    const own = span(lives.flatMap(ownTimes));
    this.own = own;
    this.isTimed = own.to > own.from;
    const end = this.isTimed ? own.to : own.from + 1;
    const margin = (end - own.from) * 0.01;
    this.whole = { from: own.from - margin, to: end + margin };
    this.reach = span([this.whole.from, this.whole.to, ...lives.flatMap(aroundTimes)]);
    this.lives = lives;
    this.panes = [];
    this.onmove = () => {};
    this.fit();
  }

  fit() {
    this.move(this.whole.from, this.whole.to);
  }

  fitTokens() {
    const tokens = span(this.lives.flatMap(life => life.tokens?.steps ?? []).map(step => step.at_ms));
    if (!tokens) return this.fit();
    const margin = Math.max((tokens.to - tokens.from) * 0.02, this.smallest / 2);
    this.move(tokens.from - margin, tokens.to + margin);
  }

  get smallest() {
    return (this.whole.to - this.whole.from) / 20000;
  }

  zoom(factor, about = (this.from + this.to) / 2) {
    const most = this.reach.to - this.reach.from;
    const kept = Math.min(most, Math.max(this.smallest, (this.to - this.from) * factor)) / (this.to - this.from);
    this.move(about - (about - this.from) * kept, about + (this.to - about) * kept);
  }

  pan(part) {
    const by = (this.to - this.from) * part;
    this.move(this.from + by, this.to + by);
  }

  /** Brings a place into the window, in its middle where it was outside. */
  reveal(at) {
    if (at < this.from || at > this.to) this.pan((at - (this.from + this.to) / 2) / (this.to - this.from));
  }

  move(from, to) {
    const width = to - from;
    this.from = Math.max(this.reach.from, Math.min(from, this.reach.to - width));
    this.to = this.from + width;
    this.onmove();
    if (this.waiting || !this.panes.length) return;
    this.waiting = requestAnimationFrame(() => this.draw());
  }

  draw(width) {
    cancelAnimationFrame(this.waiting);
    this.waiting = null;
    for (const pane of this.panes) pane.draw(width);
  }

  text() {
    if (!this.isTimed) return 'no record has a time';
    const isNear = (a, b) => Math.abs(a - b) < this.smallest;
    const { from, to } = isNear(this.from, this.whole.from) && isNear(this.to, this.whole.to) ? this.own : this;
    const clock = this.lives.length === 1 && this.lives[0].clock.offset ? this.lives[0].clock : null;
    const clocks = clock ? `, ${clock.time(from).split(' ')[0]} to ${clock.time(to)}` : '';
    return `${brief(from)} to ${brief(to)}${clocks}`;
  }
}

/** A drawing over the window. `paint` gives its parts, what stands above the cursor, and its height. */
class Pane {
  constructor(view, label, paint) {
    this.view = view;
    this.paint = paint;
    this.cursor = shape('g', { class: 'cursor' });
    this.node = shape('svg', { class: 'pane', role: 'img', 'aria-label': label });
    this.cursorAt = null;
    view.panes.push(this);
    this.listen();
  }

  draw(width = this.node.parentNode?.clientWidth) {
    if (!width) return;
    const { view } = this;
    const wide = width >= 860;
    const left = wide ? 190 : 0;
    const right = width - (wide ? 262 : 0);
    const x = at => left + (at - view.from) / (view.to - view.from) * (right - left);
    this.frame = { width, wide, left, right, x, view };
    const { parts, above = [], height } = this.paint(this.frame);
    this.height = height;
    this.node.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.node.replaceChildren(...parts, this.cursor, ...above);
    this.point(this.cursorAt);
  }

  /** Sets the cursor alone, so that walking the tokens redraws nothing. */
  point(at) {
    this.cursorAt = at;
    if (!this.frame) return;
    const { x, left, right } = this.frame;
    const isSeen = isKnown(at) && x(at) >= left - 0.5 && x(at) <= right + 0.5;
    const [foot, place] = [this.foot ?? this.height, isSeen ? x(at).toFixed(1) : 0];
    const handle = this.foot ? [shape('path', { d: `M${place} ${foot + 1}l5 8h-10z` })] : [];
    this.cursor.replaceChildren(...(isSeen ? [shape('path', { d: `M${place} 14V${foot}` }), ...handle] : []));
  }

  at(event) {
    const box = this.node.getBoundingClientRect();
    const { left, right } = this.frame;
    const place = (event.clientX - box.left) / box.width * this.frame.width;
    return this.view.from + (place - left) / (right - left) * (this.view.to - this.view.from);
  }

  listen() {
    let drag = null;
    this.node.addEventListener('pointerdown', event => {
      if (event.button === 0) drag = { x: event.clientX, from: this.view.from, to: this.view.to, moved: false };
    });
    this.node.addEventListener('pointermove', event => {
      if (!drag || !event.buttons) return;
      const scale = (drag.to - drag.from) / ((this.frame.right - this.frame.left) || 1);
      const by = (drag.x - event.clientX) * scale;
      drag.moved ||= Math.abs(drag.x - event.clientX) > 5;
      if (drag.moved) {
        this.node.setPointerCapture(event.pointerId);
        this.view.move(drag.from + by, drag.to + by);
      }
    });
    this.node.addEventListener('pointerup', event => {
      if (drag && !drag.moved) this.onclick?.(this.at(event));
      drag = null;
    });
    this.node.addEventListener('pointercancel', () => drag = null);
    // A plain wheel scrolls the page; with Ctrl, as a pinch on a touch pad sends it, it zooms.
    this.node.addEventListener('wheel', event => {
      if (!event.ctrlKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
      event.preventDefault();
      if (event.ctrlKey) this.view.zoom(Math.exp(event.deltaY * 0.004), this.at(event));
      else this.view.pan(event.deltaX / (this.frame.right - this.frame.left));
    }, { passive: false });
  }
}

function ticks(from, to, room) {
  const raw = (to - from) / Math.max(2, room / 92);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find(factor => factor * power >= raw * 0.999) * power;
  const inSeconds = Math.max(Math.abs(from), Math.abs(to)) >= 1000;
  const [divisor, unit] = inSeconds ? [1000, 's'] : [1, 'ms'];
  const decimals = Math.max(0, -Math.floor(Math.log10(step / divisor) + 1e-9));
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.floor(to / step) - first + 1 }, (_, n) => {
    const at = (first + n) * step;
    const value = (at / divisor).toLocaleString('en-US', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
    return { at, text: `${value} ${unit}` };
  });
}

function paintAxis({ view, x, left, right }, y, height) {
  if (!view.isTimed) return [shape('text', { x: 0, y: y + 11, class: 'tick' }, 'no record has a time')];
  return ticks(view.from, view.to, right - left).flatMap(({ at, text }) => {
    const anchor = x(at) < left + 24 ? 'start' : x(at) > right - 24 ? 'end' : 'middle';
    return [
      shape('path', { class: 'grid', d: `M${x(at).toFixed(1)} ${y + 16}V${height}` }),
      shape('text', { x: x(at).toFixed(1), y: y + 11, class: 'tick', 'text-anchor': anchor }, text),
    ];
  });
}

function paintBar({ x, left, right }, bar, y, height) {
  const [from, to] = [x(bar.from), x(bar.to)];
  if (to < left || from > right) {
    const [place, anchor, sign] = to < left ? [left, 'start', '‹'] : [right, 'end', '›'];
    return [shape('text', { x: place, y: y + height - 2, class: 'soft', 'text-anchor': anchor }, sign)];
  }
  const [start, end] = [Math.max(left, from), Math.min(right, Math.max(to, from + 2))];
  const parts = [shape('rect', {
    class: bar.class, x: start, y, width: Math.max(end - start, 1), height, rx: 1.5, 'data-stage': bar.stage,
  }, shape('title', {}, bar.title))];
  const isLegible = bar.usual && x(bar.from + bar.usual[1]) - from > 8;
  if (isLegible) {
    const [p50, p99] = bar.usual.map(ms => Math.min(right, Math.max(left, x(bar.from + ms))));
    parts.push(shape('path', { class: 'usual', d: `M${start} ${y + height + 2.5}H${p99}M${p50} ${y + height}v5M${p99} ${y + height}v5` }));
  }
  return parts;
}

/** The name of a row: in its column, above the bar where it is narrow, at the bar where names are long. */
function placeName({ wide, left, right, width, x }, row, y) {
  if (!wide) return { at: 0, y: y + 16, anchor: 'start', room: width * (row.notes.length ? 0.5 : 1) };
  if (!row.isNamedAtBar) return { at: 92, y: y + 17, anchor: 'start', room: left - 100 };
  const start = Math.min(right, Math.max(left, row.bars.length ? x(row.bars[0].from) : left));
  const isLate = start > (left + right) / 2;
  return { at: start + (isLate ? -6 : 8), y: y + 17, anchor: isLate ? 'end' : 'start', room: (isLate ? start - left : right - start) - 10 };
}

function placeNotes({ wide, right, width }, notes, taken) {
  const room = wide ? width - right - 14 : width - taken - 12;
  let kept = notes;
  while (kept.length > 1 && textWidth(kept.join(' · '), 600) > room) kept = kept.slice(0, -1);
  return { text: shortened(kept.join(' · '), room, 600), at: wide ? right + 14 : width, anchor: wide ? 'start' : 'end' };
}

/** Rows of lanes: names to the left and notes to the right of the bars, or above them where it is narrow. */
function paintRows(frame, rows, top) {
  const { wide, width } = frame;
  const rowHeight = wide ? 28 : 44;
  const parts = rows.flatMap((row, index) => {
    const y = top + index * rowHeight;
    const startsLane = row.lane !== rows[index - 1]?.lane;
    const name = wide ? row.name : [row.lane, row.name].filter(Boolean).join(' ');
    const place = placeName(frame, row, y);
    const shown = shortened(name, place.room, row.isLoud ? 600 : 400);
    const notes = placeNotes(frame, row.notes, textWidth(shown, 600));
    return [
      startsLane ? shape('path', { class: 'lane-rule', d: `M0 ${y + 0.5}H${width}` }) : null,
      startsLane && wide ? shape('text', { x: 0, y: place.y, class: 'soft' }, shortened(row.lane, row.name ? 80 : 170)) : null,
      ...row.bars.flatMap(bar => paintBar(frame, bar, wide ? y + 6 : y + 22, 13)),
      ...(startsLane ? row.records ?? [] : []).flatMap(record => paintBar(frame, record, y - 0.5, 2)),
      shape('text', { x: place.at, y: place.y, class: row.isLoud ? 'bold' : '', 'text-anchor': place.anchor }, shown, shape('title', {}, name)),
      shape('text', { x: notes.at, y: place.y, class: row.isLoud ? 'loud' : 'soft', 'text-anchor': notes.anchor }, notes.text),
    ].filter(Boolean);
  });
  return { parts, height: top + rows.length * rowHeight };
}
