// SPDX-License-Identifier: Apache-2.0
// What is told of each run beside its curves.
const MOST_CLASSES_IN_A_TABLE = 40, MOST_PAIRS = 20;

function panel(title, ...content) { byId('panels').append(element('h2', {}, title), ...content); }

/// For each run that has some: its content, below its name where there are several runs.
function forRuns(title, make) {
  const made = runs.map((run, i) => [run, make(run, i)]).filter(([, content]) => content !== null);
  if (!made.length) return;
  if (runs.length === 1) return panel(title, made[0][1]);
  panel(title, ...made.map(([run, content]) =>
    element('details', {open: made.length <= 2}, element('summary', {}, run.name), content)));
}

function eventsOf(run) {
  if (!run.events.length) return null;
  const rows = run.events.map((event) => element('tr', {class: event.event === 'failed' ? 'bad' : ''},
    element('td', {class: 'number'}, numberText(event.step)), element('td', {}, timeText(event.time)),
    element('td', {style: 'white-space:normal'}, event.text)));
  const head = element('tr', {}, element('th', {class: 'number'}, 'step'), element('th', {}, 'time'), element('th', {}, 'event'));
  return element('div', {class: 'scroll', style: 'max-height:300px'}, element('table', {}, element('thead', {}, head), element('tbody', {}, ...rows)));
}

/// The classes that are most often taken for another.
function worstPairs(confusion, nameOf) {
  const pairs = [];
  confusion.matrix.forEach((row, target) => row.forEach((count, answer) => {
    if (target !== answer && count > 0) pairs.push({target, answer, count});
  }));
  pairs.sort((a, b) => b.count - a.count);
  return element('ul', {}, ...pairs.slice(0, MOST_PAIRS).map((pair) =>
    element('li', {}, `${nameOf(pair.target)} taken for ${nameOf(pair.answer)}: ${numberText(pair.count)}`)));
}

function confusionOf(run) {
  const confusion = run.confusion;
  if (!confusion) return null;
  const names = confusion.names || [];
  const nameOf = (c) => names[c] ?? String(c);
  const note = element('p', {class: 'note'}, 'Rows are targets, columns are answers.');
  if (confusion.classes > MOST_CLASSES_IN_A_TABLE) return element('div', {}, worstPairs(confusion, nameOf));
  const head = element('tr', {}, element('th'), ...confusion.matrix.map((_, c) => element('th', {}, nameOf(c))));
  const rows = confusion.matrix.map((row, target) => {
    const total = row.reduce((sum, count) => sum + count, 0);
    const cells = row.map((count, answer) => {
      const share = total > 0 ? count / total : 0;
      const style = count > 0 ? `background:rgba(var(--heat),${(0.08 + 0.6 * share).toFixed(3)})` : '';
      return element('td', {style, title: `${nameOf(target)} taken for ${nameOf(answer)}: ${count}`}, count > 0 ? String(count) : '');
    });
    return element('tr', {}, element('th', {}, nameOf(target)), ...cells);
  });
  return element('div', {}, note, element('div', {class: 'scroll confusion'}, element('table', {}, element('tbody', {}, head, ...rows))),
    worstPairs(confusion, nameOf));
}

function picturesOf(run) {
  if (!run.pictures.length) return null;
  return element('div', {class: 'pictures'}, ...run.pictures.map((picture) => element('figure', {},
    element('img', {src: 'data:image/png;base64,' + picture.png, alt: picture.name}), element('figcaption', {}, picture.name.replace(/\.png$/, '').replaceAll('_', ' ')))));
}

function textsOf(run) {
  if (!run.texts.length) return null;
  return element('ul', {class: 'texts'}, ...run.texts.map((text) => element('li', {}, element('b', {}, text.prompt), text.text)));
}

/// Objects within are told by "name.field".
function flat(value, prefix = '') {
  if (value === null || typeof value !== 'object') return [[prefix, value]];
  if (Array.isArray(value)) return [[prefix, value.join(', ')]];
  return Object.entries(value).flatMap(([name, inner]) => flat(inner, prefix ? prefix + '.' + name : name));
}

function factsOf(value) {
  const facts = flat(value).filter(([, fact]) => fact !== null && fact !== '');
  return element('dl', {class: 'facts'}, ...facts.flatMap(([name, fact]) =>
    [element('dt', {}, name.replaceAll('_', ' ')), element('dd', {}, typeof fact === 'number' ? numberText(fact) : String(fact))]));
}

function drawPanels() {
  forRuns('Repeat it', (run) => element('pre', {}, run.command));
  forRuns('Events', eventsOf);
  forRuns('Confusion', confusionOf);
  forRuns('Pictures', picturesOf);
  forRuns('Texts', textsOf);
  forRuns('Environment', (run) => run.summary && run.summary.environment ? factsOf(run.summary.environment) : null);
  forRuns('Result', (run) => {
    if (!run.summary) return null;
    const {environment, ...rest} = run.summary;
    return factsOf(rest);
  });
  forRuns('Job', (run) => run.job ? element('pre', {}, run.job) : null);
}
