import json

import pytest

from keras_gmlp.runs import queue

RUN = {
    "set_model": {"depth": 1, "dim": 16, "hidden_dim": 16},
    "image_size": 8,
    "fraction": 0.1,
    "precision": "float32",
    "epochs": 2,
}


def write_plan(folder, *entries):
    path = folder / "plan.json"
    path.write_text(json.dumps([{**RUN, **entry} for entry in entries]))
    return path


@pytest.fixture(autouse=True)
def allocator(monkeypatch):
    """Counts the calls that would change the allocator of this process."""
    calls = []
    monkeypatch.setattr(queue, "keep_freed_memory", lambda: calls.append(1))
    return calls


def test_plan_is_worked_through_in_several_calls(tmp_path, capsys, monkeypatch, allocator):
    monkeypatch.setattr(queue, "LEAST", -100.0)  # without time left, a run trains one epoch
    first, second, wrong = (str(tmp_path / name) for name in ("first", "second", "wrong"))
    plan = write_plan(
        tmp_path,
        {"out": first, "epochs": 1},
        {"out": wrong, "data": str(tmp_path / "none")},
        {"out": second},
    )
    report = tmp_path / "report.json"
    command = [str(plan), "--seconds", "0", "--report", str(report)]
    assert queue.main(command) == 1
    assert allocator == [1]
    results = json.loads(report.read_text())
    assert results[first]["state"] == "complete"
    assert results[wrong]["state"].startswith("failed: ")
    assert results[second]["state"].startswith("stopped at the time limit after epoch 1 of 2;")
    assert "second: begins, 0 s left" in capsys.readouterr().out
    history = tmp_path / "second" / "history.csv"
    row = history.read_text().splitlines()[1]

    assert queue.main(command) == 1
    again = json.loads(report.read_text())
    assert again[first] == results[first]
    assert (again[second]["state"], again[second]["epochs"]) == ("complete", 2)
    assert history.read_text().splitlines()[1] == row


def test_bad_plan_is_one_line(tmp_path, capsys):
    for text, reason in (
        ("[", "damaged or not JSON"),
        ("{}", "list"),
        ("[]", "empty list"),
        ('[{"recipe": "slow"}]', "run 1: Unknown recipe 'slow'"),
        ('[{"model": 5}]', "run 1: model"),
        ('[{"set_model": ["depth"]}]', "set_model"),
        ('[{"modl": "a"}]', r"run 1: .*'modl'"),
    ):
        path = tmp_path / "plan.json"
        path.write_text(text)
        with pytest.raises(ValueError, match=reason) as error:
            queue.read_plan(path)
        assert "\n" not in str(error.value)
        with pytest.raises(SystemExit) as ended:
            queue.main([str(path)])
        assert ended.value.code == 2


def test_ctrl_c_says_that_the_command_resumes(tmp_path, capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("keras_gmlp.runs.run.train_run", stop)
    assert queue.main([str(write_plan(tmp_path, {"out": str(tmp_path / "run")}))]) == 130
    assert "stopped; the same command resumes." in capsys.readouterr().err
