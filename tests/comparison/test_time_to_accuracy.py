"""The epochs and seconds until a run reached an accuracy."""

import json

import pytest

from keras_gmlp.comparison.time_to_accuracy import main, measure

HISTORY = """epoch,accuracy,loss,seconds,val_accuracy,val_loss
0,0.5,1.0,10.5,0.4,1.1
1,0.7,0.8,12.0,0.885,0.9
2,0.8,0.7,11.0,0.88,0.8
"""


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "a")


def write_run(directory, history=HISTORY, **recipe):
    directory.mkdir()
    (directory / "history.csv").write_text(history)
    (directory / "recipe.json").write_text(json.dumps(recipe))
    return directory


def test_the_first_epoch_that_reaches_the_goal_ends_the_time(run):
    expected = {"run": str(run), "trained": 3, "epoch_seconds": 11.0, "best": 0.885}
    expected |= {"goal": 0.885, "measured_on": "test"}
    assert measure(run) == {**expected, "epochs": 2, "seconds": 22.5}
    assert measure(run, 0.4)["seconds"] == 10.5
    never = {**expected, "goal": 0.886, "epochs": None, "seconds": None}
    assert measure(run, 0.886) == never


def test_held_out_images_are_named(tmp_path):
    assert measure(write_run(tmp_path / "b", validation=0.2))["measured_on"] == "validation"


def test_table_and_json(run, capsys, monkeypatch):
    monkeypatch.chdir(run.parent)
    assert main(["a", "--accuracy", "0.88"]) == 0
    head, _, row = capsys.readouterr().out.splitlines()
    assert "| epochs to 88 % |" in head
    assert row == "| a | test | 2 | 3 | 11.0 | 22 | 88.50 % |"
    assert main(["a", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["seconds"] == 22.5
    assert main(["a", "--accuracy", "0.9"]) == 0
    assert "| a | test | not reached | 3 | 11.0 |  | 88.50 % |" in capsys.readouterr().out


def test_runs_without_these_figures_are_refused_in_one_line(tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/history.csv").mkdir()
    (tmp_path / "folder/recipe.json").write_text("{}")
    lines = HISTORY.splitlines(keepends=True)
    for directory, reason in (
        (tmp_path / "b", "no history.csv; expected a folder of a run"),
        (write_run(tmp_path / "empty", lines[0]), "does not begin with the first epoch"),
        (write_run(tmp_path / "late", lines[0] + lines[2]), "does not begin with the first epoch"),
        (write_run(tmp_path / "text", task="masked_lm"), "its model is a masked language model"),
        (write_run(tmp_path / "f1", HISTORY.replace("val_accuracy", "val_f1")), "no accuracy in"),
        (tmp_path / "folder", "history.csv: Is a directory"),
    ):
        assert main([str(directory)]) == 1
        error = capsys.readouterr().err
        assert reason in error
        assert error.count("\n") == 1


def test_a_run_that_is_refused_leaves_the_others(run, capsys):
    assert main([str(run.parent / "missing"), str(run), "--json"]) == 1
    output = capsys.readouterr()
    assert [found["run"] for found in json.loads(output.out)] == [str(run)]
    assert "missing: no history.csv" in output.err
    assert main([str(run.parent / "missing")]) == 1
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("goal", ["88.5", "88.5%", "nan", "0"])
def test_a_goal_that_is_no_share_is_wrong_usage(run, capsys, goal):
    with pytest.raises(SystemExit) as error:
        main([str(run), "--accuracy", goal])
    assert error.value.code == 2
    message = capsys.readouterr().err
    assert f"must be in (0, 1], such as 0.885; received '{goal}'" in message
    assert message.count("\n") == 1
