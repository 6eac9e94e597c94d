// Head and findings.

/** Name and value of a fact, its unit said once: `ttft 409 ms`, `input tokens 3,012`. */
function factTexts({ name, value, unit }, clock) {
  if (unit === 'ms') return [words(name.replace(/_ms$/, '')), exact(value)];
  const isSaid = name.split('_').includes(unit);
  return [words(name), typeof value === 'number' && unit ? counted(value, isSaid ? '' : unit) : valueText(name, value, clock)];
}

function findings(life) {
  const told = life.findings.map(finding => finding.text);
  const more = [...life.missing, ...life.skews].filter(({ text }) => !told.includes(text));
  const all = [...life.findings, ...more.map(({ text }) => ({ severity: 'warning', text }))];
  if (!all.length) return el('p', { class: 'hint' }, 'No finding: nothing in the logs explains this request further.');
  return el('ul', { class: 'findings', 'aria-label': 'findings, the weightiest first' }, all.map(({ severity, text }) =>
    el('li', { class: severity }, severity === 'info' ? null : el('span', { class: 'severity' }, severity), text)));
}

function head(life, hasFacts) {
  const facts = life.trace_id ? [...life.facts, { name: 'trace_id', value: life.trace_id, unit: '' }] : life.facts;
  const unique = facts.filter((fact, index) => facts.findIndex(other => other.name === fact.name) === index);
  return el('header', { class: 'head' },
    el('h1', { class: life.id.length > 60 ? 'long' : null }, life.tag ? el('small', {}, life.tag) : null, life.id || '(empty id)'),
    el('p', { class: 'verdict' }, el('strong', { class: life.outcome },
        life.outcome === 'unknown' ? 'outcome unknown' : life.outcome, isKnown(life.total_ms) ? ` in ${brief(life.total_ms)}` : ', total unknown'),
      `, started ${life.clock.offset ? life.clock.full(0) : 'at an unknown time'}`,
      life.asked && life.asked !== life.id ? `, found by ${life.asked}` : null),
    findings(life),
    hasFacts && unique.length ? el('dl', { class: 'facts' }, unique.map(fact => factTexts(fact, life.clock)).map(([name, text]) =>
      el('div', {}, el('dt', {}, name), el('dd', {}, text)))) : null);
}
