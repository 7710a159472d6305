// How far to trust a classifier, as keras_gmlp.analysis.confidence has it.

// Returns { temperature, threshold } from a card; without them 1 and undefined. Throws if one is not
// a number.
export function readConfidence({ temperature, energy_threshold: threshold }) {
  if (temperature != null && !(Number.isFinite(temperature) && temperature > 0)) {
    throw new Error(`its temperature is ${temperature}; expected a positive number`);
  }
  if (threshold != null && !Number.isFinite(threshold)) {
    throw new Error(`its energy_threshold is ${threshold}; expected a finite number`);
  }
  return { temperature: temperature ?? 1, threshold: threshold ?? undefined };
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
