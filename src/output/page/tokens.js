// Tokens.

const STATES = ['normal', 'cache_miss', 'recompute'];
const CAPS = {
  cache_miss: (x, y) => `M${x - 4} ${y - 8}h8l-4 7z`,
  recompute: (x, y) => `M${x} ${y - 10}l4.5 4.5l-4.5 4.5l-4.5 -4.5z`,
};

/** Time to the first token is no gap: it has a mark of its own and stays out of the scale. */
const isFirst = (step, position) => position === 0 && step.index <= 1;

/** Where each step stands on the axis: by its time, and by its number where no step has one. */
function placesOf(life) {
  const { steps } = life.tokens;
  if (steps.some(step => isKnown(step.at_ms))) return steps.map(step => step.at_ms);
  const own = span(ownTimes(life));
  const length = own.to - own.from || 1;
  return steps.map((_, position) => own.from + (position + 0.5) / steps.length * length);
}

class TokenLane {
  constructor(life, view) {
    this.steps = life.tokens.steps;
    this.places = placesOf(life);
    this.events = life.events.filter(event => isKnown(event.at_ms));
    this.gaps = this.steps.filter((step, position) => isKnown(step.step_ms) && !isFirst(step, position)).map(step => step.step_ms);
    const range = span(this.gaps) ?? { from: 0, to: 1 };
    this.top = range.to || 1;
    this.low = Math.max(this.gaps.reduce((low, gap) => gap > 0 ? Math.min(low, gap) : low, this.top), this.top / 1e5) / 2;
    this.median = life.tokens.itl?.p50_ms ?? this.gaps.toSorted((a, b) => a - b)[this.gaps.length >> 1];
    this.isLog = false;
    const label = `Step times of ${plural(this.steps.length, life.tokens.unit)} of ${life.id}. The slider walks them, the table of steps has them all.`;
    this.pane = new Pane(view, label, frame => this.paint(frame));
    this.pane.foot = 140;
    this.pane.onclick = at => this.onpick?.(this.nearest(at));
  }

  height(ms) {
    const part = this.isLog ? Math.log(Math.max(ms, this.low) / this.low) / Math.log(this.top / this.low) : ms / this.top;
    return Math.max(2, part * 104);
  }

  /** The nearest step; of several under a finger's tip the longest, so that a stall can be hit. */
  nearest(at) {
    const perPixel = (this.pane.view.to - this.pane.view.from) / (this.pane.frame.right - this.pane.frame.left);
    const distance = position => isKnown(this.places[position]) ? Math.abs(this.places[position] - at) : Infinity;
    const gap = position => isFirst(this.steps[position], position) ? 0 : this.steps[position].step_ms ?? 0;
    let best = 0;
    this.steps.forEach((_, position) => {
      const [here, there] = [distance(position), distance(best)];
      const isBoth = here < 3 * perPixel && there < 3 * perPixel;
      if (isBoth ? gap(position) > gap(best) : here < there) best = position;
    });
    return best;
  }

  paint(frame) {
    const { x, left, right } = frame;
    const base = this.pane.foot;
    const lines = { first: [], unmeasured: [], normal: [], cache_miss: [], recompute: [] };
    const tops = [];
    this.steps.forEach((step, position) => {
      const place = isKnown(this.places[position]) ? x(this.places[position]) : NaN;
      if (!(place >= left - 1 && place <= right + 1)) return;
      if (isFirst(step, position)) return lines.first.push(`M${(place - 3.5).toFixed(1)} ${base - 6}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0`);
      if (!isKnown(step.step_ms)) return lines.unmeasured.push(`M${place.toFixed(1)} ${base}v-8`);
      const height = this.height(step.step_ms);
      (lines[step.state] ?? lines.normal).push(`M${place.toFixed(1)} ${base}v${-height.toFixed(1)}`);
      tops.push({ step, x: place, y: base - height });
    });
    const drawn = sum(Object.values(lines).map(line => line.length));
    const breadth = Math.max(1, Math.min(14, (tops.length > 1 ? (tops.at(-1).x - tops[0].x) / (tops.length - 1) : 14) * 0.7));
    const paths = Object.entries(lines).filter(([, line]) => line.length).map(([kind, line]) => shape('path', {
      class: `steps ${kind} ${breadth >= 5 ? 'broad' : ''}`, d: line.join(''),
      'stroke-width': STATES.includes(kind) ? breadth.toFixed(1) : null,
    }));
    return {
      parts: [
        ...paintAxis(frame, base + 9, base + 9).filter(part => part.nodeName === 'text'),
        ...this.paintScale(frame, base), ...eventLines(frame, this.events, 4, base),
        shape('path', { class: 'baseline', d: `M${left} ${base + 0.5}H${right}` }),
        ...paths, ...this.paintCaps(tops),
        ...(drawn ? [] : [shape('text', { x: (left + right) / 2, y: base - 40, class: 'soft', 'text-anchor': 'middle' }, 'no token in this window')]),
        frame.wide ? shape('text', { x: 0, y: base - 86, class: 'soft' }, 'tokens') : shape('g'),
        frame.wide ? shape('text', { x: 92, y: base - 86 }, 'step time') : shape('g'),
      ],
      above: this.paintStalls(tops, frame),
      height: base + 24,
    };
  }

