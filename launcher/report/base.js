// SPDX-License-Identifier: Apache-2.0
// The page's data, and what all its parts use.
const report = JSON.parse(document.getElementById('data').textContent);
const runs = report.runs;

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const byId = (id) => document.getElementById(id);

function numberText(value) {
  if (typeof value !== 'number' || !isFinite(value)) return '';
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString('en-US');
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e6 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
}

/// Of an axis: 12k, 3.5M, 1e-4.
function tickText(value) {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 1e9 || size < 1e-3) return Number(value.toPrecision(3)).toExponential().replace('e+', 'e');
  if (size >= 1e6) return Number((value / 1e6).toPrecision(4)) + 'M';
  if (size >= 1e4) return Number((value / 1e3).toPrecision(4)) + 'k';
  return String(Number(value.toPrecision(4)));
}

function durationText(seconds) {
  if (typeof seconds !== 'number' || !isFinite(seconds) || seconds < 0) return '';
  const whole = Math.round(seconds), pad = (n) => String(n).padStart(2, '0');
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
}

const timeText = (seconds) => typeof seconds === 'number' ? new Date(seconds * 1000).toLocaleString() : '';
const metricName = (metric) => metric.replace(/^eval\./, '');
const isLowerBetter = (name) => ['loss', 'perplexity', 'rmse', 'mae'].includes(metricName(name));
const isDark = () => document.documentElement.dataset.theme === 'dark';
const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Okabe and Ito's colours, which most people tell apart; of more runs, hues around the circle.
const LIGHT = ['#0072b2', '#d55e00', '#009e73', '#b5588f', '#7a5c00', '#3b9fd6', '#8a4fff', '#555555'];
const DARK = ['#56b4e9', '#ff8f4a', '#2fd6a3', '#e29bc4', '#e6c84c', '#9cc9ff', '#c3a6ff', '#b8b8b8'];

function colorOf(run) {
  if (runs.length <= LIGHT.length) return (isDark() ? DARK : LIGHT)[run];
  const hue = Math.round(360 * ((run * 0.618034) % 1));
  return isDark() ? `hsl(${hue} 70% 65%)` : `hsl(${hue} 75% 38%)`;
}

// What the user has chosen, and who draws anew when that changes.
const view = {smoothing: 0, log: false, hidden: new Set(), over: null, redraw: []};
function redrawAll() { for (const redraw of view.redraw) redraw(); }
