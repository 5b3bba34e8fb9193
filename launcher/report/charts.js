// SPDX-License-Identifier: Apache-2.0
// Draws the charts with dygraphs: one x axis for all, in steps, whose zoom they share.
const FEW_RUNS = 4;
const MARKED = {resumed: 'resumed', restarted: 'restarted', failed: 'failed', preempted: 'stopped', lr_reduced: 'lr reduced',
  stopped_early: 'stopped early', straggler: 'straggler'};
const graphs = [];

function marks() {
  if (runs.length > FEW_RUNS) return [];
  return runs.flatMap((run, i) => run.events.filter((event) => event.event in MARKED && !view.hidden.has(i))
    .map((event) => ({step: event.step, text: MARKED[event.event], color: colorOf(i)})));
}

function drawMarks(context, area, graph) {
  context.save();
  context.font = '11px sans-serif';
  let last = -Infinity;
  for (const mark of marks().sort((a, b) => a.step - b.step)) {
    const x = graph.toDomXCoord(mark.step);
    if (!(x >= area.x && x <= area.x + area.w)) continue;
    context.strokeStyle = context.fillStyle = mark.color;
    context.globalAlpha = 0.7;
    context.setLineDash([4, 4]);
    context.beginPath();
    context.moveTo(x, area.y);
    context.lineTo(x, area.y + area.h);
    context.stroke();
    // Words that would stand in others are left out: the list of events has them.
    const width = context.measureText(mark.text).width;
    if (x < last + 4) continue;
    const left = x + width + 4 > area.x + area.w ? x - width - 3 : x + 3;
    context.fillText(mark.text, left, area.y + 11);
    last = left + width;
  }
  context.restore();
}

/// The text above a chart: the step, and the values there of few runs, or of the one under the pointer.
function legend(data, highlighted) {
  const line = element('div');
  if (data.x === undefined || data.x === null) return line;
  line.append('step ' + numberText(data.x));
  for (const series of data.series) {
    if (series.label.startsWith('raw') || !series.isVisible || series.y === undefined || series.y === null) continue;
    if (runs.length > FEW_RUNS && series.label !== highlighted) continue;
    const run = Number(series.label);
    const swatch = element('span', {class: 'swatch', style: `background:${colorOf(run)};margin-left:12px`});
    line.append(swatch, runs.length > 1 ? runs[run].name + ' ' : '', element('b', {}, numberText(series.y)));
  }
  return line;
}

function optionsOf(chart) {
  const doubled = view.smoothing > 0 && chart.noisy && runs.length <= FEW_RUNS;
  let rows = chart.noisy ? smoothed(chart.rows, view.smoothing) : chart.rows;
  const labels = ['step', ...runs.map((_, i) => String(i))];
  const colors = runs.map((_, i) => colorOf(i));
  const series = {};
  if (doubled) {
    rows = rows.map((row, i) => [...row, ...chart.rows[i].slice(1)]);
    runs.forEach((_, i) => {
      labels.push('raw' + i);
      colors.push(colorOf(i));
      series['raw' + i] = {strokeWidth: 0.4, highlightCircleSize: 0};
    });
  }
  const shown = runs.map((_, i) => !view.hidden.has(i));
  return {
    file: view.log ? positive(rows) : rows, labels, colors, series, logscale: view.log,
    visibility: doubled ? [...shown, ...shown] : shown,
    gridLineColor: variable('--grid'), axisLineColor: variable('--line'),
    highlightSeriesBackgroundColor: variable('--page'),
    highlightSeriesBackgroundAlpha: runs.length > FEW_RUNS ? 0.25 : 1};
}

function shareZoom(graph) {
  if (view.zooming) return;
  view.zooming = true;
  const [from, to] = graph.xAxisRange();
  const window = graph.isZoomed('x') ? [from, to] : null;
  for (const other of graphs) if (other !== graph) other.updateOptions({dateWindow: window});
  view.zooming = false;
}

function draw(chart) {
  const words = element('div', {class: 'legend'}), plot = element('div', {class: 'plot'});
  byId('charts').append(element('div', {class: 'chart', 'data-name': chart.name}, element('h3', {}, chart.title), words, plot));
  const {file, ...options} = optionsOf(chart);
  const say = (data, highlighted) => words.replaceChildren(legend(data, highlighted));
  const graph = new Dygraph(plot, file, {
    ...options,
    drawPoints: chart.kind === 'eval', pointSize: 2.5, connectSeparatedPoints: chart.kind === 'eval',
    strokeWidth: 1.4, rightGap: 8, labelsDiv: element('div'), legend: 'never', axisLabelFontSize: 12,
    xRangePad: 4, yRangePad: 12, highlightSeriesOpts: {strokeWidth: 2.4, highlightCircleSize: 4},
    underlayCallback: drawMarks,
    axes: {x: {axisLabelFormatter: tickText, pixelsPerLabel: 70},
           y: {axisLabelFormatter: (value) => tickText(value), axisLabelWidth: 58, pixelsPerLabel: 30}},
    highlightCallback: (event, x, points, row, highlighted) => {
      say({x, series: points.map((point) => ({label: point.name, y: point.yval, isVisible: true}))}, highlighted);
      hover(highlighted === undefined ? null : Number(highlighted.replace('raw', '')));
    },
    unhighlightCallback: () => { say({}, null); hover(null); },
    zoomCallback: () => shareZoom(graph)});
  say({}, null);
  graphs.push(graph);
  view.redraw.push(() => graph.updateOptions(optionsOf(chart)));
}

function drawCharts() {
  const constants = [];
  for (const chart of [...evaluationCharts(), ...stepCharts()]) {
    if (!chart.rows.length) continue;
    const constant = constantOf(chart);
    if (constant === null || chart.rows.length === 1) draw(chart);
    else constants.push(`${chart.title}: ${numberText(constant)}`);
  }
  if (constants.length) byId('constants').append('Constant: ' + constants.join(' · '));
  if (!graphs.length) byId('charts').append('No step has been recorded.');
  if (report.steps_a_bucket > 1) {
    byId('thinned').append(`Each two points are the lowest and the highest value of ${report.steps_a_bucket} steps.`);
  }
}

function drawControls() {
  const amount = element('output', {}, '0');
  const slider = element('input', {type: 'range', min: 0, max: 0.99, step: 0.01, value: 0, id: 'smoothing',
    oninput: (event) => { view.smoothing = Number(event.target.value); amount.textContent = event.target.value; redrawAll(); }});
  const log = element('input', {type: 'checkbox', id: 'log', onchange: (event) => { view.log = event.target.checked; redrawAll(); }});
  byId('controls').append(
    element('label', {}, 'Smoothing ', slider, ' ', amount), element('label', {}, log, ' logarithmic'),
    element('button', {onclick: () => { for (const graph of graphs) graph.updateOptions({dateWindow: null, valueRange: [null, null]}); }},
      'Whole range'),
    element('span', {class: 'note'}, 'Drag to zoom, double-click to go back, shift-drag to move.'));
}
