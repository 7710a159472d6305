"""The harness of speeds: turns, medians, ratios, processes; the masks that it compares."""

from argparse import Namespace

import numpy as np
import pytest

from keras_gmlp.benchmark import harness, input_speed
from keras_gmlp.benchmark.__main__ import WORKLOADS, main
from keras_gmlp.data.text.corpus import Corpus


def test_turns_alternate_and_a_failure_leaves_the_others():
    asked = []

    def measure(name):
        asked.append(name)
        if name == "b" and asked.count("b") == 2:
            raise RuntimeError("no luck")
        return {"clock": float(len(asked))}

    found, failed = harness.take_turns(["a", "b", "c"], 3, measure)
    assert asked == ["a", "b", "c", "c", "b", "a", "a", "c"]
    assert found == {"a": [{"clock": c} for c in (1, 6, 7)], "c": [{"clock": c} for c in (3, 4, 8)]}
    assert failed == {"b": "no luck"}


def test_table_has_medians_and_the_median_of_paired_ratios():
    found = {
        "ours": [{"clock": 20.0, "memory": 5}, {"clock": 90.0, "memory": 7}, {"clock": 40.0}],
        "theirs": [{"clock": 10.0}, {"clock": 30.0}, {"clock": 2000.0}],
    }
    found["ours"][2]["memory"] = 6
    lines = harness.to_table(found, dict.fromkeys(found, "theirs"), "tokens/s", "clock")
    assert lines == [
        "|  | tokens/s | relative | memory, MB |",
        "| --- | ---: | ---: | ---: |",
        "| ours | 40 | 2.00 | 6 |",  # ratios 2, 3 and 0.02
        "| theirs | 30 | 1.00 |  |",
    ]
    assert harness.to_table({"a": [{"clock": 1.0}]}, {"a": "a"}, "x", "clock")[-1] == "| a | 1 |"


def test_times_are_of_what_is_not_a_warm_up():
    calls = []
    assert harness.time_calls(lambda: calls.append(0), 3, 10, untimed=2)["clock"] > 0
    assert len(calls) == 5
    batches = iter([9, 2, 3, 4])
    found = harness.time_batches(batches, lambda n: calls.append(n) or n, timed=2, untimed=1)
    assert calls[5:] == [2, 3]
    assert found["clock"] > 0
    assert next(batches) == 4


@pytest.fixture
def parsed(monkeypatch):
    """A function that returns a workload and the options of its command, which does not run."""
    seen = []
    monkeypatch.setattr(harness, "run", lambda workload, options, _: seen.append(options) or 0)

    def parse(*arguments):
        assert main(list(arguments)) == 0
        return seen[-1].workload, seen[-1]

    return parse


@pytest.mark.parametrize("name", [workload.name for workload in WORKLOADS])
def test_workloads_compare_with_a_reference_of_theirs(name, parsed, tmp_path):
    given = {"device": ["gmlp_s16_224"], "own_images": [str(tmp_path)]}
    workload, options = parsed(name, *given.get(name, []))
    candidates = list(workload.candidates(options))
    names = [candidate.name for candidate in candidates]
    assert len(set(names)) == len(names) > 1
    assert {candidate.reference for candidate in candidates} <= set(names)


def test_names_with_a_slash_may_be_data_sets(parsed):
    assert parsed("own_images", "imagenet_resized/64x64")[1].folders == ["imagenet_resized/64x64"]


def test_package_is_trained_by_a_script_of_its_own(parsed, tmp_path):
    workload, options = parsed("training", "--package", str(tmp_path), "--backends", "jax")
    other, this = workload.candidates(options)
    assert other.environment == {"PYTHONPATH": str(tmp_path), "KERAS_BACKEND": "jax"}
    assert other.script == this.script
    assert this.reference == other.name


class Stand(harness.Workload):
    """One candidate that prints a note and its speed, and one that fails."""

    name = "stand"

    def candidates(self, options):
        code = "import os; print('a note'); print('{\"clock\": ' + os.environ['N'] + '}')"
        yield harness.Candidate("works", None, "works", {"N": "1234"}, ("-c", code))
        yield harness.Candidate("breaks", None, "works", {}, ("-c", "raise ValueError('no luck')"))


def test_candidate_runs_in_a_process_of_its_own(capsys):
    options = Namespace(candidate=None, rounds=1)
    assert harness.run(Stand(), options, ["stand"]) == 1
    printed = capsys.readouterr()
    assert "| works | 1,234 |" in printed.out
    assert "breaks failed: ValueError: no luck" in printed.err


def test_table_of_masks(monkeypatch, capsys):
    """The candidates run in this process, in place of their own."""
    pytest.importorskip("transformers")

    def run_here(arguments, environment):
        assert arguments[:2] == ("-m", "keras_gmlp.benchmark")
        main(list(map(str, arguments[2:])))
        return capsys.readouterr().out, None

    monkeypatch.setattr(harness, "run_python", run_here)
    monkeypatch.setattr(harness, "keep_freed_memory", lambda: None)
    assert main(["masking", "--batch", "8", "--batches", "1", "--rounds", "1"]) == 0
    rows = [line.split("|")[2:-1] for line in capsys.readouterr().out.splitlines()[-2:]]
    speeds = np.array([[float(cell.replace(",", "")) for cell in row] for row in rows])
    assert speeds.shape == (2, 3)
    assert (speeds > 0).all()


def test_both_candidates_mask_15_percent(tmp_path):
    pytest.importorskip("transformers")
    input_speed.MaskingSpeed().prepare(None, tmp_path)
    corpus = Corpus(tmp_path)
    inputs, _, weights = input_speed.our_batches(corpus, 64)(3)
    theirs = input_speed.peer_batches(corpus, 64)(3)
    assert inputs["token_ids"].shape == theirs["input_ids"].shape == (64, 128)
    ours = weights.sum() / (inputs["token_ids"] >= 4).sum()
    chosen = (theirs["labels"] != -100).sum() / (theirs["input_ids"] >= 4).sum()
    assert [ours, chosen] == pytest.approx([0.15, 0.15], abs=0.02)


def test_noise_is_augmented():
    (first, *_) = input_speed.AUGMENTATIONS
    images, labels = next(iter(input_speed.augmented_batches(first, 1)))
    assert images.shape == (512, 32, 32, 3)
    assert len(labels) == 512


def test_wrong_usage(capsys):
    for arguments, expected in (
        (["masking", "--rounds", "0"], "--rounds must be at least 1; received 0"),
        (["unheard-of"], "invalid choice: 'unheard-of'"),
        (["masking", "--round", "1", "--sedes", "2"], "--sedes 2"),
        (["masking", "--roundz", "1"], "--roundz 1. Did you mean --rounds?"),
        (["own_images", ""], "is empty; expected"),
        (["own_images", "photos/missing/"], "photos/missing/: no such folder."),
        (["device", "gmlp_n4_33"], "Unknown preset 'gmlp_n4_33'. Did you mean"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
        error = capsys.readouterr().err
        assert expected in error
        assert error.count("\n") == 1
