// Two requests side by side.

function comparedRows([a, b]) {
  const rows = [{ name: 'outcome', values: [a.outcome, b.outcome] }, { name: 'total', unit: 'ms', values: [a.total_ms, b.total_ms] }];
  const groups = [a, b].map(life => new Map(stageGroups(life).map(group => [group.key, group])));
  for (const key of new Set(groups.flatMap(group => [...group.keys()]))) {
    rows.push({ name: words(key), unit: 'ms', isStage: true, values: groups.map(group => group.get(key)?.ms) });
  }
  const gap = field => [a, b].map(life => life.tokens?.itl?.[field]);
  if (a.tokens || b.tokens) {
    rows.push({ name: 'tokens logged one by one', unit: ' ', values: [a, b].map(life => life.tokens?.steps.length) });
    rows.push({ name: 'stalls', unit: ' ', values: [a, b].map(life => life.tokens?.stalls.length) });
    for (const field of ['p50_ms', 'p95_ms', 'p99_ms', 'max_ms']) rows.push({ name: `ITL ${words(field).replace(' ms', '').replace('p', 'P')}`, unit: 'ms', values: gap(field) });
  }
  for (const name of new Set([a, b].flatMap(life => life.facts.map(fact => fact.name)))) {
    const facts = [a, b].map(life => life.facts.find(fact => fact.name === name));
    const unit = facts.find(Boolean).unit;
    const values = unit ? facts.map(fact => fact?.value) : facts.map((fact, index) => fact && factTexts(fact, [a, b][index].clock)[1]);
    rows.push({ name: words(unit === 'ms' ? name.replace(/_ms$/, '') : name), unit, values });
  }
  for (const role of new Set([a, b].flatMap(life => [...life.records, ...life.missing].map(roleOf)))) {
    const records = life => life.records.filter(record => roleOf(record) === role).length;
    rows.push({ name: `records of role ${role}`, unit: ' ', values: [records(a), records(b)] });
  }
  return rows.map(row => ({ ...row, delta: row.values.every(value => typeof value === 'number') && row.unit ? row.values[1] - row.values[0] : null }));
}

/** `same`, `near` (numbers within a twentieth of each other) or `differ`. */
function likeness({ values: [a, b], delta }) {
  if (a === b || !isKnown(a) && !isKnown(b)) return 'same';
  return isKnown(delta) && Math.abs(delta) < 0.05 * Math.max(Math.abs(a), Math.abs(b)) ? 'near' : 'differ';
}

function deltaText({ values: [a, b], unit, delta }) {
  if (!isKnown(a) && !isKnown(b)) return UNKNOWN;
  if (a === b) return 'same';
  if (!isKnown(delta)) return isKnown(a) && isKnown(b) ? 'differs' : `${UNKNOWN} of ${isKnown(a) ? 'B' : 'A'}`;
  const ratio = !(a > 0 && b > 0) || Math.abs(b / a - 1) < 0.001 ? '' : b / a >= 2 ? `, ${significant.format(b / a)}×` : `, ${signed(b / a - 1, percent)}`;
  return signed(delta, value => unit === 'ms' ? exact(value) : counted(value, unit.trim())) + ratio;
}

/** The difference as a bar from the middle, to the scale of the largest. */
function deltaBar({ unit, delta }, most) {
  if (unit !== 'ms' || !delta) return null;
  const length = Math.max(0.5, Math.abs(delta) / most * 50);
  return shape('svg', { viewBox: '0 0 100 14', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    shape('rect', { class: 'track', x: 0, y: 3, width: 100, height: 8 }),
    shape('rect', { class: `stage ${length > 25 ? 'dominant' : ''}`, x: delta > 0 ? 50 : 50 - length, y: 3, width: length, height: 8 }));
}

function differenceTable(rows, most) {
  const text = ({ values, unit }, index) => unit === 'ms' ? exact(values[index])
    : typeof values[index] === 'number' ? counted(values[index], unit.trim()) : known(values[index]);
  return el('table', {},
    el('thead', {}, el('tr', {}, ['', '', 'A', 'B', 'B against A', ''].map((name, index) =>
      el('th', { scope: 'col', class: index > 1 ? 'number' : null }, name)))),
    el('tbody', {}, rows.map(row => el('tr', { class: likeness(row) },
      el('td', { class: 'mark' }, { same: '', near: '≈', differ: '≠' }[likeness(row)]), el('th', { scope: 'row' }, row.name),
      el('td', { class: 'number a' }, text(row, 0)), el('td', { class: 'number' }, text(row, 1)),
      el('td', { class: 'number' }, deltaText(row)), el('td', { class: 'amount' }, deltaBar(row, most))))));
}

function comparison(lives) {
  const rows = comparedRows(lives);
  const size = row => Math.abs(row.delta ?? 0);
  const most = Math.max(0, ...rows.filter(row => row.unit === 'ms').map(size));
  const [stage] = rows.filter(row => row.isStage && row.delta).sort((x, y) => size(y) - size(x));
  const { delta: total } = rows.find(row => row.name === 'total');
  const longer = !isKnown(total) ? 'The total of one is unknown'
    : total ? `B took ${brief(Math.abs(total))} ${total > 0 ? 'longer' : 'less'} than A` : 'Both took the same time';
  const same = rows.filter(row => likeness(row) === 'same');
  return el('section', { class: 'differences', 'aria-label': 'differences' },
    el('h2', {}, 'Differences'),
    el('p', {}, `${longer}${stage ? `; the stage that differs most is ${stage.name} (${signed(stage.delta, brief)})` : ''}.`),
    differenceTable(rows.filter(row => !same.includes(row)), most),
    same.length ? el('details', {}, summary('The same in both', `${same.length}`), differenceTable(same, most)) : null);
}
