// Splits texts into WordPiece tokens as BERT and keras_gmlp.data.text do, with the place of each
// token in its text, which the tokenizers for JavaScript do not return.

const SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
const LONGEST_WORD = 100; // code points; a longer word is one unknown token in BERT, or it is split

const REMOVED = /^(?![\t\n\r])[\0\uFFFD\p{Cc}\p{Cf}\p{Co}\p{Cs}]$/u;
const SPACE = /^\p{White_Space}$/u;
const CHINESE =
  /^[\u4E00-\u9FFF\u3400-\u4DBF\u{20000}-\u{2A6DF}\u{2A700}-\u{2B81F}\u{2B920}-\u{2CEAF}\uF900-\uFAFF\u{2F800}-\u{2FA1F}]$/u;
const ALONE = /^[\p{P}!-/:-@[-`{-~]$/u; // signs that are words of their own

export class Tokenizer {
  // Args: the text of a tokenizer.json.
  constructor(text) {
    const { model, normalizer, pre_tokenizer: splitter } = JSON.parse(text);
    const steps = splitter?.pretokenizers ?? [splitter];
    const kinds = [model.type ?? "WordPiece", normalizer?.type, ...steps.map((step) => step?.type)];
    const own = "WordPiece, BertNormalizer, BertPreTokenizer";
    this.splits = steps[1]?.pattern?.Regex === `.{1,${LONGEST_WORD}}`;
    if (kinds.join(", ") !== (this.splits ? `${own}, Split` : own)) {
      const found = kinds.join(", ");
      throw new Error(`its tokenizer has the parts ${found}; the page requires BERT's WordPiece`);
    }
    this.lowercase = normalizer.lowercase;
    this.stripAccents = normalizer.strip_accents ?? normalizer.lowercase;
    this.ids = new Map(Object.entries(model.vocab));
    this.tokens = [];
    for (const [token, id] of this.ids) this.tokens[id] = token;
    [this.pad, this.unknown, this.cls, this.sep, this.mask] = SPECIAL.map((t) => this.ids.get(t));
    this.specialIds = new Set(SPECIAL.map((token) => this.ids.get(token)));
  }

  // Returns [{ id, start, stop }]: each token is text.slice(start, stop), in UTF-16 units. Of the
  // special tokens only [MASK] may be written in a text.
  encode(text) {
    const found = [];
    let start = 0;
    for (const match of text.matchAll(/\[MASK\]/g)) {
      this.#encodePlain(text, start, match.index, found);
      start = match.index + match[0].length;
      found.push({ id: this.mask, start: match.index, stop: start });
    }
    this.#encodePlain(text, start, text.length, found);
    return found;
  }

  #encodePlain(text, start, stop, found) {
    for (const word of this.#words(text, start, stop)) found.push(...this.#pieces(word));
  }

  // Yields words: lists of { letter, start, stop } with the normal form of each code point.
  *#words(text, from, to) {
    let word = [];
    for (let start = from, stop; start < to; start = stop) {
      const point = String.fromCodePoint(text.codePointAt(start));
      stop = start + point.length;
      for (const letter of this.#normalize(point)) {
        const alone = ALONE.test(letter) || CHINESE.test(point);
        const full = this.splits && word.length === LONGEST_WORD;
        if (word.length && (alone || full || SPACE.test(letter))) {
          yield word;
          word = [];
        }
        if (alone) yield [{ letter, start, stop }];
        else if (!SPACE.test(letter)) word.push({ letter, start, stop });
      }
    }
    if (word.length) yield word;
  }

  // One code point at a time: at the end of a word toLowerCase() maps Σ to ς, BERT to σ.
  #normalize(point) {
    if (REMOVED.test(point)) return "";
    const plain = this.stripAccents ? point.normalize("NFD").replace(/\p{Mn}/gu, "") : point;
    if (!this.lowercase) return plain;
    return [...plain].map((letter) => letter.toLowerCase()).join("");
  }

  // Returns the longest tokens from the start of a word on; one unknown token if a part has none.
  #pieces(word) {
    const place = (id, first, last) => ({ id, start: word[first].start, stop: word[last].stop });
    const unknown = [place(this.unknown, 0, word.length - 1)];
    if (word.length > LONGEST_WORD) return unknown;
    const found = [];
    for (let first = 0, last; first < word.length; first = last + 1) {
      let part = (first ? "##" : "") + word.slice(first).map(({ letter }) => letter).join("");
      for (last = word.length - 1; last >= first && !this.ids.has(part); last--) {
        part = part.slice(0, -word[last].letter.length);
      }
      if (last < first) return unknown;
      found.push(place(this.ids.get(part), first, last));
    }
    return found;
  }
}

// Returns the lengths of one or two texts cut to a total, as the package tokenizers cuts them: the
// longer text loses tokens until both are equally long; of an odd total it keeps one more.
export function shorten([first, second = 0], total) {
  if (first + second <= total) return [first, second];
  const half = Math.floor(total / 2);
  if (first > second) return [Math.max(total - second, total - half), Math.min(second, half)];
  return [Math.min(first, half), Math.max(total - first, total - half)];
}
