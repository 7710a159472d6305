// Reads a model's card: a zip archive behind the flatbuffer, written by keras_gmlp.card.

const END = 0x06054b50; // signatures of the zip format
const ENTRY = 0x02014b50;
const END_SIZE = 22; // bytes of the end record, the last one in an archive without a comment

// Returns { labels, ...metadata } of a .tflite file, or {} if it has no card; of a text model also
// { tokenizerText }. Throws if the card is damaged.
export function readCard(bytes) {
  try {
    const members = readStored(bytes);
    const labels = members["labels.txt"].replace(/\n$/, "").split("\n");
    const tokenizerText = members["tokenizer.json"];
    return { ...JSON.parse(members["card.json"]), labels, tokenizerText };
  } catch {
    if (!hasMembers(bytes)) return {};
    throw new Error("its class names cannot be read");
  }
}

// Returns whether the file has a card, found by its members' headers even if the index is damaged.
function hasMembers(bytes) {
  const text = new TextDecoder("latin1").decode(bytes);
  return /PK\x03\x04[^]{26}(card\.json|labels\.txt)/.test(text);
}

// Returns the members' texts by name. The archive does not compress them.
function readStored(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = bytes.length - END_SIZE;
  if (view.getUint32(end, true) !== END) throw new Error("no zip archive");
  const decoder = new TextDecoder();
  const text = (start, length) => decoder.decode(bytes.subarray(start, start + length));
  const members = {};
  let at = view.getUint32(end + 16, true);
  for (let left = view.getUint16(end + 10, true); left > 0; left--) {
    if (view.getUint32(at, true) !== ENTRY) throw new Error("expected another entry");
    const [nameLength, extra, comment] = [28, 30, 32].map((i) => view.getUint16(at + i, true));
    const start = view.getUint32(at + 42, true);
    const header = 30 + view.getUint16(start + 26, true) + view.getUint16(start + 28, true);
    members[text(at + 46, nameLength)] = text(start + header, view.getUint32(at + 20, true));
    at += 46 + nameLength + extra + comment;
  }
  return members;
}
