// Loads models with LiteRT.js on WebAssembly, and runs those that classify images.

import { loadAndCompile, loadLiteRt, Tensor } from "@litertjs/core";
import { readCard } from "./card.js";
import { readConfidence, readThresholds } from "./confidence.js";
import { prepare, prepareViews } from "./prepare.js";

const WASM = new URL("node_modules/@litertjs/core/wasm/", import.meta.url).pathname;
const MOST_THREADS = 4;

let runtime;

// Starts LiteRT.js once, with threads if the server's headers and the browser allow them.
function startRuntime() {
  runtime ??= (globalThis.crossOriginIsolated
    ? loadLiteRt(WASM, { threads: true }).catch(() => loadLiteRt(WASM))
    : loadLiteRt(WASM)
  ).catch((error) => {
    runtime = undefined;
    throw new Error(`LiteRT.js did not start (${oneLine(error)}). Reload the page.`);
  });
  return runtime;
}

// Fetches and compiles an image model from the list.
export function loadModel(listed) {
  return openModel(listed, (compiled, card) => new Model(listed.name, compiled, card));
}

// Fetches and compiles a model; returns what wrap(compiled, card) makes of it.
export async function openModel({ name, url }, wrap) {
  await startRuntime();
  const bytes = await fetchBytes(name, url);
  try {
    const card = await readCard(bytes); // first: a damaged model may stop the runtime
    return wrap(await compile(bytes), card);
  } catch (error) {
    throw new Error(
      `${name}: cannot be loaded (${oneLine(error)}). Choose another model.`,
    );
  }
}

async function fetchBytes(name, url) {
  const response = await fetch(url).catch(() => null);
  if (!response?.ok) {
    const reason = response ? `the server answered ${response.status}` : "no answer";
    throw new Error(`${name}: cannot be fetched (${reason}). Check that the server is running.`);
  }
  return new Uint8Array(await response.arrayBuffer());
}

async function compile(bytes) {
  const numThreads = Math.min(MOST_THREADS, navigator.hardwareConcurrency || 1);
  return loadAndCompile(bytes, { accelerator: "wasm", cpuOptions: { numThreads } });
}

class Model {
  constructor(name, compiled, card) {
    const [input, ...more] = compiled.getInputDetails();
    const outputs = compiled.getOutputDetails();
    const [output] = outputs;
    if (more.length || outputs.length !== 1 || input.shape.length !== 4 || output.shape.length !== 2) {
      throw new Error("expected one image as input and logits as output");
    }
    if (!["float32", "uint8"].includes(input.dtype) || output.dtype !== "float32") {
      throw new Error(
        `expected float32 or uint8 pixels and float32 logits; received ${input.dtype} and ` +
          output.dtype,
      );
    }
    if (input.shape[0] !== 1) throw new Error(`expected a batch of 1; it takes ${input.shape[0]}`);
    const classes = output.shape[1];
    const named = card.labels?.length === classes;
    Object.assign(this, { name, compiled, card, dtype: input.dtype });
    this.confidence = readConfidence(card);
    this.thresholds = readThresholds(card, classes);
    this.grid = card.maps; // rows and columns of its maps, if it has them
    this.inputShape = [...input.shape];
    this.labels = named ? showLabels(card.labels) : Array.from({ length: classes }, (_, i) => String(i));
  }

  // Crops and scales a decoded picture to the model's input.
  prepare(image) {
    return prepare(image, this.inputShape.slice(1), this.card);
  }

  // Maps pixels from 0 to 255 to logits; casts them to the model's float32 or uint8.
  async logits({ data }) {
    return (await this.#run(data))[0];
  }

  // Maps pixels to the vector before the head, of a file with features.
  async features({ data }) {
    return (await this.#run(data, "serving_features")).features;
  }

  // Returns the features of a decoded picture as a whole, then of each of its parts.
  async viewFeatures(image, parts) {
    const rows = [];
    for (const input of prepareViews(image, this.inputShape.slice(1), this.card, parts)) {
      rows.push(await this.features(input));
    }
    return rows;
  }

  // Maps pixels to what each part of the picture adds to each class, of a file with maps: rows,
  // columns and classes in one array.
  async maps({ data }) {
    return (await this.#run(data, "serving_features")).maps;
  }

  // Returns the outputs of a signature by name, or without one by their number.
  async #run(data, signature) {
    const pixels = this.dtype === "uint8" ? Uint8Array.from(data) : Float32Array.from(data);
    const image = new Tensor(pixels, this.inputShape);
    try {
      const outputs = await (signature
        ? this.compiled.run(signature, { image })
        : this.compiled.run(image)); // files from elsewhere have other names
      const values = {};
      for (const [name, output] of Object.entries(outputs)) {
        values[name] = await output.data();
        output.delete();
      }
      return values;
    } finally {
      image.delete();
    }
  }
}

// Returns class names with spaces for underscores, unless two would become the same.
export function showLabels(labels) {
  const shown = labels.map((label) => label.replaceAll("_", " "));
  return new Set(shown).size === new Set(labels).size ? shown : labels;
}

// Returns the most probable classes as { index, label, probability }, highest first.
export function rank(logits, labels, top, temperature = 1) {
  const probabilities = softmax(Float64Array.from(logits, (logit) => logit / temperature));
  return order(logits)
    .slice(0, top)
    .map((index) => ({ index, label: labels[index], probability: probabilities[index] }));
}

// Returns the labels that apply and the most probable ones, as rank does with { applies } for each; at
// least as many as top. Each label has its own probability.
export function rankLabels(logits, labels, thresholds, top) {
  softmax(logits); // refuses what is not a number
  const rows = order(logits).map((index) => {
    const probability = 0.5 + 0.5 * Math.tanh(logits[index] / 2); // never overflows
    return { index, label: labels[index], probability, applies: probability >= thresholds[index] };
  });
  return rows.filter(({ applies }, place) => applies || place < top);
}

// Returns the indices, the highest logit first: no rounding of probabilities changes the order.
function order(logits) {
  return Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a]);
}

export function softmax(logits) {
  const highest = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const exponentials = Float64Array.from(logits, (logit) => Math.exp(logit - highest));
  const sum = exponentials.reduce((a, b) => a + b, 0);
  if (Number.isNaN(sum)) {
    throw new Error("The model's answer is not a number; its file is damaged. Choose another model.");
  }
  return exponentials.map((value) => value / sum);
}

export function oneLine(error) {
  return String(error?.message ?? error).replace(/\s+/g, " ").trim().slice(0, 200);
}
