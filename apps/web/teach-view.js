// What the tab Teach shows; knows no models.

import { at, percent, row } from "./view.js";

const camera = at("teach-camera"); // a part of the class or place that opened it
let opener = null; // the button that opened the camera
let cameraOffered = false;

// Adds an empty class.
//
// Args: functions that take its files, open its camera in a place, and remove it.
// Returns its element.
export function addClass({ add, film, remove }) {
  const element = at("class-template").content.firstElementChild.cloneNode(true);
  const part = (name) => element.querySelector(`.${name}`);
  part("files").addEventListener("change", ({ target }) => {
    add([...target.files]);
    target.value = ""; // so that the same files can be chosen again
  });
  part("film").hidden = !cameraOffered;
  part("film").addEventListener("click", () => film(element));
  part("remove").addEventListener("click", remove);
  at("taught-classes").append(element);
  return element;
}

export function removeClass(element) {
  for (const image of element.querySelectorAll("img")) URL.revokeObjectURL(image.src);
  element.remove();
}

// Numbers the classes, and offers to add and remove some.
//
// Args: their elements, and the least and the most classes.
export function numberClasses(elements, least, most) {
  elements.forEach((element, i) => {
    element.querySelector("legend").textContent = `Class ${i + 1}`;
    element.querySelector(".remove").hidden = elements.length <= least;
  });
  at("add-class").hidden = elements.length >= most;
}

export const nameField = (element) => element.querySelector(".name");

// Adds a picture to a class; a press on it calls remove.
export function addPicture(element, file, remove) {
  const image = Object.assign(new Image(), { src: URL.createObjectURL(file), alt: "" });
  const button = Object.assign(document.createElement("button"), {
    type: "button",
    title: `Remove ${file.name}`,
    ariaLabel: `Remove ${file.name}`,
  });
  const item = document.createElement("li");
  button.append(image);
  button.addEventListener("click", () => {
    URL.revokeObjectURL(image.src);
    (item.nextElementSibling ?? item.previousElementSibling)?.firstElementChild.focus();
    item.remove();
    showCount(element);
    remove();
  });
  item.append(button);
  element.querySelector(".thumbnails").append(item);
  showCount(element);
}

function showCount(element) {
  const count = element.querySelectorAll(".thumbnails li").length;
  const text = count ? `${count} picture${count > 1 ? "s" : ""}` : "No pictures yet";
  element.querySelector(".count").textContent = text;
}

export function offerCamera(available) {
  cameraOffered = available;
  for (const button of document.querySelectorAll(".film")) button.hidden = !available;
}

// Shows the camera in an element, or hides it.
export function showCamera(place) {
  if (place) {
    opener = place.querySelector(".film");
    place.append(camera);
  }
  const focused = camera.contains(document.activeElement);
  camera.hidden = !place;
  if (place) at("teach-take").focus();
  else if (focused) opener.focus();
}

export function showStatus(text) {
  at("teach-status").textContent = text;
}

export function showProblem(text) {
  at("teach-problem").textContent = text;
}

// Shows what tries and downloads a classifier, or hides it.
export function showTrial(shown) {
  at("trial").hidden = !shown;
}

// Shows a tried picture and its most probable classes.
export function showAnswer(file, ranked) {
  const image = at("tried");
  URL.revokeObjectURL(image.src);
  image.src = URL.createObjectURL(file);
  image.alt = `Your picture: ${file.name}`;
  image.hidden = false;
  at("teach-answer").textContent = `${ranked[0].label}, ${percent(ranked[0].probability)}`;
  at("teach-answer").classList.add("found");
  at("teach-ranked").replaceChildren(...ranked.map(row));
}

export function clearAnswer() {
  const image = at("tried");
  URL.revokeObjectURL(image.src);
  image.removeAttribute("src");
  image.hidden = true;
  at("teach-answer").textContent = "";
  at("teach-ranked").replaceChildren();
}

export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser reads it later
}
