// Decodes a picture file into pixels without loss: upright, transparent pixels on white.
// Browsers differ from keras_gmlp.data.images.read_image in two ways: they ignore the EXIF orientation of
// a WebP, and they round 16-bit grey to 8 bits differently, by up to one level.

import { MAX_PIXELS } from "./prepare.js";

const TILE = 2048; // pixels of a side; pictures can be larger than the largest canvas

// Returns { width, height, channels: 3, data } of a Blob. Throws if it is not a picture.
export async function decode(blob) {
  if (blob.size === 0) throw new Error("the file is empty.");
  const { width, height } = await sizeOf(blob);
  if (width * height > MAX_PIXELS) {
    throw new Error(
      `${width} x ${height} pixels are more than ${MAX_PIXELS.toLocaleString("en")}. ` +
        "Scale the picture down first.",
    );
  }
  // Pillow does not apply the colour profile, either.
  const options = { colorSpaceConversion: "none", premultiplyAlpha: "none" };
  const bitmap = await createImageBitmap(blob, options).catch(() => {
    throw new Error("cannot be decoded; damaged or too large for this browser. Choose another.");
  });
  try {
    return pixelsOf(bitmap);
  } finally {
    bitmap.close();
  }
}

// An <img> reads the header without decoding the pixels, so a huge picture costs nothing.
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
      `this browser cannot read it as a picture${kind}. ` +
        "Choose an undamaged PNG, JPEG, WebP, GIF or BMP.",
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
  // An opaque canvas keeps every level; one with alpha premultiplies the colours and rounds.
  const context = new OffscreenCanvas(width, height).getContext("2d", {
    alpha: false,
    willReadFrequently: true, // keeps the canvas on the CPU, because GPUs round differently
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
