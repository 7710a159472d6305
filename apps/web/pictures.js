// The tab for pictures: classifies one from a file, a drop, a paste or the camera.

import { Camera, cameraAvailable } from "./camera.js";
import { chooseMap, paint } from "./class-map.js";
import { isKnown } from "./confidence.js";
import { decode } from "./decode.js";
import { loadModel, oneLine, rank, rankLabels } from "./model.js";
import * as view from "./view.js";

const TOP = 5;
const { at } = view;
const camera = new Camera(at("viewfinder"));
const loaded = new Map(); // promises of models that are ready to run, by name
let listed = null; // the promise of the list of models, by name
let picture = null; // the promise of the shown picture's pixels
let turn = 0; // counts requests, so that late answers to older ones are dropped

async function currentModel() {
  const models = await listed;
  const name = at("model").value;
  if (!loaded.has(name)) {
    view.clearDetails(); // they describe the previous model
    const model = loadModel(models.get(name)).then(warmedUp);
    model.catch(() => loaded.delete(name)); // so that choosing it again retries
    loaded.set(name, model);
  }
  return loaded.get(name);
}

// The first run takes several times as long as later runs.
async function warmedUp(model) {
  await model.logits({ data: new Uint8Array(model.inputShape.reduce((a, b) => a * b)) });
  return model;
}

async function take([file, ...more]) {
  closeCamera();
  if (!file) {
    await answer("Received no file. Save the picture first, then choose it.");
    return;
  }
  picture = read(file);
  view.showPicture(file);
  await answer(more.length ? `Received ${more.length + 1} files; the first is classified.` : "");
}

function read(file) {
  const began = performance.now();
  const reading = decode(file).then(
    (image) => ({ image, time: performance.now() - began }),
    (error) => {
      if (picture === reading) forgetPicture();
      throw new Error(`${file.name}: ${error.message}`);
    },
  );
  return reading;
}

function forgetPicture() {
  picture = null;
  view.showPicture(null);
}

// Classifies the shown picture with the chosen model and shows the result, or what is missing.
async function answer(note = "") {
  const mine = ++turn;
  const shown = camera.on ? null : picture;
  view.showProblem(note);
  view.showStatus(shown ? "Classifying …" : "Loading the model …");
  try {
    // Both at once, so that an unreadable picture is reported even while a model loads.
    const [model, pixels] = await Promise.all([currentModel(), shown]);
    const result = pixels && (await look(model, pixels));
    if (mine !== turn) return;
    view.showDetails(model);
    if (result) {
      view.showResult(result);
      if (model.grid) offerMaps(model, result, mine);
    } else view.showStatus("Ready for a picture.");
  } catch (error) {
    if (mine !== turn) return;
    view.showStatus("");
    view.showProblem(oneLine(error));
  }
}

async function look(model, { image, time }) {
  const began = performance.now();
  const input = model.prepare(image);
  const prepared = performance.now();
  const logits = await model.logits(input);
  const runTime = performance.now() - prepared;
  const { labels, thresholds, confidence } = model;
  const ranked = thresholds
    ? rankLabels(logits, labels, thresholds, TOP)
    : rank(logits, labels, TOP, confidence.temperature);
  const known = Boolean(thresholds) || isKnown(logits, confidence);
  return { ranked, known, input, readTime: time + prepared - began, runTime };
}

// Offers the maps of the classes in the answer; they are computed when one is chosen.
function offerMaps(model, { ranked, known, input }, mine) {
  let maps;
  const indices = ranked.map(({ index }) => index);
  const names = known ? ranked.map(({ label }) => label) : [];
  view.offerMaps(names, async (place) => {
    try {
      maps ??= model.maps(input);
      const found = await maps;
      if (mine !== turn) return;
      view.showProblem("");
      if (place < 0) view.drawInput(input);
      else {
        const classes = model.labels.length;
        const map = chooseMap(found, model.grid, classes, indices[place], indices);
        view.drawMap(input, paint(input, map), names[place]);
      }
    } catch (error) {
      maps = undefined; // so that the next choice tries again
      if (mine === turn) view.showProblem(oneLine(error));
    }
  });
}

async function openCamera() {
  view.showProblem("");
  try {
    if (!(await camera.open())) return;
    view.showCamera(true);
    answer(); // removes the previous picture's result
  } catch (error) {
    closeCamera();
    view.showProblem(oneLine(error));
  }
}

async function shoot() {
  const shot = camera.take();
  view.showCamera(false);
  take([await shot]);
}

function leaveCamera() {
  closeCamera();
  answer(); // for the previous picture, which is shown again
}

function closeCamera() {
  camera.close();
  view.showCamera(false);
}

// Starts the tab.
//
// Args: the promise of a list of image models.
export function start(models) {
  listed = models.then(byName);
  listen();
  answer();
  cameraAvailable().then((available) => view.offerCamera(available));
}

function byName(models) {
  view.listModels(at("model"), models);
  return new Map(models.map((model) => [model.name, model]));
}

// Stops the camera when the visitor opens another tab.
export function leave() {
  if (camera.on) leaveCamera();
}

function listen() {
  at("file").addEventListener("change", ({ target }) => {
    if (target.files.length) take(target.files);
    target.value = ""; // so that the same file can be chosen again
  });
  at("model").addEventListener("change", () => answer());
  at("open-camera").addEventListener("click", openCamera);
  at("close-camera").addEventListener("click", leaveCamera);
  at("take").addEventListener("click", shoot);
  addEventListener("pagehide", leave);
  addEventListener("paste", paste);
  addEventListener("dragover", dragOver);
  addEventListener("dragleave", dragLeave);
  addEventListener("drop", drop);
}

function paste({ clipboardData: { files } }) {
  if (shown()) take(files);
}

function shown() {
  return !at("pictures").hidden;
}

function dragOver(event) {
  if (!shown()) return;
  event.preventDefault(); // otherwise the browser opens the file in place of the page
  document.body.classList.add("dropping");
}

function dragLeave(event) {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
}

function drop(event) {
  if (!shown()) return;
  event.preventDefault();
  document.body.classList.remove("dropping");
  take(event.dataTransfer.files);
}
