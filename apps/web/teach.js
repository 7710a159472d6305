// The tab Teach: learns classes from the visitor's pictures, and classifies others with them.

import { Camera, cameraAvailable } from "./camera.js";
import { decode } from "./decode.js";
import { fitHead, formatHead, headLogits, PARTS, readHead } from "./head.js";
import { loadModel, oneLine, rank, showLabels } from "./model.js";
import * as view from "./teach-view.js";
import { at, listModels } from "./view.js";

const LEAST = 2; // classes
const MOST = 10;

const camera = new Camera(at("teach-viewfinder"));
const loaded = new Map(); // promises of models that are ready to run, by name
const classes = []; // { element, pictures }; a picture is { file, features }, by model and parts
let listed = null; // the promise of the list of models, by name
let head = null; // that was learned or opened: { labels, weights, bias, parts, model }
let tried = null; // the last picture that was tried
let filming = null; // takes a file from the camera
let busy = Promise.resolve(); // what the visitor asks for is done in order

function enqueue(task) {
  busy = busy.then(async () => {
    view.showProblem("");
    try {
      await task();
    } catch (error) {
      view.showProblem(oneLine(error));
    }
    view.showStatus(statusLine());
  });
}

function statusLine() {
  if (head) return `Knows ${showLabels(head.labels).join(", ")}. Try a picture.`;
  return "Name the classes, give each about ten pictures, and press Learn.";
}

async function currentModel() {
  const models = await listed;
  const name = at("teach-model").value;
  if (!loaded.has(name)) {
    view.showStatus("Loading the model …");
    const model = loadModel(models.get(name));
    model.catch(() => loaded.delete(name)); // so that the next picture retries
    loaded.set(name, model);
  }
  return loaded.get(name);
}

const newPicture = (file) => ({ file, features: new Map() });

// Returns the features of a picture and of its parts, which are computed once for each model.
async function featuresOf({ file, features }, model, parts) {
  const key = JSON.stringify([model.name, parts]);
  if (!features.has(key)) {
    try {
      features.set(key, await model.viewFeatures(await decode(file), parts));
    } catch (error) {
      throw new Error(`${file.name}: ${error.message}`);
    }
  }
  return features.get(key);
}

function addClass() {
  const own = { pictures: [] };
  own.element = view.addClass({
    add: (files) => enqueue(() => addPictures(own, files)),
    film: (place) => openCamera(place, (file) => addPictures(own, [file])),
    remove: () => removeClass(own),
  });
  classes.push(own);
  view.numberClasses(elements(), LEAST, MOST);
  return own;
}

const elements = () => classes.map(({ element }) => element);

function removeClass(own) {
  closeCamera(); // it may be in the class
  classes.splice(classes.indexOf(own), 1);
  view.removeClass(own.element);
  view.numberClasses(elements(), LEAST, MOST);
  at("add-class").focus(); // the focused button is gone
}

// Adds the files that are pictures, and throws a line on the others.
async function addPictures(own, files) {
  const model = await currentModel();
  const errors = [];
  for (const [i, file] of files.entries()) {
    view.showStatus(`Reading picture ${i + 1} of ${files.length} …`);
    const picture = newPicture(file);
    try {
      await featuresOf(picture, model, PARTS);
    } catch (error) {
      errors.push(error.message);
      continue;
    }
    own.pictures.push(picture);
    view.addPicture(own.element, file, () => {
      own.pictures.splice(own.pictures.indexOf(picture), 1);
    });
  }
  const others = errors.length > 1 ? ` So are ${errors.length - 1} others.` : "";
  if (errors.length) throw new Error(`Left out: ${errors[0]}${others}`);
}

async function learn() {
  const labels = checkClasses();
  // The visitor may change the classes from here on.
  const taught = classes.flatMap(({ pictures }, target) =>
    pictures.map((picture) => ({ picture, target })),
  );
  const model = await currentModel();
  const features = [];
  const targets = [];
  for (const [i, { picture, target }] of taught.entries()) {
    view.showStatus(`Reading picture ${i + 1} of ${taught.length} …`);
    for (const row of await featuresOf(picture, model, PARTS)) {
      features.push(row);
      targets.push(target);
    }
  }
  view.showStatus("Learning …");
  const learned = await fitHead(features, targets, labels.length);
  await use({ labels, model, parts: PARTS, ...learned });
}

// Returns the names of the classes, or throws a line on what is missing.
function checkClasses() {
  // Python's reader takes names of one line, and knows more ends of lines than a text field.
  const oneLined = (name) => name.replace(/[\s\x1c-\x1e\x85]+/g, " ").trim();
  const labels = elements().map((element) => oneLined(view.nameField(element).value));
  labels.forEach((label, i) => {
    if (!label) throw new Error(`Class ${i + 1} has no name. Write one.`);
    if (labels.indexOf(label) < i) throw new Error(`Two classes are named ${label}. Rename one.`);
  });
  const empty = classes.findIndex(({ pictures }) => !pictures.length);
  if (empty >= 0) {
    throw new Error(`${labels[empty]} has no pictures. Add some, about ten; every class needs them.`);
  }
  return labels;
}

