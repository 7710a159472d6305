// From a picture file to its pixels, losing nothing: upright, transparent pixels on white.
// Two differences to keras_gmlp.images are the browsers': they leave a WebP as it is stored,
// whatever its EXIF tag says, and round grey of 16 bits to 8 their own way, by a level.

import { MAX_PIXELS } from "./prepare.js";

const TILE = 2048; // read in tiles: canvases have a largest size, and a picture can be larger

// { width, height, channels: 3, data } of a Blob; an Error of one line where it is no picture.
export async function decode(blob) {
  if (blob.size === 0) throw new Error("the file is empty.");
  const { width, height } = await sizeOf(blob);
  if (width * height > MAX_PIXELS) {
    throw new Error(
      `${width} x ${height} pixels are more than ${MAX_PIXELS.toLocaleString("en")}. ` +
        "Scale the picture down first.",
    );
  }
  // Without the colour profile, which Pillow does not apply either.
  const options = { colorSpaceConversion: "none", premultiplyAlpha: "none" };
  const bitmap = await createImageBitmap(blob, options).catch(() => {
    throw new Error("cannot be decoded; damaged, or too large for this browser. Try another.");
  });
  try {
    return pixelsOf(bitmap);
  } finally {
    bitmap.close();
  }
}

// An <img> reads the header and leaves the pixels alone, so a huge picture costs nothing.
async function sizeOf(blob) {
  const url = URL.createObjectURL(blob);
  const image = new Image();
  try {
    await new Promise((resolve, reject) => {
      image.onload = resolve;
      image.onerror = reject;
      image.src = url;
    });
    return { width: image.naturalWidth, height: image.naturalHeight };
  } catch {
    const kind = blob.type && ` (received ${blob.type})`;
    throw new Error(
      `no picture that this browser reads${kind}, damaged or far too large. ` +
        "Choose a PNG, JPEG, WebP, GIF or BMP.",
    );
  } finally {
    URL.revokeObjectURL(url);
  }
}

function pixelsOf(bitmap) {
  const { width, height } = bitmap;
  const data = new Uint8ClampedArray(width * height * 3);
  for (let top = 0; top < height; top += TILE) {
    for (let left = 0; left < width; left += TILE) {
      const tile = tileOf(bitmap, left, top);
      copyWithoutAlpha(tile, data, left, top, width);
    }
  }
  return { width, height, channels: 3, data };
}

function tileOf(bitmap, left, top) {
  const width = Math.min(TILE, bitmap.width - left);
  const height = Math.min(TILE, bitmap.height - top);
  // An opaque canvas keeps every level; one with alpha would multiply colours by it and round.
  const context = new OffscreenCanvas(width, height).getContext("2d", {
    alpha: false,
    willReadFrequently: true, // keeps it off the GPU, whose arithmetic is another
  });
  context.fillStyle = "white";
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, -left, -top);
  return context.getImageData(0, 0, width, height);
}

function copyWithoutAlpha({ width, height, data }, target, left, top, stride) {
  for (let y = 0, from = 0; y < height; y++) {
    let to = ((top + y) * stride + left) * 3;
    for (let x = 0; x < width; x++, from += 4) {
      target[to++] = data[from];
      target[to++] = data[from + 1];
      target[to++] = data[from + 2];
    }
  }
}
