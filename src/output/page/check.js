// The self test: opened with #check, the page says what it drew.

function checkWalker(walker) {
  walker.steps.forEach((step, position) => {
    walker.select(position);
    const shown = walker.fields['step time'].textContent;
    const isWrong = isKnown(step.step_ms) ? !shown.startsWith(exact(step.step_ms)) : shown !== UNKNOWN;
    if (isWrong || Number(walker.slider.value) !== position) throw new Error(`step ${step.index} shows ${shown}`);
  });
  walker.select(walker.worst(), false);
}

function check({ lives, sections }) {
  const walkers = sections.flatMap(({ timelines }) => timelines.map(({ walker }) => walker)).filter(Boolean);
  for (const { view } of sections) {
    view.zoom(0.01);
    view.draw();
  }
  walkers.forEach(checkWalker);
  for (const { view } of sections) {
    view.fit();
    view.draw();
  }
  const count = (query, of = () => 1) => sum([...document.querySelectorAll(`figure.life ${query}`)].map(of));
  const drawn = {
    lives: document.querySelectorAll('figure.life').length, stages: count('[data-stage]'),
    tokens: count('.pane .steps', path => path.getAttribute('d').match(/M/g).length),
  };
  const wanted = {
    lives: lives.length, stages: sum(lives.map(life => life.stages.length)),
    tokens: sum(walkers.map(walker => walker.lane.places.filter(isKnown).length)),
  };
  for (const [name, number] of Object.entries(wanted)) if (drawn[name] !== number) throw new Error(`${drawn[name]} of ${number} ${name} drawn`);
  if (/NaN|Infinity|undefined/.test([...document.querySelectorAll('.pane')].map(pane => pane.innerHTML.replace(/<(text|title)[^]*?<\/\1>/g, '')).join())) throw new Error('a drawing has a coordinate that is no number');
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) throw new Error(`the page is ${scrollWidth} wide in a window of ${clientWidth}`);
  if (errors.length) throw new Error(errors[0]);
  return `ok: ${drawn.lives} lives, ${drawn.stages} stages, ${drawn.tokens} tokens drawn at ${clientWidth} px`;
}

let verdict;
try {
  const built = build(JSON.parse(document.getElementById('data').textContent));
  if (location.hash === '#check') verdict = check(built);
} catch (error) {
  verdict = `failed: ${error.message}`;
  document.getElementById('page').append(el('p', { class: 'alert', role: 'alert' }, `The page could not be drawn: ${error.message}`));
}
if (location.hash === '#check') {
  document.body.append(el('p', { id: 'check' }, verdict));
  // to whoever shows the page in a frame of some width
  parent.postMessage(verdict, '*');
}
