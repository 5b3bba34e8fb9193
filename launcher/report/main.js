// SPDX-License-Identifier: Apache-2.0
// Puts the page together.
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  redrawAll();
}

function drawHeader() {
  const title = runs.length === 1 ? runs[0].name : `${runs.length} runs`;
  document.title = title + ' · Lockstep report';
  byId('title').append(
    element('button', {class: 'theme', onclick: () => setTheme(isDark() ? 'light' : 'dark')}, 'light / dark'), title);
  const states = new Map();
  for (const run of runs) states.set(run.status, (states.get(run.status) || 0) + 1);
  byId('subtitle').append([...states].map(([status, count]) => runs.length === 1 ? status : `${count} ${status}`).join(', ') +
    ' · made ' + timeText(report.made));
  for (const run of runs) {
    for (const problem of run.problems) byId('problems').append(element('p', {class: 'bad'}, `${run.name}: ${problem}`));
    const error = run.summary && run.summary.error;
    if (error && run.status === 'failed') byId('problems').append(element('p', {class: 'bad'}, `${run.name}: ${error.message}`));
  }
  byId('footer').append(`Lockstep ${report.version}. Curves by dygraphs, MIT license, © Dan Vanderkam and contributors.`);
}

const wish = window.matchMedia('(prefers-color-scheme: dark)');
document.documentElement.dataset.theme = wish.matches ? 'dark' : 'light';
wish.addEventListener('change', () => setTheme(wish.matches ? 'dark' : 'light'));
drawHeader();
drawRuns();
drawControls();
drawCharts();
drawPanels();
