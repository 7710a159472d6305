// Reads a model's card: a zip archive behind the flatbuffer, written by keras_gmlp.utils.card.

const END = 0x06054b50; // signatures of the zip format
const ENTRY = 0x02014b50;
const END_SIZE = 22; // bytes of the end record, the last one in an archive without a comment

// Returns { labels, ...metadata } of a .tflite file, or {} if it has no card; of a text model also
// { tokenizerText }. Throws if the card or the model is damaged.
export async function readCard(bytes) {
  const { card, size } = parseCard(bytes);
  if (card.model_sha256 && card.model_sha256 !== (await hashOf(bytes.subarray(0, size)))) {
    throw new Error("its model differs from the digest in its card; copy or export the file again");
  }
  return card;
}

function parseCard(bytes) {
  try {
    const { members, size } = readStored(bytes);
    const labels = members["labels.txt"].replace(/\n$/, "").split("\n");
    const tokenizerText = members["tokenizer.json"];
    return { card: { ...JSON.parse(members["card.json"]), labels, tokenizerText }, size };
  } catch {
    if (!hasMembers(bytes)) return { card: {} };
    throw new Error("its class names cannot be read");
  }
}

async function hashOf(bytes) {
  const hash = await crypto.subtle.digest("SHA-256", bytes);
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Returns whether the file has a card, found by its members' headers even if the index is damaged.
function hasMembers(bytes) {
  const text = new TextDecoder("latin1").decode(bytes);
  return /PK\x03\x04[^]{26}(card\.json|labels\.txt)/.test(text);
}

// Returns { members, size }: the members' texts by name, which the archive does not compress, and
// the size of what comes before it.
function readStored(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = bytes.length - END_SIZE;
  if (view.getUint32(end, true) !== END) throw new Error("no zip archive");
  const decoder = new TextDecoder();
  const text = (start, length) => decoder.decode(bytes.subarray(start, start + length));
  const members = {};
  let size = end;
  let at = view.getUint32(end + 16, true);
  for (let left = view.getUint16(end + 10, true); left > 0; left--) {
    if (view.getUint32(at, true) !== ENTRY) throw new Error("expected another entry");
    const [nameLength, extra, comment] = [28, 30, 32].map((i) => view.getUint16(at + i, true));
    const start = view.getUint32(at + 42, true);
    size = Math.min(size, start);
    const header = 30 + view.getUint16(start + 26, true) + view.getUint16(start + 28, true);
    members[text(at + 46, nameLength)] = text(start + header, view.getUint32(at + 20, true));
    at += 46 + nameLength + extra + comment;
  }
  return { members, size };
}
