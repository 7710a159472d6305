// How far to trust a classifier, as keras_gmlp.tasks.confidence has it.

// Returns { temperature, threshold } from a card; without them 1 and undefined. Throws if one is not
// a number in its range.
export function readConfidence({ temperature, energy_threshold: threshold }) {
  checkRange("temperature", temperature, 0.01, 100);
  checkRange("energy_threshold", threshold, -1e30, 1e30);
  return { temperature: temperature ?? 1, threshold: threshold ?? undefined };
}

// Returns the least probability of each label that applies, of a model that gives any number of
// labels; undefined of one that gives one. Throws if one is missing.
export function readThresholds({ thresholds }, classes) {
  if (thresholds == null) return undefined;
  const complete = Array.isArray(thresholds) && thresholds.length === classes;
  if (complete && thresholds.every((value) => typeof value === "number")) return thresholds;
  throw new Error(`its card has no threshold for each of its ${classes} labels`);
}

function checkRange(name, value, low, high) {
  if (value == null || (typeof value === "number" && value >= low && value <= high)) return;
  throw new Error(`its ${name} is ${value}; expected a number from ${low} to ${high}`);
}

// Returns whether a picture shows one of the classes, by its energy.
export function isKnown(logits, { temperature, threshold }) {
  return threshold === undefined || energy(logits, temperature) <= threshold;
}

export function energy(logits, temperature) {
  const scaled = Float64Array.from(logits, (logit) => logit / temperature);
  const highest = scaled.reduce((a, b) => Math.max(a, b));
  return -highest - Math.log(scaled.reduce((sum, logit) => sum + Math.exp(logit - highest), 0));
}
