// The page: lists the models, and shows the tabs that have any.

import * as pictures from "./pictures.js";
import * as teach from "./teach.js";
import * as texts from "./texts.js";
import { at } from "./view.js";

const TEXT_TASKS = ["masked_lm", "text_classification", "multi_label_texts"];

const TABS = {
  pictures: {
    title: "What is in the picture?",
    promise: "Classifies your picture on this device. The picture is never uploaded.",
    takes: (model) => !isText(model),
  },
  texts: {
    title: "What does the text say?",
    promise: "Reads your text on this device. The text is never uploaded.",
    takes: isText,
  },
  teach: {
    title: "Teach your own classes",
    promise: "Learns from your pictures on this device. The pictures are never uploaded.",
    takes: (model) => !isText(model) && Boolean(model.card.features && model.card.model_sha256),
  },
};

function isText({ card }) {
  return TEXT_TASKS.includes(card.task);
}

// Returns the server's models.
async function listModels() {
  const response = await fetch("models.json").catch(() => null);
  if (!response?.ok) {
    throw new Error("The list of models cannot be read. Is the server running? Reload the page.");
  }
  return response.json();
}

function open(name) {
  for (const [tab, { title, promise }] of Object.entries(TABS)) {
    const chosen = tab === name;
    at(tab).hidden = !chosen;
    at(`tab-${tab}`).setAttribute("aria-selected", chosen);
    at(`tab-${tab}`).tabIndex = chosen ? 0 : -1; // the arrow keys reach the others
    if (chosen) {
      at("title").textContent = title;
      at("promise").textContent = promise;
    }
  }
  if (name === "texts") texts.answer();
  if (name !== "pictures") pictures.leave();
  if (name !== "teach") teach.leave();
}

let names = Object.keys(TABS); // of the tabs that have models, all until the models are listed

// The tab of the address, as in http://127.0.0.1:8000/#tab=texts; the first one by default.
function addressed() {
  const name = location.hash.replace("#tab=", "");
  return names.includes(name) ? name : names[0];
}

function openAddressed() {
  if (at(addressed()).hidden) open(addressed());
}

// Opens the tab at once: the browser reports a new address later, perhaps after the next key.
// The address keeps the tab. The name alone is an id of the page, which would take the focus.
function choose(name) {
  open(name);
  location.hash = `tab=${name}`;
}

function listen() {
  for (const tab of Object.keys(TABS)) {
    at(`tab-${tab}`).addEventListener("click", () => choose(tab));
  }
  at("tabs").addEventListener("keydown", ({ key }) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (!step) return;
    const current = names.findIndex((name) => !at(name).hidden);
    const other = names.at((current + step) % names.length);
    choose(other);
    at(`tab-${other}`).focus();
  });
  addEventListener("hashchange", openAddressed);
}

const listed = listModels();
const modelsOf = (tab) => listed.then((models) => models.filter(TABS[tab].takes));
texts.start(modelsOf("texts"));
pictures.start(modelsOf("pictures"));
teach.start(modelsOf("teach"));
listen();
open(addressed());
listed.then((models) => {
  const filled = names.filter((tab) => models.some(TABS[tab].takes));
  names = filled.length ? filled : ["pictures"];
  for (const tab of Object.keys(TABS)) at(`tab-${tab}`).hidden = !names.includes(tab);
  at("tabs").hidden = names.length < 2;
  openAddressed();
}, () => {}); // each tab reports the error
