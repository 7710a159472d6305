// A classifier on a model's features: softmax regression, learned in the page.

import { softmax } from "./model.js";

const KIND = "keras_gmlp.head"; // of the file that keras_gmlp.inference.page_head reads, too
const MAX_BYTES = 20_000_000;

// The parts of a picture that the page looks at besides the whole, each [side, across, down] as in
// prepare.js. A small input shows details of a part that the whole does not show.
export const PARTS = [
  [0.75, 0.5, 0.5],
  [0.5, 0.5, 0.5],
];

const STRENGTH = 10; // C in scikit-learn's LogisticRegression
const MAX_STEPS = 2000;
const TOLERANCE = 1e-6; // of the gradient
const PAUSE = 100; // milliseconds of computing, after which the page may react

// Learns what scikit-learn's multinomial LogisticRegression(C=10) learns from standardized features
// divided by the square root of their number. Equal pictures in equal order give equal classifiers.
//
// Args: the features of each view of the pictures, the class of each from 0, the number of classes.
// Returns a promise of { weights, bias }: for each class a row of weights and a number.
export async function fitHead(features, targets, classes) {
  const { rows, mean, scale } = standardize(features);
  const penalty = 1 / (STRENGTH * rows.length);
  // Neither the rows nor the column of ones has a mean square above 1, and both are orthogonal.
  const rate = 1 / (0.5 + penalty);
  let weights = new Float64Array(classes * (mean.length + 1)); // each row ends with the bias
  let ahead = weights;
  let momentum = 1;
  let began = performance.now();
  for (let step = 0; step < MAX_STEPS; step++) {
    if (performance.now() > began + PAUSE) {
      await new Promise((resolve) => setTimeout(resolve));
      began = performance.now();
    }
    const gradient = gradientOf(ahead, rows, targets, classes, penalty);
    if (gradient.every((value) => Math.abs(value) < TOLERANCE)) break;
    const next = ahead.map((value, i) => value - rate * gradient[i]);
    // Nesterov's method, restarted where its momentum leads uphill.
    const uphill = gradient.reduce((sum, value, i) => sum + value * (next[i] - weights[i]), 0) > 0;
    const grown = uphill ? 1 : (1 + Math.sqrt(1 + 4 * momentum ** 2)) / 2;
    const push = uphill ? 0 : (momentum - 1) / grown;
    ahead = next.map((value, i) => value + push * (value - weights[i]));
    [weights, momentum] = [next, grown];
  }
  return unstandardize(weights, mean, scale, classes);
}

// Returns rows with mean 0 and a mean square of 1, followed by a column of ones.
function standardize(features) {
  const count = features.length;
  const width = features[0].length;
  const mean = new Float64Array(width);
  const scale = new Float64Array(width);
  for (const row of features) row.forEach((value, i) => (mean[i] += value / count));
  for (const row of features) row.forEach((value, i) => (scale[i] += (value - mean[i]) ** 2 / count));
  // A feature that is the same in all views says nothing.
  scale.forEach((variance, i) => (scale[i] = variance > 1e-12 ? 1 / Math.sqrt(variance * width) : 0));
  const rows = features.map((row) => {
    const scaled = Float64Array.from(row, (value, i) => (value - mean[i]) * scale[i]);
    return Float64Array.of(...scaled, 1);
  });
  return { rows, mean, scale };
}

// The gradient of the mean cross-entropy plus the penalty, which leaves out the bias.
function gradientOf(weights, rows, targets, classes, penalty) {
  const width = rows[0].length;
  const gradient = weights.map((value, i) => (i % width === width - 1 ? 0 : penalty * value));
  rows.forEach((row, view) => {
    const logits = new Float64Array(classes);
    for (let k = 0; k < classes; k++) {
      let sum = 0;
      for (let i = 0; i < width; i++) sum += weights[k * width + i] * row[i];
      logits[k] = sum;
    }
    softmax(logits).forEach((probability, k) => {
      const error = (probability - (k === targets[view] ? 1 : 0)) / rows.length;
      for (let i = 0; i < width; i++) gradient[k * width + i] += error * row[i];
    });
  });
  return gradient;
}

// Returns the weights and biases for features as the model computes them.
function unstandardize(weights, mean, scale, classes) {
  const width = mean.length + 1;
  const rows = Array.from({ length: classes }, (_, k) => weights.subarray(k * width, (k + 1) * width));
  const scaled = rows.map((row) => Array.from(scale, (value, i) => value * row[i]));
  const bias = rows.map((row, k) => row[width - 1] - dot(scaled[k], mean));
  return { weights: scaled, bias };
}

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

// Returns a logit for each class, from the features of each view of a picture.
export function headLogits({ weights, bias }, views) {
  const mean = new Float64Array(views[0].length);
  for (const view of views) view.forEach((value, i) => (mean[i] += value / views.length));
  return weights.map((row, k) => bias[k] + dot(row, mean));
}

// Returns the text of a classifier's file.
export function formatHead({ labels, parts, weights, bias, model: { name, card } }) {
  const model = { model: name, model_sha256: card.model_sha256 };
  return JSON.stringify({ kind: KIND, labels, ...model, parts, weights, bias });
}

// Returns { labels, weights, bias, parts, model, model_sha256 } of a File. Throws if it is none of
// ours.
export async function readHead(file) {
  const head = file.size <= MAX_BYTES && parse(await file.text());
  if (!head || !isHead(head)) {
    throw new Error(`${file.name}: no classifier of this page, or damaged. Download it again.`);
  }
  return head;
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isHead({ kind, labels, weights, bias, model, model_sha256: digest, parts }) {
  const numbers = (row, length) =>
    Array.isArray(row) && row.length === length && row.every(Number.isFinite);
  return (
    kind === KIND &&
    Array.isArray(labels) &&
    labels.length >= 2 &&
    labels.every((label) => typeof label === "string") &&
    typeof model === "string" &&
    typeof digest === "string" &&
    numbers(bias, labels.length) &&
    Array.isArray(parts) &&
    parts.every((part) => numbers(part, 3) && part[0] > 0 && part.every((n) => n >= 0 && n <= 1)) &&
    Array.isArray(weights) &&
    weights.length === labels.length &&
    weights.every((row) => numbers(row, weights[0]?.length))
  );
}
