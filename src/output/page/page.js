// The page.

function toolbar(view) {
  const shown = el('span', { class: 'window' });
  view.onmove = () => shown.textContent = view.text();
  view.onmove();
  const hasTokens = view.lives.some(life => life.tokens?.steps.some(step => isKnown(step.at_ms)));
  return el('div', { class: 'bar', role: 'toolbar', 'aria-label': 'zoom of the time axis' },
    button('−', 'zoom out (-)', () => view.zoom(2)), button('+', 'zoom in (+)', () => view.zoom(0.5)),
    button('‹', 'earlier (Shift and left)', () => view.pan(-0.25)), button('›', 'later (Shift and right)', () => view.pan(0.25)),
    button('Fit', 'whole request (0)', () => view.fit()),
    hasTokens ? button('Tokens', 'tokens only (t)', () => view.fitTokens()) : null, shown);
}

function stageKey({ stages, events }) {
  return key(...[
    stages.length && [shape('rect', { class: 'stage dominant', x: 0, y: 3, width: 14, height: 8 }), 'longest stage'],
    stages.some(stage => stage.standing) &&
      [shape('path', { class: 'usual', d: 'M0 7H13M4 4.5v5M13 4.5v5' }), 'usual: ticks at P50 and P99 of its model and input bucket'],
    events.length && [shape('path', { class: 'event', d: 'M7 1l5 6l-5 6l-5 -6z' }), 'event'],
  ].filter(Boolean));
}

function timeline(life, view) {
  const stages = stagePane(life, view);
  const walker = life.tokens?.steps.length ? new Walker(life, view) : null;
  const neighbours = life.neighbours.length ? neighbourLane(life, view) : null;
  const others = [stages, neighbours?.pane].filter(Boolean);
  if (walker) {
    walker.panes.push(...others);
    walker.select(walker.position, false);
  }
  const node = el('figure', { class: 'life', 'aria-label': `life of ${life.id}` },
    life.tag ? el('figcaption', {}, el('span', { class: 'id' }, `${life.tag} ${shortened(life.id, 600)}`), el('span', { class: 'hint' }, 'on its own axis from its first moment, to the same scale')) : null,
    el('div', {}, stages.node), stageKey(life),
    walker ? walker.node : el('p', { class: 'hint' }, life.tokens ? 'No token was logged.' : 'Tokens were not logged one by one.'),
    neighbours?.lane);
  return { life, walker, node };
}

const WALK_KEYS = [['← →', 'walk the tokens'], ['PageUp PageDown', 'a tenth (on the slider)'], ['n p', 'next, previous stall'], ['t', 'tokens']];
const ZOOM_KEYS = [['+ −', 'zoom'], ['0', 'fit'], ['Shift ← →', 'pan']];

function keyHelp(keys) {
  const caps = names => names.split(' ').flatMap(name => [el('kbd', {}, name), ' ']);
  return el('p', { class: 'hint keys' }, keys.map(([names, what]) => el('span', {}, caps(names), what)));
}

function viewSection(lives) {
  const view = new View(lives);
  const timelines = lives.map(life => timeline(life, view));
  const hasTokens = timelines.some(({ walker }) => walker);
  const controls = view.isTimed || hasTokens ? [toolbar(view), keyHelp([...(hasTokens ? WALK_KEYS : []), ...ZOOM_KEYS])] : [];
  const node = el('section', { class: 'view', 'aria-label': 'time axis' }, controls, timelines.map(({ node }) => node));
  return { view, timelines, node };
}

/** Keys act on the timeline that has the focus, and on the first where nothing has it. */
function keyHandler(sections) {
  let active = sections[0]?.timelines[0];
  addEventListener('focusin', event => {
    active = sections.flatMap(section => section.timelines).find(({ node }) => node.contains(event.target)) ?? active;
  });
  return event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !active) return;
    const section = sections.find(({ timelines }) => timelines.includes(active));
    const isLoose = event.target === document.body;
    if (!isLoose && !section.node.contains(event.target)) return;
    const { view } = section;
    const step = by => isLoose && active.walker ? () => active.walker.select(active.walker.position + by) : null;
    const actions = {
      '+': () => view.zoom(0.5), '=': () => view.zoom(0.5), '-': () => view.zoom(2), '0': () => view.fit(), t: () => view.fitTokens(),
      n: () => active.walker?.jump(1), p: () => active.walker?.jump(-1),
      ArrowLeft: event.shiftKey ? () => view.pan(-0.25) : step(-1), ArrowRight: event.shiftKey ? () => view.pan(0.25) : step(1),
    };
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
    if (!action) return;
    event.preventDefault();
    action();
  };
}

function watchSizeAndPrint(sections) {
  const draw = width => sections.forEach(({ view }) => view.draw(width));
  let width = innerWidth;
  addEventListener('resize', () => {
    if (innerWidth !== width) requestAnimationFrame(() => draw());
    width = innerWidth;
  });
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details:not([open])')];
    for (const details of opened) details.open = true;
    draw(700);
  });
  addEventListener('afterprint', () => {
    for (const details of opened) details.open = false;
    draw();
  });
}

function build(data) {
  const page = document.getElementById('page');
  const lives = data.lives.map((life, index) => ({
    ...life, clock: new Clock(life.origin), tag: data.lives.length > 1 ? String.fromCharCode(65 + index % 26) : '',
    stallOf: new Map((life.tokens?.stalls ?? []).map(stall => [stall.index, stall])),
  }));
  document.title = legible(data.title || 'trace');
  page.append(el('p', { class: 'kicker' }, data.title || 'trace'));
  if (!lives.length) page.append(el('p', {}, 'No request was found.'));
  const isPair = lives.length === 2;
  const sections = (isPair ? [lives] : lives.map(life => [life])).map(viewSection);
  if (isPair) page.append(el('div', { class: 'pair' }, lives.map(life => head(life, false))), comparison(lives));
  for (const { node, timelines } of sections) {
    page.append(...(isPair ? [] : [head(timelines[0].life, true)]), node);
    for (const { life, walker } of timelines) page.append(tables(life, walker, isPair ? `${life.tag} ${life.id}` : null));
  }
  const about = [(data.generated_for ?? []).length ? `Asked for: ${data.generated_for.join(', ')}.` : null, data.zone ? `Zone: ${data.zone}.` : null, 'Milliseconds in tables are as logged; drawings round to three digits.'];
  page.append(el('footer', {}, about.filter(Boolean).join(' ')));
  for (const { view } of sections) view.draw();
  addEventListener('keydown', keyHandler(sections));
  watchSizeAndPrint(sections);
  return { lives, sections };
}
