// The tab for texts: answers while the visitor types.

import { oneLine } from "./model.js";
import { loadTextModel } from "./text-model.js";
import * as view from "./text-view.js";
import { at, listModels } from "./view.js";

const TOP = 5; // words for a mask
const PAUSE = 150; // milliseconds without typing before the model runs

const EXAMPLES = {
  masked_lm: [
    { text: "Paris is the [MASK] of France." },
    { text: "He was born in London and [MASK] in New York." },
    { text: "The [MASK] of the river is two hundred kilometres." },
  ],
  text_classification: [
    { text: "a gem of a film, warm and funny from the first scene to the last" },
    { text: "two hours that i will never get back" },
    { text: "not bad at all" },
  ],
  pairs: [
    { text: "The company said profits rose in May.", pair: "In May profits rose, the firm said." },
    { text: "The company said profits rose in May.", pair: "The firm was founded in May." },
  ],
};

const loaded = new Map(); // promises of models that are ready to run, by name
let listed = null; // the promise of the list of models, by name
let turn = 0; // counts requests, so that late answers to older ones are dropped
let example = -1; // number of the shown example
let shownFor = ""; // the kind of model that the fields are set up for
let typed = false; // whether the visitor wrote something, which an example must not replace
let timer = null;

// Starts the tab; it loads no model before it is shown.
//
// Args: the promise of a list of text models.
export function start(models) {
  listed = models.then((list) => {
    listModels(at("text-model"), list);
    return new Map(list.map((model) => [model.name, model]));
  });
  listed.catch(() => {}); // answer() reports it
  for (const id of ["text", "pair"]) {
    at(id).addEventListener("input", () => {
      typed = true;
      clearTimeout(timer);
      timer = setTimeout(answer, PAUSE);
    });
  }
  at("text-model").addEventListener("change", () => answer());
  at("insert-mask").addEventListener("click", () => {
    view.insertMask();
    typed = true;
    answer();
  });
  at("example").addEventListener("click", () => {
    showExample();
    answer();
  });
}

// Runs the chosen model on the fields and shows the result, or what is missing.
export async function answer() {
  if (at("texts").hidden) return;
  const mine = ++turn;
  view.showProblem("");
  try {
    const models = await listed;
    const model = models.get(at("text-model").value);
    if (mine !== turn || !model) return;
    setUpFields(model.card);
    if (!loaded.has(model.name)) view.showStatus("Loading the model …");
    const ready = await load(model);
    if (mine !== turn) return;
    view.showDetails(ready);
    const result = await run(ready);
    if (mine === turn) view.showResult(result, fill);
  } catch (error) {
    if (mine !== turn) return;
    view.showStatus("");
    view.showProblem(oneLine(error));
  }
}

function load(model) {
  if (!loaded.has(model.name)) {
    const loading = loadTextModel(model);
    loading.catch(() => loaded.delete(model.name)); // so that choosing it again retries
    loaded.set(model.name, loading);
  }
  return loaded.get(model.name);
}

// Shows the fields that a model reads, with an example unless the visitor wrote something.
function setUpFields(card) {
  const kind = card.pairs ? "pairs" : card.task;
  if (kind === shownFor) return;
  shownFor = kind;
  view.showFields(kind);
  if (!typed) {
    example = -1;
    showExample();
  }
}

function showExample() {
  const examples = EXAMPLES[shownFor] ?? EXAMPLES.text_classification;
  example = (example + 1) % examples.length;
  const { text, pair = "" } = examples[example];
  at("text").value = text;
  at("pair").value = pair;
  typed = false;
}

// Returns what the view shows: { kind, ..., note, milliseconds }, or { missing } with a hint.
async function run(model) {
  const [text, pair] = ["text", "pair"].map((id) => at(id).value);
  const began = performance.now();
  const finish = (kind, result) => ({ kind, text, ...result, time: performance.now() - began });
  if (!text.trim()) return { missing: "Write a text." };
  if (model.task === "masked_lm") {
    const result = await model.fillMask(text, TOP);
    if (result.masks.length) return finish("masks", result);
    return { missing: "Write [MASK] in the place of a word, or press Insert [MASK]." };
  }
  if (!model.card.pairs) return finish("classes", await model.classify(text));
  if (!pair.trim()) return { missing: "Write the second text." };
  return finish("classes", await model.classify(text, pair));
}

// Writes a word in the place of a mask, unless the text has changed since it was shown.
function fill({ start, stop }, word, text) {
  if (at("text").value !== text) return;
  const before = text.slice(0, start);
  const joined = word.startsWith("##") ? before.trimEnd() + word.slice(2) : before + word;
  at("text").value = joined + text.slice(stop);
  typed = true;
  answer();
}
