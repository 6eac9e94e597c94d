// Tables.

const summary = (title, more) => el('summary', {}, title, el('span', {}, more));

/** `columns`: name, class, and how a row's cell reads. */
function table(label, columns, rows) {
  return el('div', { class: 'scroll', role: 'region', tabindex: 0, 'aria-label': label }, el('table', {},
    el('thead', {}, el('tr', {}, columns.map(([name, look]) => el('th', { scope: 'col', class: look }, name)))),
    el('tbody', {}, rows.map(row => el('tr', {}, columns.map(([, look, cell]) => el('td', { class: look }, cell(row))))))));
}

const known = value => isKnown(value) ? String(value) : UNKNOWN;

function stageTable(life) {
  const usual = field => stage => stage.standing ? exact(stage.standing[field]) : UNKNOWN;
  return table('stages', [
    ['role', 'plain', stage => laneOf(stage)], ['stage', 'plain', stage => words(stage.name)],
    ['start', 'number', stage => exact(stage.start_ms)], ['end', 'number', stage => exact(stage.end_ms)],
    ['duration', 'number', stage => exact(stage.duration_ms)], ['share', 'number', stage => percent(stage.share)],
    ['', 'plain', stage => stage.dominant ? 'longest' : ''],
    ['took longer than', 'number', stage => stage.standing ? percent(stage.standing.below) : UNKNOWN],
    ['P50', 'number', usual('p50_ms')], ['P95', 'number', usual('p95_ms')], ['P99', 'number', usual('p99_ms')],
    ['compared with', 'text', ({ standing }) => standing
      ? `${counted(standing.count)} of ${standing.model_name ?? 'all models'}, input ${standing.input_bucket ?? UNKNOWN}` : UNKNOWN],
  ], life.stages);
}

function eventTable(life) {
  return table('events', [
    ['at', 'number', event => exact(event.at_ms)], ['clock', 'plain', event => life.clock.time(event.at_ms)],
    ['event', '', event => words(event.name)], ['text', 'text', event => event.text],
    ['duration', 'number', event => exact(event.duration_ms)], ['role', '', event => known(event.role)],
    ['host', '', event => known(event.host)], ['GPU', '', event => known(event.gpu_id)], ['place', '', event => event.place],
  ], life.events);
}

function neighbourTable(life) {
  return table('neighbours', [
    ['request', 'text', other => other.id], ['relation', '', other => other.relation], ['outcome', '', other => other.outcome],
    ['start', 'number', other => exact(other.start_ms)], ['end', 'number', other => exact(other.end_ms)],
    ['queue', 'number', other => exact(other.queue_wait_ms)], ['decode', 'number', other => exact(other.decode_time_ms)],
    ['input', 'number', other => counted(other.input_tokens, 'tokens')], ['output', 'number', other => counted(other.output_tokens, 'tokens')],
    ['batch', '', other => known(other.batch_id)], ['GPU', '', other => known(other.gpu_id)], ['role', '', other => known(other.role)],
    ['place', '', other => other.place],
  ], life.neighbours);
}

function recordTable(record, clock) {
  const about = [record.host, isKnown(record.attempt) ? `attempt ${record.attempt}` : null,
    `${exact(record.start_ms)} to ${exact(record.end_ms)}`, record.place].filter(Boolean).join(' · ');
  return el('table', {},
    el('caption', {}, roleOf(record), ' ', el('span', {}, about)),
    el('tbody', {}, Object.entries(record.values).map(([name, value]) =>
      el('tr', {}, el('th', { scope: 'row' }, name), el('td', {}, valueText(name, value, clock))))));
}

const STEPS_ON_A_PAGE = 50;

/** The text alternative of the drawing: all steps, a page at a time, in step with the walk. */
function stepTable(walker) {
  const { life, steps } = walker;
  const pages = Math.ceil(steps.length / STEPS_ON_A_PAGE);
  // The axis tells the same as the clock, and the table fits without it.
  const columns = texts => [...texts.slice(0, 2), ...texts.slice(3)];
  const names = columns(Object.keys(walker.fields));
  const body = el('tbody');
  const shown = el('span', { role: 'status' });
  let page = -1;
  const row = (step, position) => {
    const texts = columns(Object.values(stepFields(step, position, life)));
    const pick = button(step.index, `${life.tokens.unit} ${step.index}`, () => walker.select(position));
    return el('tr', { 'data-position': position }, el('td', {}, pick), texts.slice(1).map(text => el('td', { class: 'plain' }, text)));
  };
  const mark = () => {
    for (const line of body.children) {
      if (Number(line.dataset.position) === walker.position) line.setAttribute('aria-current', 'true');
      else line.removeAttribute('aria-current');
    }
  };
  const turn = to => {
    page = Math.min(pages - 1, Math.max(0, to));
    const first = page * STEPS_ON_A_PAGE;
    body.replaceChildren(...steps.slice(first, first + STEPS_ON_A_PAGE).map((step, n) => row(step, first + n)));
    shown.textContent = `page ${page + 1} of ${pages}`;
    mark();
  };
  const follow = () => {
    if (!node.open) return;
    const wanted = Math.floor(walker.position / STEPS_ON_A_PAGE);
    if (wanted === page) mark();
    else turn(wanted);
  };
  const node = el('details', { toggle: follow },
    summary('Steps', plural(steps.length, life.tokens.unit)),
    el('div', { class: 'pager' },
      button('First', 'first page', () => turn(0)), button('‹', 'page before', () => turn(page - 1)), shown,
      button('›', 'page after', () => turn(page + 1)), button('Last', 'last page', () => turn(pages - 1))),
    el('div', { class: 'scroll', role: 'region', tabindex: 0, 'aria-label': 'steps' }, el('table', {},
      el('thead', {}, el('tr', {}, names.map(name => el('th', { scope: 'col' }, name)))), body)));
  walker.onselect = follow;
  return node;
}

function tables(life, walker, title) {
  const section = (name, more, ...content) => el('details', {}, summary(name, more), content);
  const roles = [...new Set(life.records.map(roleOf))].join(', ');
  return el('section', { class: 'tables', 'aria-label': `tables of ${life.id}` },
    title ? el('h2', {}, title) : null,
    life.stages.length ? section('Stages', `${life.stages.length}, with where they stand`, stageTable(life)) : null,
    walker ? stepTable(walker) : null,
    life.events.length ? section('Events', `${life.events.length}`, eventTable(life)) : null,
    life.records.length ? section('Records', `${life.records.length}: ${roles}`,
      el('div', { class: 'records' }, life.records.map(record => recordTable(record, life.clock)))) : null);
}
