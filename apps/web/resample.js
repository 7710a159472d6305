// Pillow's resampling, bit for bit, because keras_gmlp.data.images.read_image scales with Pillow.
// An image is { width, height, channels, data }, with interleaved channels.

const PRECISION = 22; // fractional bits of a weight in Pillow's arithmetic on 8-bit pixels

const sinc = (x) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

function bicubic(x) {
  const a = -0.5;
  x = Math.abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

const FILTERS = {
  bilinear: { support: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) },
  bicubic: { support: 2, weight: bicubic },
  lanczos: { support: 3, weight: (x) => (Math.abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0) },
};

export const INTERPOLATIONS = ["nearest", ...Object.keys(FILTERS)];

// Scales the part of an image inside box = [left, top, right, bottom] to width x height. The box
// may have fractions of pixels.
export function resize(image, width, height, box, interpolation) {
  box = box.map(Math.fround); // Pillow stores the box in single precision
  const whole = [0, 0, image.width, image.height].every((side, i) => side === box[i]);
  if (whole && width === image.width && height === image.height) return image;
  if (interpolation === "nearest") return nearest(image, width, height, box);
  const filter = FILTERS[interpolation];
  const across = windows(image.width, box[0], box[2], width, filter);
  const down = windows(image.height, box[1], box[3], height, filter);
  // The order matters, because each pass rounds. Pillow has this order since release 13.
  const [lessWidth, lessHeight] = [image.width - width, image.height - height];
  if (lessHeight > 0 && lessHeight > 2 * lessWidth) {
    return horizontal(vertical(image, down, 0), across, 0, height);
  }
  const rows = [down[0].first, down.at(-1).first + down.at(-1).weights.length];
  return vertical(horizontal(image, across, ...rows), down, rows[0]);
}

// For each output pixel: the first of its input pixels and the weight of each.
function windows(inputs, start, end, outputs, { support, weight }) {
  const scale = Math.fround(end - start) / outputs;
  const stretch = Math.max(scale, 1); // the filter grows when scaling down (antialiasing)
  return Array.from({ length: outputs }, (_, i) => {
    const centre = start + (i + 0.5) * scale;
    const first = Math.max(0, Math.trunc(centre - support * stretch + 0.5));
    const last = Math.min(inputs, Math.trunc(centre + support * stretch + 0.5));
    const weights = Array.from({ length: last - first }, (_, k) =>
      weight((k + first - centre + 0.5) * (1 / stretch)),
    );
    return { first, weights: fixedPoint(weights) };
  });
}

function fixedPoint(weights) {
  const sum = weights.reduce((a, b) => a + b, 0);
  const scaled = weights.map((w) => (sum === 0 ? w : w / sum) * 2 ** PRECISION);
  return Int32Array.from(scaled, (w) => Math.trunc(w < 0 ? w - 0.5 : w + 0.5));
}

// Computes rows firstRow to lastRow - 1, the only ones the vertical pass reads.
function horizontal({ width, channels, data }, windows, firstRow, lastRow) {
  const out = blank(windows.length, lastRow - firstRow, channels);
  let at = 0;
  for (let y = firstRow; y < lastRow; y++) {
    for (const { first, weights } of windows) {
      const start = (y * width + first) * channels;
      for (let c = 0; c < channels; c++) {
        out.data[at++] = weigh(data, start + c, channels, weights);
      }
    }
  }
  return out;
}

function vertical({ width, channels, data }, windows, firstRow) {
  const out = blank(width, windows.length, channels);
  const row = width * channels;
  let at = 0;
  for (const { first, weights } of windows) {
    const start = (first - firstRow) * row;
    for (let x = 0; x < row; x++) out.data[at++] = weigh(data, start + x, row, weights);
  }
  return out;
}

function weigh(data, at, step, weights) {
  let sum = 1 << (PRECISION - 1);
  for (let k = 0; k < weights.length; k++, at += step) sum += data[at] * weights[k];
  return sum >> PRECISION; // the output array clamps to 0 to 255
}

function nearest(image, width, height, [left, top, right, bottom]) {
  const { channels, data } = image;
  const columns = centres(left, Math.fround(right - left) / width, width);
  const out = blank(width, height, channels);
  let at = 0;
  for (const y of centres(top, Math.fround(bottom - top) / height, height)) {
    for (const x of columns) {
      const from = (y * image.width + x) * channels;
      for (let c = 0; c < channels; c++) out.data[at++] = data[from + c];
    }
  }
  return out;
}

// Adds step by step, as Pillow does: the rounding of the sums decides between two pixels.
function centres(start, step, count) {
  let position = start + step * 0.5;
  return Array.from({ length: count }, () => {
    const pixel = Math.trunc(position);
    position += step;
    return pixel;
  });
}

const blank = (width, height, channels) => ({
  width,
  height,
  channels,
  data: new Uint8ClampedArray(width * height * channels),
});
