// SPDX-License-Identifier: Apache-2.0
// The table of runs: sorted by any column, a line for each run, with which its curves are shown or hidden.
const runRows = [];

function hover(run) {
  if (view.over === run) return;
  view.over = run;
  runRows.forEach((row, i) => row.classList.toggle('over', i === run));
}

function numberOf(text) {
  const number = Number(text);
  return text !== '' && isFinite(number) ? number : text;
}

/// {title, value(run): number or text or undefined, text(value), number, falls: whether high ones come first}
function columns() {
  const metric = runs.map((run) => run.best && run.best.metric).find(Boolean);
  const summary = (name) => (run) => run.summary ? run.summary[name] : undefined;
  const all = [
    {title: 'run', value: (run) => run.name},
    {title: 'status', value: (run) => run.status},
    {title: 'step', value: (run) => run.step, number: true, falls: true,
      text: (value, run) => numberText(run.step) + (run.steps ? ' / ' + numberText(run.steps) : '')}];
  if (metric) {
    all.push({title: 'best ' + metricName(metric), number: true, falls: !isLowerBetter(metric), first: true,
      value: (run) => run.best ? run.best.value : undefined, text: (value) => String(Number(value.toPrecision(5)))});
    all.push({title: 'at', number: true, value: (run) => run.best ? run.best.step : undefined});
  }
  const paths = [...new Set(runs.flatMap((run) => Object.keys(run.settings)))].sort();
  for (const path of paths) {
    const value = (run) => run.settings[path] === undefined ? undefined : numberOf(run.settings[path]);
    all.push({title: report.short_names[path] || path, hint: path, value, text: (_, run) => run.settings[path],
      number: runs.every((run) => typeof value(run) !== 'string')});
  }
  all.push({title: 'final loss', number: true, value: (run) => summary('final_loss')(run) ?? lastOf(run.curves.loss)});
  all.push({title: 'samples/s', number: true, falls: true, value: (run) => run.samples_per_s ?? undefined,
    text: (value) => numberText(Math.round(value))});
  all.push({title: 'skipped', number: true, value: summary('skipped_steps')});
  all.push({title: 'ranks', number: true, value: summary('world_size')});
  all.push({title: 'device', value: summary('device')});
  all.push({title: 'precision', value: summary('precision')});
  return all.filter((column) => runs.some((run) => ![undefined, null, ''].includes(column.value(run))));
}

const lastOf = (points) => points && points.length ? points[points.length - 1] : undefined;

/// What is not known comes last.
function compare(a, b, direction) {
  const known = (value) => value !== undefined && value !== null;
  if (!known(a) || !known(b)) return known(b) - known(a);
  if (typeof a !== typeof b) return typeof a === 'number' ? -1 : 1;
  const order = typeof a === 'number' ? a - b : String(a).localeCompare(String(b), 'en', {numeric: true});
  return direction * order;
}

function rowOf(run, i, shown) {
  const swatch = element('span', {class: 'swatch', style: `background:${colorOf(i)}`});
  view.redraw.push(() => { swatch.style.background = colorOf(i); });
  const box = element('input', {type: 'checkbox', checked: true, 'aria-label': 'show ' + run.name, onchange: (event) => {
    event.target.checked ? view.hidden.delete(i) : view.hidden.add(i);
    redrawAll();
  }});
  const cells = shown.map((column) => {
    const value = column.value(run);
    const known = value !== undefined && value !== null;
    const text = known ? (column.text ? column.text(value, run) : typeof value === 'number' ? numberText(value) : value) : '';
    return element('td', {class: (column.number ? 'number' : '') + (value === 'failed' ? ' bad' : '')}, text);
  });
  if (runs.length > 1) cells[0].prepend(element('label', {}, box, ' ', swatch));
  return element('tr', {}, ...cells);
}

function drawRuns() {
  const shown = columns();
  const body = element('tbody');
  runs.forEach((run, i) => runRows.push(rowOf(run, i, shown)));
  const heads = shown.map((column) => element('th', {class: column.number ? 'number' : '', title: column.hint},
    element('button', {onclick: () => sort(column)}, column.title)));
  let sorted = null, direction = 1;
  function sort(column) {
    direction = sorted === column ? -direction : column.falls ? -1 : 1;
    sorted = column;
    const order = runs.map((_, i) => i).sort((a, b) => compare(column.value(runs[a]), column.value(runs[b]), direction));
    body.replaceChildren(...order.map((i) => runRows[i]));
    shown.forEach((other, c) => {
      if (other === column) heads[c].setAttribute('aria-sort', direction > 0 ? 'ascending' : 'descending');
      else heads[c].removeAttribute('aria-sort');
    });
  }
  const table = element('table', {}, element('thead', {}, element('tr', {}, ...heads)), body);
  byId('runs').append(element('div', {class: 'scroll'}, table));
  sort(shown.find((column) => column.first) || shown[0]);
}
