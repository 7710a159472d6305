// Draws the parts of a picture that speak for a class, and those that speak against it.

const FOR = [33, 102, 172];
const NEUTRAL = [247, 247, 247];
const AGAINST = [178, 24, 43];
const OPACITY = 0.6;

// Returns the values of one class on the grid, and the largest difference from 0 of all classes
// that are listed, so that their colours can be compared.
export function chooseMap(maps, grid, classes, index, listed) {
  const [rows, columns] = grid;
  const of = (i) => Float64Array.from({ length: rows * columns }, (_, cell) => maps[cell * classes + i]);
  const larger = (limit, value) => Math.max(limit, Math.abs(value));
  const limit = listed.reduce((limit, i) => of(i).reduce(larger, limit), 0);
  return { values: of(index), rows, columns, limit: limit || 1 };
}

// Returns RGBA pixels: the picture in grey with the map laid over it.
//
// Args: the model's input { width, height, channels, data }, and what chooseMap returns.
export function paint({ width, height, channels, data }, { values, rows, columns, limit }) {
  const pixels = new Uint8ClampedArray(4 * width * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const place = y * width + x;
      let grey = 0;
      for (let c = 0; c < channels; c++) grey += data[channels * place + c] / channels;
      const cell = Math.floor((y * rows) / height) * columns + Math.floor((x * columns) / width);
      const colour = mix(values[cell] / limit);
      for (let c = 0; c < 3; c++) {
        pixels[4 * place + c] = (1 - OPACITY) * grey + OPACITY * colour[c];
      }
      pixels[4 * place + 3] = 255;
    }
  }
  return pixels;
}

function mix(share) {
  const end = share < 0 ? AGAINST : FOR;
  const strength = Math.min(1, Math.abs(share));
  return NEUTRAL.map((value, c) => value + strength * (end[c] - value));
}
