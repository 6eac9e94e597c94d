// Stages, events, neighbours.

const LANES = ['gateway', 'app', 'between', 'engine'];
const roleOf = record => record.role ?? 'no role';
const laneOf = stage => stage.role ?? (isKnown(stage.record) ? 'no role' : 'between');
const sum = values => values.reduce((total, value) => total + value, 0);

/** Stages of one role and name, as attempts repeat them, share a row. */
function stageGroups(life) {
  const groups = new Map();
  for (const stage of life.stages) {
    const key = `${laneOf(stage)} ${stage.name}`;
    if (!groups.has(key)) groups.set(key, { key, lane: laneOf(stage), name: stage.name, stages: [] });
    groups.get(key).stages.push(stage);
  }
  return [...groups.values()].map(group => ({ ...group, ms: sum(group.stages.map(stage => stage.duration_ms)) }));
}

function stageTitle(stage) {
  const { standing } = stage;
  const usual = standing ? `; P50 ${brief(standing.p50_ms)}, P99 ${brief(standing.p99_ms)} of ${standing.count} like it` : '';
  return `${laneOf(stage)} ${words(stage.name)}: ${exact(stage.duration_ms)}, ${percent(stage.share)} of the total${usual}`;
}

function stageBar(stage) {
  const usual = stage.standing && [stage.standing.p50_ms, stage.standing.p99_ms];
  const look = `stage ${stage.dominant ? 'dominant' : ''}`;
  return { from: stage.start_ms, to: stage.end_ms, class: look, title: stageTitle(stage), stage: stage.name, usual };
}

function stageRow({ lane, name, stages, ms }) {
  const longest = stages.reduce((best, stage) => stage.duration_ms > best.duration_ms ? stage : best);
  const isLoud = stages.some(stage => stage.dominant);
  const shares = stages.map(stage => stage.share).filter(isKnown);
  const notes = [
    stages.length > 1 ? `${stages.length} × in all ${brief(ms)}` : brief(ms),
    shares.length ? percent(sum(shares)) : null,
    longest.standing ? standingText(longest.standing, longest.duration_ms) : null,
    isLoud ? 'longest' : null,
  ].filter(Boolean);
  return { lane, name: words(name), isLoud, notes, bars: stages.map(stageBar) };
}

function recordLines(life, lane) {
  return life.records
    .filter(record => roleOf(record) === lane && isKnown(record.start_ms) && isKnown(record.end_ms))
    .map(record => ({ from: record.start_ms, to: record.end_ms, class: 'record', title: record.place }));
}

function laneRows(life, whole) {
  const rows = stageGroups(life).map(stageRow);
  const lanes = new Set(rows.map(row => row.lane));
  for (const { role, text } of life.missing) {
    const gap = { from: whole.from, to: whole.to, class: 'missing', title: text };
    rows.push({ lane: role, name: 'no record', isLoud: true, notes: ['missing'], bars: [gap] });
    lanes.add(role);
  }
  for (const lane of new Set(life.records.map(roleOf))) {
    if (!lanes.has(lane)) rows.push({ lane, name: '', notes: ['no stage known'], bars: [] });
  }
  for (const { role, against, ahead_ms: ahead } of life.skews) {
    const notes = [`${brief(Math.abs(ahead))} ${ahead < 0 ? 'behind' : 'ahead of'} ${against}`];
    rows.push({ lane: role, name: 'clock', isLoud: true, notes, bars: [] });
  }
  const others = [...new Set(rows.map(row => row.lane))].filter(lane => !LANES.includes(lane)).sort();
  const order = [...LANES, ...others];
  rows.sort((a, b) => order.indexOf(a.lane) - order.indexOf(b.lane));
  return rows.map(row => ({ ...row, records: recordLines(life, row.lane) }));
}

const eventName = event => event.name === 'line' ? event.text : words(event.name);

