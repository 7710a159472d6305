// Loading and running of models, by LiteRT.js on WebAssembly.

import { loadAndCompile, loadLiteRt, Tensor } from "@litertjs/core";
import { readCard } from "./card.js";
import { prepare } from "./prepare.js";

const WASM = new URL("node_modules/@litertjs/core/wasm/", import.meta.url).pathname;
const MOST_THREADS = 4;

let runtime;

// Starts LiteRT.js once; with threads where the server's headers and the browser allow them.
function startRuntime() {
  if (typeof WebAssembly === "undefined") {
    throw new Error(
      "This browser has no WebAssembly, which models run on. Use a current browser, or allow it.",
    );
  }
  runtime ??= (globalThis.crossOriginIsolated
    ? loadLiteRt(WASM, { threads: true }).catch(() => loadLiteRt(WASM))
    : loadLiteRt(WASM)
  ).catch((error) => {
    runtime = undefined;
    throw new Error(`LiteRT.js did not start (${oneLine(error)}). Reload the page.`);
  });
  return runtime;
}

// Fetches a model of the list and makes it ready to run.
export async function loadModel({ name, url }) {
  await startRuntime();
  const bytes = await fetchBytes(name, url);
  try {
    return new Model(name, await compile(bytes), readCard(bytes));
  } catch (error) {
    throw new Error(
      `${name}: cannot be loaded (${oneLine(error)}); damaged or of another kind? Choose another.`,
    );
  }
}

async function fetchBytes(name, url) {
  const response = await fetch(url).catch(() => null);
  if (!response?.ok) {
    const reason = response ? `the server answered ${response.status}` : "no answer";
    throw new Error(`${name}: cannot be fetched (${reason}). Is the server still running?`);
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
      throw new Error("expected one image in, logits out");
    }
    if (!["float32", "uint8"].includes(input.dtype) || output.dtype !== "float32") {
      throw new Error(
        `expected pixels in float32 or uint8 and logits in float32; received ${input.dtype} and ` +
          output.dtype,
      );
    }
    if (input.shape[0] !== 1) throw new Error(`takes ${input.shape[0]} images at once, not one`);
    const classes = output.shape[1];
    const named = card.labels?.length === classes;
    Object.assign(this, { name, compiled, card, dtype: input.dtype });
    this.inputShape = [...input.shape];
    this.labels = named ? card.labels : Array.from({ length: classes }, (_, i) => String(i));
  }

  // A decoded picture cut and scaled to what the model takes.
  prepare(image) {
    return prepare(image, this.inputShape.slice(1), this.card);
  }

  // Pixels 0 to 255 in, as float32 or uint8, whichever the model takes; logits out.
  async logits({ data }) {
    const values = this.dtype === "uint8" ? Uint8Array.from(data) : Float32Array.from(data);
    const input = new Tensor(values, this.inputShape);
    try {
      const [output] = await this.compiled.run(input);
      const logits = await output.data();
      output.delete();
      return logits;
    } finally {
      input.delete();
    }
  }
}

// Pairs of label and probability, the most probable first.
export function rank(logits, labels, top) {
  const highest = Math.max(...logits);
  const exponentials = Array.from(logits, (logit) => Math.exp(logit - highest));
  const sum = exponentials.reduce((a, b) => a + b, 0);
  return labels
    .map((label, i) => ({ label, probability: exponentials[i] / sum }))
    .sort((a, b) => b.probability - a.probability)
    .slice(0, top);
}

export function oneLine(error) {
  return String(error?.message ?? error).replace(/\s+/g, " ").trim().slice(0, 200);
}