  paintScale({ wide, left, right }, base) {
    if (!this.gaps.length) return [];
    const levels = [{ ms: this.top, name: 'max' }, { ms: this.median, name: 'P50' }];
    if (this.height(this.top) - this.height(this.median) < 16) levels.pop();
    return levels.flatMap(({ ms, name }) => {
      const y = base - this.height(ms);
      const [place, anchor, row] = wide ? [right + 14, 'start', y + 4] : [left, 'start', y - 4];
      return [
        shape('path', { class: 'level', d: `M${left} ${y}H${right}` }),
        shape('text', { x: place, y: row, class: 'tick halo', 'text-anchor': anchor }, `${name} ${brief(ms)}`),
      ];
    });
  }

  /** One cap in nine pixels, on the tallest: the shape tells the state where colour does not. */
  paintCaps(tops) {
    return Object.entries(CAPS).flatMap(([state, cap]) => {
      const tallest = new Map();
      for (const top of tops.filter(top => top.step.state === state)) {
        const cell = Math.floor(top.x / 9);
        if (!(tallest.get(cell)?.y <= top.y)) tallest.set(cell, top);
      }
      const d = [...tallest.values()].map(top => cap(Number(top.x.toFixed(1)), Number(top.y.toFixed(1)))).join('');
      return d ? [shape('path', { class: `cap ${state}`, d })] : [];
    });
  }

  paintStalls(tops, { left, right }) {
    const placed = [];
    for (const { step, x, y } of tops.filter(top => top.step.stall).sort((a, b) => b.step.step_ms - a.step.step_ms)) {
      const text = `${step.index}: ${brief(step.step_ms)}`;
      const half = textWidth(text, 600) / 2 + 3;
      const middle = Math.min(right - half, Math.max(left + half, x));
      if (placed.length < 8 && placed.every(other => Math.abs(other.middle - middle) > other.half + half)) placed.push({ middle, half, y, text });
    }
    return placed.map(({ middle, y, text }) =>
      shape('text', { x: middle, y: Math.max(12, y - 13), class: 'loud small halo', 'text-anchor': 'middle' }, text));
  }
}

/** Every field of a step, as people read it. */
function stepFields(step, position, life) {
  const { steps, unit } = life.tokens;
  const stall = step.stall ? life.stallOf.get(step.index) : null;
  return {
    [unit]: `${step.index} (${whole.format(position + 1)} of ${whole.format(steps.length)})`,
    'on the axis': exact(step.at_ms),
    'clock': life.clock.time(step.at_ms),
    'step time': exact(step.step_ms) + (isFirst(step, position) && isKnown(step.step_ms) ? ', no gap' : ''),
    'waited': exact(step.wait_ms),
    'context': counted(step.context_len, 'tokens'),
    'cache hit': String(step.cache_hit ?? UNKNOWN),
    'recompute': String(step.recompute ?? UNKNOWN),
    'batch size': isKnown(step.batch_size) ? plural(step.batch_size, 'request') : UNKNOWN,
    'state': words(step.state),
    'stall': stall ? `${signed(stall.over_ms, exact)}, ${words(stall.cause)}` : step.stall ? 'yes' : 'no',
    'stalled with it': stall ? plural(stall.neighbours, 'neighbour') : step.stall ? UNKNOWN : 'none',
  };
}

function stepSentence(step, position, life) {
  const stall = step.stall ? life.stallOf.get(step.index) : null;
  const about = stall?.text || `${life.tokens.unit} ${step.index}: ${brief(step.step_ms)}, ${words(step.state)}${step.stall ? ', stall' : ''}`;
  return `${about} (${whole.format(position + 1)} of ${whole.format(life.tokens.steps.length)})`;
}

class Walker {
  constructor(life, view) {
    this.life = life;
    this.view = view;
    this.steps = life.tokens.steps;
    this.lane = new TokenLane(life, view);
    this.lane.onpick = position => this.select(position);
    this.stalls = this.steps.flatMap((step, position) => step.stall ? [position] : []);
    this.panes = [this.lane.pane];
    this.onselect = () => {};
    this.fields = Object.fromEntries(Object.keys(stepFields(this.steps[0], 0, life)).map(name => [name, el('dd', { 'data-field': name })]));
    this.said = el('p', { class: 'say', role: 'status', 'aria-live': 'polite' });
    this.slider = el('input', {
      type: 'range', min: 0, max: this.steps.length - 1, step: 1, value: 0, 'aria-label': `${life.tokens.unit} of ${life.id}`,
      input: () => this.select(Number(this.slider.value)),
    });
    this.node = this.build();
    this.select(this.worst(), false);
  }

  worst() {
    const over = position => this.life.stallOf.get(this.steps[position].index)?.over_ms ?? 0;
    return this.stalls.reduce((best, position) => over(position) > over(best) ? position : best, this.stalls[0] ?? 0);
  }