function paintEvents(frame, events, y) {
  const { wide, left, right, width, x } = frame;
  const seen = events.filter(event => x(event.at_ms) >= left && x(event.at_ms) <= right);
  const middle = wide ? y + 13 : y + 29;
  const parts = [
    shape('path', { class: 'lane-rule', d: `M0 ${y + 0.5}H${width}` }),
    shape('text', { x: 0, y: wide ? y + 17 : y + 16, class: 'soft' }, 'events'),
  ];
  let taken = left - 8;
  for (const [index, event] of seen.entries()) {
    const place = x(event.at_ms);
    const title = `${eventName(event)} at ${exact(event.at_ms)}: ${event.text}`;
    if (event.duration_ms) {
      const end = Math.min(right, x(event.at_ms + event.duration_ms));
      parts.push(shape('rect', { class: 'event', x: place, y: middle - 1.5, width: Math.max(0, end - place), height: 3 }));
    }
    parts.push(shape('path', { class: 'event', d: `M${place} ${middle - 6}l5 6l-5 6l-5 -6z` }, shape('title', {}, title)));
    const next = seen[index + 1] ? x(seen[index + 1].at_ms) : right + 200;
    const room = Math.min(next, right + (wide ? 220 : 0)) - place - 20;
    if (room > 36 && place > taken) {
      const text = shortened(eventName(event), room);
      parts.push(shape('text', { x: place + 9, y: middle + 4, class: 'small' }, text));
      taken = place + textWidth(text) + 12;
    }
  }
  const [before, after] = [-1, 1].map(side => events.filter(event => side * (event.at_ms - (side < 0 ? frame.view.from : frame.view.to)) > 0).length);
  const outside = [before && `‹ ${before}`, after && `${after} ›`].filter(Boolean).join(' · ');
  const [place, anchor] = wide ? [92, 'start'] : [width, 'end'];
  parts.push(shape('text', { x: place, y: y + (wide ? 17 : 16), class: 'soft small', 'text-anchor': anchor }, outside, shape('title', {}, 'outside the window')));
  return { parts, height: y + (wide ? 28 : 44) };
}

const eventLines = ({ x, left, right }, events, from, to) => events.slice(0, 40)
  .filter(event => x(event.at_ms) >= left && x(event.at_ms) <= right)
  .map(event => shape('path', { class: 'event-line', d: `M${x(event.at_ms).toFixed(1)} ${from}V${to}` }));

function stagePane(life, view) {
  const events = life.events.filter(event => isKnown(event.at_ms));
  const rows = laneRows(life, view.whole);
  const slow = life.stages.find(stage => stage.dominant);
  const label = `Stages of ${life.id} on the time axis. ${slow ? `Longest: ${stageTitle(slow)}.` : ''} The table of stages has them all.`;
  return new Pane(view, label, frame => {
    const painted = paintRows(frame, rows, 22);
    const marks = events.length ? paintEvents(frame, events, painted.height) : { parts: [], height: painted.height };
    return {
      parts: [
        ...paintAxis(frame, 0, marks.height), ...eventLines(frame, events, 18, marks.height),
        ...painted.parts, ...marks.parts,
      ],
      height: marks.height + 2,
    };
  });
}

function neighbourRow(other) {
  const notes = [
    isKnown(other.output_tokens) ? `${counted(other.output_tokens)} tokens out` : null,
    isKnown(other.decode_time_ms) ? `decode ${brief(other.decode_time_ms)}` : null,
    other.outcome === 'success' ? null : other.outcome,
  ].filter(Boolean);
  const title = `${other.id}: ${notes.join(', ')}`;
  const isPlaced = isKnown(other.start_ms) && isKnown(other.end_ms);
  const bars = isPlaced ? [{ from: other.start_ms, to: other.end_ms, class: 'neighbour', title }] : [];
  return { lane: other.relation, name: other.id, isNamedAtBar: true, notes: isPlaced ? notes : ['time unknown', ...notes], bars };
}

function neighbourLane(life, view) {
  const rows = life.neighbours.map(neighbourRow);
  const pane = new Pane(view, `Neighbours of ${life.id} on the time axis. The table below has them all.`, frame => {
    const painted = paintRows(frame, rows, 20);
    return { parts: [...paintAxis(frame, 0, painted.height), ...painted.parts], height: painted.height + 6 };
  });
  const relations = [...new Set(life.neighbours.map(other => other.relation))].join(', ');
  const lane = el('details', { class: 'neighbours', toggle: () => pane.draw() },
    summary('Neighbours', `${life.neighbours.length}: ${relations}`), el('div', {}, pane.node), neighbourTable(life));
  return { pane, lane };
}
