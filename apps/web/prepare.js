// Turns a picture's pixels into a model's input, as keras_gmlp.data.read_image does.

import { INTERPOLATIONS, resize } from "./resample.js";

export const MAX_PIXELS = 100_000_000; // as in keras_gmlp.data.read_image

// Scales the picture until it covers shape = [height, width, channels] and crops its centre.
// crop is the share of the shorter side to keep, from 0 to 1, with which publishers test weights.
export function prepare(image, [height, width, channels], { crop, interpolation = "bicubic" } = {}) {
  if (!INTERPOLATIONS.includes(interpolation)) {
    const known = INTERPOLATIONS.join(", ");
    throw new Error(`expected an interpolation of ${known}; its card has ${interpolation}`);
  }
  if (channels === 1) image = toGrey(image);
  return crop
    ? scaleAndCrop(image, width, height, crop, interpolation)
    : fit(image, width, height, interpolation);
}

// Pillow's ImageOps.fit: crops to the target's aspect ratio, in fractions of a pixel, and scales.
function fit(image, width, height, interpolation) {
  const have = image.width / image.height;
  const want = width / height;
  const cutWidth = have > want ? want * image.height : image.width;
  const cutHeight = have < want ? image.width / want : image.height;
  const left = (image.width - cutWidth) * 0.5;
  const top = (image.height - cutHeight) * 0.5;
  return resize(image, width, height, [left, top, left + cutWidth, top + cutHeight], interpolation);
}

// torchvision's Resize and CenterCrop, with the same rounding.
function scaleAndCrop(image, width, height, crop, interpolation) {
  const least = [Math.floor(width / crop), Math.floor(height / crop)];
  const sides = [image.width, image.height];
  // The tighter side gets its target size; the other follows, rounded down.
  const tight = least[0] * image.height >= least[1] * image.width ? 0 : 1;
  const scaled = sides.map((side) => Math.trunc((least[tight] * side) / sides[tight]));
  scaled[tight] = least[tight];
  if (scaled[0] * scaled[1] > MAX_PIXELS) {
    throw new Error(
      `${image.width} x ${image.height} is too thin: scaled, it has more than ` +
        `${MAX_PIXELS.toLocaleString("en")} pixels. Crop it first.`,
    );
  }
  const large = resize(image, ...scaled, [0, 0, ...sides], interpolation);
  const [left, top] = [width, height].map((want, i) => roundHalfToEven((scaled[i] - want) / 2));
  return cut(large, left, top, width, height);
}

function cut({ width: stride, channels, data }, left, top, width, height) {
  const out = new Uint8ClampedArray(width * height * channels);
  for (let y = 0; y < height; y++) {
    const start = ((top + y) * stride + left) * channels;
    out.set(data.subarray(start, start + width * channels), y * width * channels);
  }
  return { width, height, channels, data: out };
}

// Rounds halves to even numbers, as Python does.
function roundHalfToEven(x) {
  const rounded = Math.round(x);
  return Math.abs(x % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

// ITU-R 601 luma in Pillow's integer arithmetic.
function toGrey({ width, height, data }) {
  const grey = new Uint8ClampedArray(width * height);
  for (let i = 0, at = 0; i < grey.length; i++, at += 3) {
    grey[i] = (19595 * data[at] + 38470 * data[at + 1] + 7471 * data[at + 2] + 0x8000) >> 16;
  }
  return { width, height, channels: 1, data: grey };
}