  build() {
    const { unit, steps, stalls } = this.life.tokens;
    const none = !this.stalls.length;
    const walk = el('div', { class: 'walk' },
      button('‹ stall', 'previous stall (p)', () => this.jump(-1), { disabled: none }),
      button('‹', `previous ${unit}`, () => this.select(this.position - 1)),
      this.slider,
      button('›', `next ${unit}`, () => this.select(this.position + 1)),
      button('stall ›', 'next stall (n)', () => this.jump(1), { disabled: none }));
    const scale = button('log scale', 'logarithmic heights', () => {
      this.lane.isLog = !this.lane.isLog;
      scale.setAttribute('aria-pressed', this.lane.isLog);
      said.textContent = this.lane.isLog ? 'Height is the step time, logarithmic.' : 'Height is the step time, linear.';
      this.lane.pane.draw();
    }, { 'aria-pressed': 'false' });
    const said = el('span', {}, 'Height is the step time, linear.');
    const untimed = steps.filter(step => !isKnown(step.at_ms)).length;
    const byNumber = untimed === steps.length ? ` No ${unit} has a time: they stand by their number, not on the axis.`
      : untimed ? ` ${plural(untimed, unit)} without a time ${untimed === 1 ? 'is' : 'are'} not drawn.` : '';
    const worst = stalls.toSorted((a, b) => b.over_ms - a.over_ms).slice(0, 5);
    return el('div', {},
      el('div', { class: 'tokens' }, el('h3', {}, tokenSummary(this.life)), el('p', { class: 'hint' }, said, byNumber, ' ', scale)),
      el('div', {}, this.lane.pane.node),
      tokenKey(), walk,
      this.said,
      el('dl', { class: 'step' }, Object.entries(this.fields).map(([name, dd]) => el('div', {}, el('dt', {}, name), dd))),
      stalls.length > 1 ? el('ul', { class: 'stalls', 'aria-label': `longest of ${plural(stalls.length, 'stall')}` },
        worst.map(stall => el('li', {}, button(stall.text, null, () => this.select(this.positionOf(stall)))))) : null);
  }

  positionOf(stall) {
    return Math.max(0, this.steps.findIndex(step => step.index === stall.index));
  }

  jump(direction) {
    const next = direction > 0 ? this.stalls.find(at => at > this.position) : this.stalls.findLast(at => at < this.position);
    if (isKnown(next)) this.select(next);
    else this.say(`no ${direction > 0 ? 'further' : 'earlier'} stall`);
  }

  select(position, isByHand = true) {
    this.position = Math.min(this.steps.length - 1, Math.max(0, position));
    const step = this.steps[this.position];
    for (const [name, text] of Object.entries(stepFields(step, this.position, this.life))) {
      this.fields[name].textContent = legible(text);
      this.fields[name].classList.toggle('unknown', text === UNKNOWN);
    }
    const sentence = stepSentence(step, this.position, this.life);
    this.slider.value = this.position;
    this.slider.setAttribute('aria-valuetext', legible(sentence));
    const at = this.lane.places[this.position];
    if (isByHand) {
      if (isKnown(at)) this.view.reveal(at);
      this.say(sentence);
    } else this.said.textContent = legible(sentence);
    for (const pane of this.panes) pane.point(isKnown(step.at_ms) || pane === this.lane.pane ? at : null);
    this.onselect(this.position);
  }

  /** Waits until the walk rests, so that a screen reader is not flooded. */
  say(text) {
    clearTimeout(this.saying);
    this.saying = setTimeout(() => this.said.textContent = legible(text), 150);
  }
}

function tokenSummary({ tokens }) {
  const gaps = tokens.itl ? ['p50', 'p95', 'p99', 'max'].map(name => `${name === 'max' ? 'max' : name.toUpperCase()} ${brief(tokens.itl[`${name}_ms`])}`) : [];
  const itl = tokens.itl ? `ITL ${gaps.join(', ')}` : 'ITL unknown';
  return [plural(tokens.steps.length, tokens.unit), itl, tokens.stalls.length ? plural(tokens.stalls.length, 'stall') : 'no stall'].join(' · ');
}

function key(...entries) {
  const icon = part => shape('svg', { viewBox: '0 0 14 14', 'aria-hidden': 'true' }, part);
  return el('ul', { class: 'key' }, entries.map(([part, text]) => el('li', {}, icon(part), text)));
}

const tokenKey = () => key(
  [shape('rect', { class: 'normal', x: 5, y: 1, width: 4, height: 12 }), 'normal'],
  [shape('path', { class: 'cache_miss', 'stroke-width': 1.5, d: 'M2 3h10l-5 9z' }), 'cache miss (hatched)'],
  [shape('path', { class: 'recompute', d: 'M7 1.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z' }), 'recompute (striped)'],
  [shape('path', { class: 'steps first', d: 'M3 7a4 4 0 1 0 8 0a4 4 0 1 0 -8 0' }), 'first token, no gap'],
  [shape('path', { class: 'steps unmeasured', d: 'M7 2V13' }), 'step time unknown']);
