// What the tab for texts shows; knows no models.

import { at, row, summary, time } from "./view.js";

const KINDS = {
  masked_lm: "Fills in [MASK] with the most probable words; press one to write it.",
  text_classification: "Classifies a text.",
  multi_label_texts: "Finds the labels that apply to a text.",
  pairs: "Classifies a pair of texts.",
};

// Shows the fields that a kind of model reads.
export function showFields(kind) {
  at("pair-field").hidden = kind !== "pairs";
  at("insert-mask").hidden = kind !== "masked_lm";
  at("text-caption").textContent = kind === "pairs" ? "First text" : "Text";
  at("text-details").textContent = KINDS[kind] ?? "";
}

export function showDetails({ card, labels, length, task }) {
  const kind = KINDS[card.pairs ? "pairs" : task];
  const data = card.data ? ` Trained on ${card.data}.` : "";
  const classes = task !== "masked_lm" ? ` Classes: ${labels.join(", ")}.` : "";
  at("text-details").textContent = `${kind}${data}${classes} Reads ${length} tokens at a time.`;
}

export function showProblem(text) {
  at("text-problem").textContent = text;
}

export function showStatus(text) {
  at("text-answer").textContent = text;
  at("text-answer").classList.remove("found");
  at("text-results").replaceChildren();
  at("text-note").textContent = "";
  at("text-time").textContent = "";
}

// Args: the result of a model, and a function that writes a word in the place of a mask.
export function showResult(result, fill) {
  showStatus("");
  if (result.missing) {
    at("text-answer").textContent = result.missing;
    return;
  }
  const shown = { classes, masks }[result.kind](result, fill);
  at("text-results").replaceChildren(...shown);
  at("text-note").textContent = result.note;
  at("text-time").textContent = time(result.time);
}

function classes({ ranked, known }) {
  if (!known) {
    headline("Unlike the texts that I know");
    return [];
  }
  headline(summary(ranked));
  return [bars(ranked)];
}

function masks({ masks, text }, fill) {
  return masks.flatMap((mask, number) => {
    const items = mask.words.map(({ word, probability }) => {
      const item = row({ label: word, probability });
      const button = Object.assign(document.createElement("button"), {
        type: "button",
        className: "label word",
        textContent: word,
      });
      button.addEventListener("click", () => fill(mask, word, text));
      item.querySelector(".label").replaceWith(button);
      return item;
    });
    const title = masks.length > 1 ? [element("h2", `[MASK] ${number + 1}`)] : [];
    return [...title, list(items)];
  });
}

function headline(text) {
  at("text-answer").textContent = text;
  at("text-answer").classList.add("found");
}

function bars(entries) {
  return list(entries.map(row));
}

function list(items) {
  const made = element("ol", "", "bars");
  made.append(...items);
  return made;
}

function element(kind, text, className = "") {
  return Object.assign(document.createElement(kind), { textContent: text, className });
}

// Replaces the selection of the text, or adds at its end, with [MASK].
export function insertMask() {
  const field = at("text");
  const untouched = document.activeElement !== field && !field.selectionEnd;
  const start = untouched ? field.value.length : field.selectionStart;
  const stop = untouched ? field.value.length : field.selectionEnd;
  field.setRangeText("[MASK]", start, stop, "end");
  field.focus();
}