// Classifies with a head from now on.
async function use(next) {
  head = next;
  view.showTrial(true);
  if (tried) await answer();
}

function forget() {
  closeCamera(); // it may try pictures
  head = null;
  tried = null;
  view.showTrial(false);
  view.clearAnswer();
}

async function tryPicture(file) {
  if (!head) throw new Error("No classifier yet. Press Learn, or open one, then try a picture.");
  tried = newPicture(file);
  try {
    await answer();
  } catch (error) {
    tried = null;
    view.clearAnswer();
    throw error;
  }
}

async function answer() {
  view.showStatus("Classifying …");
  const features = await featuresOf(tried, head.model, head.parts);
  const names = showLabels(head.labels);
  const ranked = rank(headLogits(head, features), names, names.length);
  view.showAnswer(tried.file, ranked);
}

// Opens a classifier that was downloaded, with its model.
async function openHead(file) {
  const opened = await readHead(file);
  const models = [...(await listed).values()];
  const { name } = models.find(({ card }) => card.model_sha256 === opened.model_sha256) ?? {};
  if (!name) {
    throw new Error(
      `${file.name}: its model, ${opened.model}, is not on this server. Copy the model's file ` +
        "there and reload the page.",
    );
  }
  at("teach-model").value = name;
  const model = await currentModel();
  if (opened.weights[0].length !== model.card.features) {
    throw new Error(
      `${file.name}: ${opened.weights[0].length} weights in a row; its model has ` +
        `${model.card.features} features. Download the classifier again.`,
    );
  }
  await use({ ...opened, model });
}

async function openCamera(place, take) {
  closeCamera();
  view.showProblem("");
  try {
    if (!(await camera.open())) return;
    filming = take;
    view.showCamera(place);
  } catch (error) {
    closeCamera();
    view.showProblem(oneLine(error));
  }
}

function closeCamera() {
  camera.close();
  view.showCamera(null);
}

// Starts the tab; it loads no model before the first picture.
//
// Args: the promise of a list of image models with features.
export function start(models) {
  listed = models.then((list) => {
    listModels(at("teach-model"), list);
    return new Map(list.map((model) => [model.name, model]));
  });
  listed.catch(() => {}); // the first picture reports it
  while (classes.length < LEAST) addClass();
  view.showStatus(statusLine());
  listen();
  cameraAvailable().then(view.offerCamera);
}

// Stops the camera when the visitor opens another tab.
export function leave() {
  closeCamera();
}

function listen() {
  at("add-class").addEventListener("click", () => view.nameField(addClass().element).focus());
  at("learn").addEventListener("click", () => enqueue(learn));
  at("teach-model").addEventListener("change", () => enqueue(forget));
  choose("try", tryPicture);
  choose("open-head", openHead);
  at("try-camera").addEventListener("click", () => openCamera(at("trial"), tryPicture));
  at("teach-take").addEventListener("click", async () => {
    const take = filming;
    const file = await camera.shoot();
    enqueue(() => take(file));
  });
  at("teach-close").addEventListener("click", closeCamera);
  at("download").addEventListener("click", () => {
    view.download("classifier.json", formatHead(head));
  });
  addEventListener("pagehide", leave);
  addEventListener("dragover", drag);
  addEventListener("dragleave", drag);
  addEventListener("drop", drop);
}

function choose(id, take) {
  at(id).addEventListener("change", ({ target }) => {
    const [file] = target.files;
    if (file) enqueue(() => take(file));
    target.value = ""; // so that the same file can be chosen again
  });
}

const classAt = (target) => classes.find(({ element }) => element.contains(target));

function drag(event) {
  if (at("teach").hidden) return;
  event.preventDefault(); // otherwise the browser opens the file in place of the page
  const over = event.type === "dragover" && classAt(event.target);
  for (const own of classes) own.element.classList.toggle("dropping", own === over);
}

// Files on a class are its pictures. Elsewhere, one is a classifier or a picture to try.
function drop(event) {
  if (at("teach").hidden) return;
  drag(event);
  const files = [...event.dataTransfer.files];
  const own = classAt(event.target);
  enqueue(async () => {
    if (!files.length) throw new Error("Received no file. Save the picture first, then choose it.");
    if (files[0].name.endsWith(".json")) await openHead(files[0]);
    else if (own) await addPictures(own, files);
    else await tryPicture(files[0]);
  });
}
