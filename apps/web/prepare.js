// Turns a picture's pixels into a model's input, as keras_gmlp.data.images.read_image does.

import { INTERPOLATIONS, resize } from "./resample.js";

export const MAX_PIXELS = 100_000_000; // as in keras_gmlp.data.images.read_image

const FITS = { crop: cover, stretch, pad }; // as in keras_gmlp.data.images.resizing

// Scales the picture to shape = [height, width, channels]. fit says what becomes of another aspect
// ratio. crop is the share of the shorter side to keep, from 0 to 1, with which publishers test
// weights.
export function prepare(
  image,
  [height, width, channels],
  { crop, interpolation = "bicubic", fit = "crop" } = {},
) {
  if (!INTERPOLATIONS.includes(interpolation)) {
    const known = INTERPOLATIONS.join(", ");
    throw new Error(`expected an interpolation of ${known}; its card has ${interpolation}`);
  }
  if (!Object.hasOwn(FITS, fit)) {
    throw new Error(`expected a fit of ${Object.keys(FITS).join(", ")}; its card has ${fit}`);
  }
  if (crop && fit !== "crop") {
    throw new Error(`crop requires the fit crop; its card has crop ${crop} with the fit ${fit}`);
  }
  if (channels === 1) image = toGrey(image);
  return crop
    ? scaleAndCrop(image, width, height, crop, interpolation)
    : FITS[fit](image, width, height, interpolation);
}

// Returns the input of the whole picture, followed by one for each part of it.
//
// Args: the picture and the shape and card as for prepare; and for each part its [side, across,
// down], as keras_gmlp.data.images.resizing.find_part_box takes them.
export function prepareViews(image, shape, card, parts) {
  const [height, width, channels] = shape;
  const whole = prepare(image, shape, card);
  if (channels === 1) image = toGrey(image);
  const cuts = parts.map((part) => {
    const box = partBox(image, width, height, part);
    return resize(image, width, height, box, card.interpolation ?? "bicubic");
  });
  return [whole, ...cuts];
}

// The largest box of the input's aspect ratio, times side, at a share of the free room.
function partBox(image, width, height, [side, across, down]) {
  const scale = side * Math.min(image.width / width, image.height / height);
  const [wide, high] = [scale * width, scale * height];
  const left = Math.max(0, image.width - wide) * across;
  const top = Math.max(0, image.height - high) * down;
  return [left, top, left + wide, top + high];
}

function stretch(image, width, height, interpolation) {
  return resize(image, width, height, [0, 0, image.width, image.height], interpolation);
}

// Scales the picture to fit inside the input, around its centre, on black.
function pad(image, width, height, interpolation) {
  const sides = [image.width, image.height];
  const target = [width, height];
  const tight = width * image.height <= height * image.width ? 0 : 1;
  // Halves are rounded up.
  const inner = sides.map((side) =>
    Math.max(1, Math.floor((2 * target[tight] * side + sides[tight]) / (2 * sides[tight]))),
  );
  const [left, top] = target.map((side, i) => Math.floor((side - inner[i]) / 2));
  const { channels, data } = stretch(image, ...inner, interpolation);
  const out = new Uint8ClampedArray(width * height * channels);
  const row = inner[0] * channels;
  for (let y = 0; y < inner[1]; y++) {
    out.set(data.subarray(y * row, (y + 1) * row), ((top + y) * width + left) * channels);
  }
  return { width, height, channels, data: out };
}

// Pillow's ImageOps.fit: crops to the target's aspect ratio, in fractions of a pixel, and scales.
function cover(image, width, height, interpolation) {
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
