// Runs text models: fills masks and classifies texts as keras_gmlp.inference.text does.

import { Tensor } from "@litertjs/core";
import { isKnown, readConfidence, readThresholds } from "./confidence.js";
import { openModel, rank, rankLabels, showLabels, softmax } from "./model.js";
import { shorten, Tokenizer } from "./tokens.js";

const MASKS = 8; // places that a masked language model predicts in a run

const INPUTS = {
  masked_lm: ["mask_positions", "token_ids"],
  text_classification: ["token_ids"],
  multi_label_texts: ["token_ids"],
};

// Fetches and compiles a text model from the list.
export function loadTextModel(listed) {
  return openModel(listed, (compiled, card) => new TextModel(listed.name, compiled, card));
}

class TextModel {
  constructor(name, compiled, card) {
    const inputs = compiled.getInputDetails();
    const names = inputs.map((input) => input.name).sort();
    const expected = INPUTS[card.task] ?? [];
    if (names.join() !== expected.join()) {
      throw new Error(`expected the inputs ${expected.join(", ")}; received ${names.join(", ")}`);
    }
    if (!card.tokenizerText) throw new Error("it has no tokenizer");
    this.tokenizer = new Tokenizer(card.tokenizerText);
    this.length = inputs.find((input) => input.name === "token_ids").shape[1];
    const [output] = compiled.getOutputDetails();
    const classes = output.shape.at(-1);
    const labels = card.labels?.length === classes ? showLabels(card.labels) : null;
    this.confidence = readConfidence(card);
    this.thresholds = readThresholds(card, classes);
    this.labels = labels ?? Array.from({ length: classes }, (_, i) => String(i));
    Object.assign(this, { name, compiled, card, task: card.task });
  }

  // Runs the model on a row of ids; returns the logits as a Float32Array.
  async logits(ids, positions) {
    const row = new Int32Array(this.length).fill(this.tokenizer.pad);
    row.set(ids);
    const inputs = { token_ids: new Tensor(row, [1, this.length]) };
    if (positions) {
      const places = new Int32Array(MASKS); // unused ones point at [CLS]
      places.set(positions);
      inputs.mask_positions = new Tensor(places, [1, MASKS]);
    }
    try {
      const [output] = Object.values(await this.compiled.run(inputs));
      const values = await output.data();
      output.delete();
      return values;
    } finally {
      for (const tensor of Object.values(inputs)) tensor.delete();
    }
  }

  // Returns { ranked: [{ label, probability }], known, note } with the most probable class first.
  // A calibrated model takes a text that is not known for none of its classes; one with thresholds
  // says { applies } of each label.
  async classify(text, pair) {
    const { cls, sep } = this.tokenizer;
    const texts = pair === undefined ? [text] : [text, pair];
    const parts = texts.map((part) => this.tokenizer.encode(part));
    const room = this.length - 1 - parts.length;
    const kept = shorten(parts.map((part) => part.length), room);
    const ids = [cls];
    parts.forEach((part, i) => ids.push(...part.slice(0, kept[i]).map(({ id }) => id), sep));
    const total = parts.reduce((sum, part) => sum + part.length, 0);
    const logits = await this.logits(ids);
    const known = isKnown(logits, this.confidence);
    const { labels, thresholds, confidence } = this;
    const ranked = thresholds
      ? rankLabels(logits, labels, thresholds, labels.length)
      : rank(logits, labels, labels.length, confidence.temperature);
    return { ranked, known, note: this.#cutNote(total + this.length - room, this.length) };
  }

  // Returns { masks, note }; each mask is { start, stop, words: [{ word, probability }] }, its place
  // in the text and the most probable words, without punctuation and parts of words.
  async fillMask(text, top) {
    const { cls, sep, mask, tokens, specialIds } = this.tokenizer;
    const whole = this.tokenizer.encode(text);
    const places = whole.map(({ id }, i) => (id === mask ? i : -1)).filter((i) => i >= 0);
    const room = this.length - 2;
    if (places.at(-1) >= room) {
      throw new Error(
        `A [MASK] is after the first ${room} tokens, which the model takes. Shorten the text.`,
      );
    }
    const ids = [cls, ...whole.slice(0, room).map(({ id }) => id), sep];
    const masks = [];
    for (let first = 0; first < places.length; first += MASKS) {
      const asked = places.slice(first, first + MASKS);
      const logits = await this.logits(ids, asked.map((place) => place + 1));
      asked.forEach((place, row) => {
        const scores = softmax(logits.subarray(row * tokens.length, (row + 1) * tokens.length));
        const words = highest(scores)
          .filter((id) => isWord(tokens[id]) && !specialIds.has(id))
          .slice(0, top)
          .map((id) => ({ word: tokens[id], probability: scores[id] }));
        masks.push({ start: whole[place].start, stop: whole[place].stop, words });
      });
    }
    return { masks, note: this.#cutNote(whole.length + 2, this.length) };
  }

  #cutNote(tokens, most) {
    if (tokens <= most) return "";
    return `The text has ${tokens} tokens, the model takes ${most}; the end was cut.`;
  }
}

// Returns the places of the values, that of the highest first.
function highest(values) {
  return Array.from(values.keys()).sort((a, b) => values[b] - values[a]);
}

// Whether a token can stand for a word, rather than inside one or for punctuation.
function isWord(token) {
  return !token.startsWith("##") && /[\p{L}\p{N}]/u.test(token);
}
