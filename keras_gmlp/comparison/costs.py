"""The costs of a sweep's models, FLOPs and latency by preset."""

from keras_gmlp.data.run_folder import Run
from keras_gmlp.evaluation.flops import count_flops
from keras_gmlp.export.verify import export_run
from keras_gmlp.inference.latency import measure_latencies
from keras_gmlp.utils.files import write_json
from keras_gmlp.weights.loading import load


def measure_costs(runs, report=lambda text: None, repeats=200):
    """Counts the FLOPs of each preset and measures its 8-bit TFLite file, all in turns."""
    first = {}
    for run in sorted(runs, key=lambda run: (-run.fraction, run.seed)):
        first.setdefault(run.preset, run)
    classifiers, costs = {}, {}
    for preset, run in first.items():
        path = run.directory / "model.tflite"
        try:
            if not path.exists():
                export_run(run.directory, ["tflite"])
            classifiers[preset] = load(path, threads=1)
            metrics = Run(run.directory).metrics  # after the export, which writes to it
            if metrics.get("flops") is None:
                metrics["flops"] = count_flops(run.directory / "model.keras")
                write_json(run.directory / "metrics.json", metrics)
        except (ValueError, RuntimeError) as error:
            report(f"{run.name}: {error}")
        flops = Run(run.directory).metrics.get("flops")
        costs[preset] = {} if flops is None else {"flops": flops}
    for preset, seconds in measure_latencies(classifiers, repeats=repeats).items():
        costs[preset]["latency_ms"] = round(1000 * seconds, 3)
    return costs
