// Windows of a text for a question, and the best answers over all windows.

export const MAX_ANSWER = 30; // the last token of an answer is at most so many after its first
const LONGEST_WORD = 100; // letters, as in BERT's tokenizer

// Scripts that are written without spaces between words, as in data/text/squad_answers.py.
const UNSPACED =
  /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]/u;

// Returns [{ ids, begin, count, skipped }]: rows [CLS] question [SEP] part of the text [SEP]. The
// part has count tokens from place begin of the row on, and skipped tokens of the text before it.
// Windows overlap by half, at least by the longest answer.
export function makeWindows(question, tokens, { cls, sep }, length) {
  const head = [cls, ...question.map(({ id }) => id), sep];
  const room = length - head.length - 1;
  const step = Math.min(Math.floor(length / 2), room - MAX_ANSWER);
  const windows = [];
  for (let skipped = 0; ; skipped += step) {
    const part = tokens.slice(skipped, skipped + room).map(({ id }) => id);
    const ids = [...head, ...part, sep];
    windows.push({ ids, begin: head.length, count: part.length, skipped });
    if (skipped + room >= tokens.length) return windows;
  }
}

// Returns { spans: [{ score, start, stop }], none }: the best spans with their places in the text,
// in whole words and without overlaps, and the score of no answer, which is that of [CLS], the
// lowest over the windows.
//
// Args: windows with the logits starts and ends, one for each place of the row.
export function bestSpans(windows, text, tokens, most) {
  const found = new Map(); // the overlap of two windows gives the same span twice
  for (const { starts, ends, begin, count, skipped } of windows) {
    for (const { score, first, last } of best(starts, ends, begin, count, 20 * most)) {
      const part = [tokens[first + skipped].start, tokens[last + skipped].stop];
      const [start, stop] = completeWords(text, ...part);
      const key = `${start} ${stop}`;
      if (!(found.get(key)?.score >= score)) found.set(key, { score, start, stop });
    }
  }
  const spans = [...found.values()].sort(
    (a, b) => b.score - a.score || a.start - b.start || a.stop - b.stop,
  );
  const none = Math.min(...windows.map(({ starts, ends }) => starts[0] + ends[0]));
  const kept = [];
  for (const span of spans) {
    if (kept.length === most) break;
    if (kept.every((one) => span.stop <= one.start || one.stop <= span.start)) kept.push(span);
  }
  return { spans: kept, none };
}

// Moves the start and the stop of a part of a text to the borders of its words.
export function completeWords(text, start, stop) {
  for (let i = 0; i < LONGEST_WORD && isInsideWord(text, start); i++) {
    start -= letterBefore(text, start).length;
  }
  for (let i = 0; i < LONGEST_WORD && isInsideWord(text, stop); i++) {
    stop += String.fromCodePoint(text.codePointAt(stop)).length;
  }
  return [start, stop];
}

function isInsideWord(text, place) {
  if (place <= 0 || place >= text.length) return false;
  const around = [letterBefore(text, place), String.fromCodePoint(text.codePointAt(place))];
  return around.every((letter) => /[\p{L}\p{M}\p{N}]/u.test(letter) && !UNSPACED.test(letter));
}

function letterBefore(text, place) {
  const isPair = place > 1 && text.codePointAt(place - 2) > 0xffff;
  return text.slice(place - (isPair ? 2 : 1), place);
}

function best(starts, ends, begin, count, most) {
  const spans = [];
  for (let first = 0; first < count; first++) {
    for (let last = first; last < Math.min(count, first + MAX_ANSWER + 1); last++) {
      spans.push({ score: starts[begin + first] + ends[begin + last], first, last });
    }
  }
  return spans.sort((a, b) => b.score - a.score).slice(0, most);
}
