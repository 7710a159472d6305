// The page: lists the models, and shows the tabs that have any.

import * as pictures from "./pictures.js";
import * as texts from "./texts.js";
import { at } from "./view.js";

const TEXT_TASKS = ["masked_lm", "text_classification", "question_answering"];

const TABS = {
  pictures: {
    title: "What is in the picture?",
    promise: "Classifies your picture on this device. The picture is never uploaded.",
  },
  texts: {
    title: "What does the text say?",
    promise: "Reads your text on this device. The text is never uploaded.",
  },
};

const isText = ({ card }) => TEXT_TASKS.includes(card.task);

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
    at(`tab-${tab}`).tabIndex = chosen ? 0 : -1; // the arrow keys reach the other one
    if (chosen) {
      at("title").textContent = title;
      at("promise").textContent = promise;
    }
  }
  if (name === "texts") texts.answer();
  if (name !== "pictures") pictures.leave();
}

let only = null; // the only tab that has models

// The tab of the address, as in http://127.0.0.1:8000/#tab=texts; the first one by default.
function addressed() {
  if (only) return only;
  return location.hash === "#tab=texts" ? "texts" : "pictures";
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
    if (key !== "ArrowLeft" && key !== "ArrowRight") return;
    const other = at("pictures").hidden ? "pictures" : "texts";
    choose(other);
    at(`tab-${other}`).focus();
  });
  addEventListener("hashchange", openAddressed);
}

const listed = listModels();
texts.start(listed.then((models) => models.filter(isText)));
pictures.start(listed.then((models) => models.filter((model) => !isText(model))));
listen();
open(addressed());
listed.then((models) => {
  const some = models.filter(isText).length;
  at("tabs").hidden = !some || some === models.length;
  if (!at("tabs").hidden) return;
  only = some ? "texts" : "pictures";
  openAddressed();
}, () => {}); // each tab reports the error
