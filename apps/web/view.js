// What the tab for pictures shows, and parts that both tabs share; knows no models or files.

export const at = (id) => document.getElementById(id);

// Fills a list of models to choose from.
export function listModels(select, models) {
  const presets = models.map(({ name, card }) => card.preset && card.preset + variant(name));
  const options = models.map(({ name, card, bytes }, i) => {
    const alone = presets.indexOf(presets[i]) === presets.lastIndexOf(presets[i]);
    const title = presets[i] && alone ? presets[i] : name; // titles must differ
    const parts = [title, quality(card), megabytes(bytes)];
    return new Option(parts.filter(Boolean).join(" · "), name);
  });
  select.replaceChildren(...options);
  select.disabled = !options.length;
}

function quality(card) {
  if (card.test_accuracy) return percent(card.test_accuracy);
  const precision = card.test_mean_average_precision;
  if (precision) return `mean average precision ${percent(precision)}`;
  if (card.test_f1) return `F1 ${card.test_f1.toFixed(1)}`;
  return card.test_perplexity && `perplexity ${card.test_perplexity.toFixed(1)}`;
}

// Returns the file's name if a folder has several models.
function variant(name) {
  const [, file] = name.split("/");
  return file ? ` (${file})` : "";
}

export function clearDetails() {
  at("details").textContent = "";
}

export function showDetails({ labels, inputShape, card }) {
  const [, height, width] = inputShape;
  const [score, value] = card.test_mean_average_precision
    ? ["mean average precision", card.test_mean_average_precision]
    : ["accuracy", card.test_accuracy];
  const accuracy = value
    ? `Test ${score} of the original model on ${card.data}: ${percent(value)}. `
    : "";
  const classes = labels.slice(0, 10).join(", ");
  const more = labels.length > 10 ? ` and ${labels.length - 10} more` : "";
  const input = `Input: ${pixels(width, height)}.`;
  at("details").textContent = `${accuracy}${input} Classes: ${classes}${more}.`;
}

export function showPicture(file) {
  const preview = at("preview");
  URL.revokeObjectURL(preview.src);
  preview.hidden = !file;
  if (file) {
    preview.src = URL.createObjectURL(file);
    preview.alt = `Your picture: ${file.name}`;
  } else {
    preview.removeAttribute("src");
  }
  at("invitation").hidden = Boolean(file);
  at("stage").classList.toggle("filled", Boolean(file));
}

export function offerCamera(available) {
  at("open-camera").hidden = !available;
}

// Shows the camera's picture and buttons instead of the file's.
export function showCamera(open) {
  const focused = at("shutter").contains(document.activeElement);
  at("stage").classList.toggle("filming", open);
  at("viewfinder").hidden = !open;
  at("shutter").hidden = !open;
  at("sources").hidden = open;
  if (open) at("take").focus(); // the focused button is hidden now
  else if (focused) at("open-camera").focus();
}

export function showStatus(text) {
  at("answer").textContent = text;
  at("answer").classList.remove("found");
  at("classes").replaceChildren();
  at("seen").hidden = true;
}

export function showProblem(text) {
  at("problem").textContent = text;
}

export function showResult({ ranked, known, input, readTime, runTime }) {
  at("answer").textContent = known ? summary(ranked) : "Not one of the classes I know";
  at("answer").classList.add("found");
  at("classes").replaceChildren(...(known ? ranked.map(row) : []));
  drawInput(input);
  offerMaps([]);
  at("size").textContent = `The model's input: ${pixels(input.width, input.height)}`;
  at("time").textContent = `${time(readTime)} to read and scale, ${time(runTime)} to classify`;
  at("seen").hidden = false;
}

// Returns the most probable class, or of a model of several labels those that apply.
export function summary(ranked) {
  const several = "applies" in ranked[0];
  const chosen = several ? ranked.filter(({ applies }) => applies) : ranked.slice(0, 1);
  if (!chosen.length) return "No label applies";
  const parts = chosen.map(({ label, probability }) => `${label}, ${percent(probability)}`);
  return parts.join(several ? "; " : "");
}

// Returns an item of a list: a label with its probability and a bar.
export function row({ label, probability, applies }) {
  const item = document.createElement("li");
  if (applies !== undefined) item.classList.add(applies ? "applies" : "rejected");
  const [name, share, bar] = ["label", "percent", "bar"].map((className) =>
    Object.assign(document.createElement("span"), { className }),
  );
  name.textContent = label;
  share.textContent = percent(probability);
  const filled = bar.appendChild(document.createElement("span"));
  filled.style.width = `${100 * probability}%`;
  item.append(name, share, bar);
  return item;
}

// Offers to lay the map of a class over the model's input.
//
// Args: the names of the classes, and a function that draws the map of the class with a number, or
// for -1 none.
export function offerMaps(names, draw) {
  const choice = at("map");
  const plain = new Option("The model's input", -1);
  choice.replaceChildren(plain, ...names.map((name, i) => new Option(`What speaks for ${name}`, i)));
  choice.onchange = () => draw(Number(choice.value));
  at("maps").hidden = !names.length;
}

// Draws a map of RGBA pixels over the model's input.
export function drawMap({ width, height }, rgba, name) {
  const canvas = Object.assign(at("input"), { width, height });
  canvas.getContext("2d").putImageData(new ImageData(rgba, width, height), 0, 0);
  canvas.setAttribute("aria-label", `What speaks for ${name}, and what against it`);
  showLegend(true);
}

function showLegend(shown) {
  at("legend").hidden = !shown;
  at("seen").classList.toggle("mapped", shown);
}

export function drawInput({ width, height, channels, data }) {
  showLegend(false);
  const canvas = Object.assign(at("input"), { width, height });
  const pixels = new ImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    for (let c = 0; c < 3; c++) pixels.data[4 * i + c] = data[channels * i + (c % channels)];
    pixels.data[4 * i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  canvas.setAttribute("aria-label", `The model's input, ${width} by ${height} pixels`);
}

const pixels = (width, height) => `${width}\u00a0×\u00a0${height} pixels`;
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
export const percent = (share) => `${(100 * share).toFixed(1)} %`;
export const time = (ms) => `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
