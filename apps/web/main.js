// The page: pictures come in by file, drop, paste or camera; the chosen model tells what they show.

import { Camera, cameraAvailable } from "./camera.js";
import { decode } from "./decode.js";
import { loadModel, oneLine, rank } from "./model.js";
import * as view from "./view.js";

const TOP = 5;
const { at } = view;
const camera = new Camera(at("viewfinder"));
const listed = listModels();
const loaded = new Map(); // by name: the promise of a model that can run
let picture = null; // the promise of the pixels of the picture that is shown
let turn = 0; // of the newest question: answers to older ones are dropped

// What the server tells of its models, by name.
async function listModels() {
  const response = await fetch("models.json").catch(() => null);
  if (!response?.ok) {
    throw new Error("The list of models cannot be read. Is the server running? Then reload.");
  }
  const models = await response.json();
  view.listModels(models);
  return new Map(models.map((model) => [model.name, model]));
}

async function currentModel() {
  const models = await listed;
  const name = at("model").value;
  if (!loaded.has(name)) {
    view.clearFacts(); // of the model before
    const model = loadModel(models.get(name)).then(warmedUp);
    model.catch(() => loaded.delete(name)); // choosing it again tries again
    loaded.set(name, model);
  }
  return loaded.get(name);
}

// A first run takes several times as long as all later ones.
async function warmedUp(model) {
  await model.logits({ data: new Uint8Array(model.inputShape.reduce((a, b) => a * b)) });
  return model;
}

async function take([file, ...more]) {
  closeCamera();
  if (!file) {
    await answer("Received no file; save the picture first, then choose it.");
    return;
  }
  picture = read(file);
  view.showPicture(file);
  await answer(more.length ? `Received ${more.length + 1} files; this is the first.` : "");
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

// Tells what is in the picture that is shown, by the chosen model; or what is still missing.
async function answer(note = "") {
  const mine = ++turn;
  const shown = camera.on ? null : picture;
  view.showProblem(note);
  view.showStatus(shown ? "Looking …" : "Loading the model …");
  try {
    // Both at once; a picture that cannot be read is told even while a model loads.
    const [model, pixels] = await Promise.all([currentModel(), shown]);
    const result = pixels && (await look(model, pixels));
    if (mine !== turn) return;
    view.showFacts(model);
    if (result) view.showResult(result);
    else view.showStatus("Ready for a picture.");
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
  const ranked = rank(logits, model.labels, TOP);
  return { ranked, input, readTime: time + prepared - began, runTime };
}

async function openCamera() {
  view.showProblem("");
  try {
    if (!(await camera.open())) return;
    view.showCamera(true);
    answer(); // what is known of the picture before is none to what the camera shows
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
  answer(); // about the picture before, which is shown again
}

function closeCamera() {
  camera.close();
  view.showCamera(false);
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
  addEventListener("pagehide", () => camera.on && leaveCamera());
  addEventListener("paste", (event) => take(event.clipboardData.files));
  addEventListener("dragover", dragOver);
  addEventListener("dragleave", dragLeave);
  addEventListener("drop", drop);
}

function dragOver(event) {
  event.preventDefault(); // or the browser would open the file in place of the page
  document.body.classList.add("dropping");
}

function dragLeave(event) {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
}

function drop(event) {
  event.preventDefault();
  document.body.classList.remove("dropping");
  take(event.dataTransfer.files);
}

listen();
answer();
cameraAvailable().then((available) => view.offerCamera(available));
