"""Candidates take turns, in groups if memory is short; made-up workers answer."""

from fake_worker import MODEL, FakeWorker, candidate

from keras_gmlp.benchmark.measuring import Schedule, measure
from keras_gmlp.benchmark.report import to_rows
from keras_gmlp.benchmark.worker import CandidateError


def test_turns_are_taken_within_each_round():
    asked = []
    ways = [candidate("product-numpy", sizes=(16,)), candidate("tflite"), candidate("onnx")]
    schedule = Schedule(rounds=2, burst_seconds=0.1)
    results, _ = measure(ways, schedule, lambda way: FakeWorker(way, asked))
    one_round = [("product-numpy", 16, 1), ("tflite", 1, 2), ("onnx", 1, 2)]
    one_round += [("tflite", 4, 1), ("onnx", 4, 1)]
    assert asked[-10:] == [*one_round, *one_round]
    warm_up = asked[:-10]
    assert {name for name, *_ in warm_up[:2]} == {"product-numpy"}
    assert len(warm_up) == 2 * (1 + 2 + 2)  # a first call and a trial burst at each size
    assert results[1].seconds(1) == [0.05] * 4
    assert results[1].cold_start == 1.5


def test_candidate_that_fails_is_a_result_and_the_rest_continue():
    asked, workers = [], []

    def start(way):
        if way.name == "timm":
            raise CandidateError("No module named 'missing'")
        workers.append(FakeWorker(way, asked, fails_after=5 if way.name == "tflite" else None))
        return workers[-1]

    ways = [candidate("timm"), candidate("tflite"), candidate("onnx")]
    results, _ = measure(ways, Schedule(rounds=3, burst_seconds=0.01), start)
    errors = ["No module named 'missing'", "out of luck", None]
    assert [result.error for result in results] == errors
    assert len(results[2].bursts[1]) == 3
    assert all(worker.closed for worker in workers)
    rows = to_rows(MODEL, results, None)
    states = [*(f"failed: {error}" for error in errors[:2]), "measured", "measured"]
    assert [row["status"] for row in rows] == states


def test_groups_where_memory_is_short():
    alive, seen = [], []

    def start(way):
        worker = FakeWorker(way, [], megabytes=1000)
        alive.append(worker)
        seen.append((way.name, sum(not w.closed for w in alive)))
        return worker

    def available():  # 4 GB, of which each worker alive has one
        return 4e9 - 1e9 * sum(not worker.closed for worker in alive)

    ways = [
        candidate("product-numpy", sizes=(16,)),
        *map(candidate, ("tflite", "onnx", "saved_model", "timm")),
    ]
    results, _ = measure(ways, Schedule(1, 0.01), start, available=available)
    # The product and two more: a third would leave less than 1.2 GB and the reserve.
    assert seen == [
        *(("product-numpy", 1), ("tflite", 2), ("onnx", 3)),
        *(("product-numpy", 1), ("saved_model", 2), ("timm", 3)),
    ]
    assert all(worker.closed for worker in alive)
    assert [len(result.bursts) for result in results] == [1, 2, 2, 2, 2]
