// SPDX-License-Identifier: Apache-2.0
// Which charts there are, and the points of each.
const TITLES = {
  loss: 'Training loss', lr: 'Learning rate', loss_scale: 'Loss scale', skips: 'Skipped steps so far',
  samples_per_s: 'Samples / s', grad_norm: 'Gradient norm', step_ms: 'Step, ms', wait_data_ms: 'Waiting for data, ms',
  wait_ranks_ms: 'Waiting for other ranks, ms', queue_depth: 'Decoded batches that wait',
  skipped_samples: 'Unreadable samples so far'};
// Numbers that change in steps, of which a mean would be no value that they had.
const NOT_NOISY = new Set(['lr', 'loss_scale', 'skips', 'skipped_samples']);
const NOT_METRICS = new Set(['step', 'time', 'samples', 'skipped_samples']);

/// [{title, kind, rows: [[x, value of each run or null]], marks}] of the metrics of evaluations.
function evaluationCharts() {
  const names = [];
  for (const run of runs) {
    for (const evaluation of run.evals) {
      for (const [name, value] of Object.entries(evaluation)) {
        if (typeof value === 'number' && !NOT_METRICS.has(name) && !names.includes(name)) names.push(name);
      }
    }
  }
  return names.map((name) => {
    const rows = new Map();
    runs.forEach((run, i) => {
      for (const evaluation of run.evals) {
        if (typeof evaluation[name] !== 'number' || typeof evaluation.step !== 'number') continue;
        if (!rows.has(evaluation.step)) rows.set(evaluation.step, Array(runs.length).fill(null));
        rows.get(evaluation.step)[i] = evaluation[name];
      }
    });
    const sorted = [...rows].sort((a, b) => a[0] - b[0]);
    return {title: 'Evaluation: ' + name, name, kind: 'eval', rows: sorted.map(([x, values]) => [x, ...values])};
  });
}

/// Of the lines of steps. A bucket of several steps has two points.
function stepCharts() {
  const names = [...Object.keys(TITLES)];
  for (const run of runs) for (const name of Object.keys(run.curves)) if (!names.includes(name)) names.push(name);
  const width = report.steps_a_bucket;
  const stepOf = (i) => width === 1 ? i + 1 : Math.floor(i / 2) * width + (i % 2 ? Math.ceil(width / 2) : 0) + 1;
  return names.map((name) => {
    const curves = runs.map((run) => run.curves[name] || []);
    const length = Math.max(0, ...curves.map((curve) => curve.length));
    const rows = Array.from({length}, (_, i) => [stepOf(i), ...curves.map((curve) => curve[i] ?? null)]);
    return {title: TITLES[name] || name, name, kind: 'step', noisy: !NOT_NOISY.has(name), rows};
  });
}

/// The one value that all points have; null where they differ.
function constantOf(chart) {
  let constant = null;
  for (const row of chart.rows) {
    for (let i = 1; i < row.length; ++i) {
      if (row[i] === null) continue;
      if (constant === null) constant = row[i];
      if (row[i] !== constant) return null;
    }
  }
  return constant;
}

/// The running mean with the weight of the past `smoothing`, as if the past had not begun at 0.
function smoothed(rows, smoothing) {
  if (smoothing === 0) return rows;
  const sums = Array(runs.length).fill(0), weights = Array(runs.length).fill(0);
  return rows.map((row) => row.map((value, i) => {
    if (i === 0 || value === null) return value;
    sums[i - 1] = smoothing * sums[i - 1] + (1 - smoothing) * value;
    weights[i - 1] = smoothing * weights[i - 1] + (1 - smoothing);
    return sums[i - 1] / weights[i - 1];
  }));
}

/// A logarithm of 0 has no place on the axis.
const positive = (rows) => rows.map((row) => row.map((value, i) => i > 0 && value !== null && value <= 0 ? null : value));
