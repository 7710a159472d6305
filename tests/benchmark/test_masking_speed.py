"""The benchmark of masks: both candidates mask the same windows at the same rate."""

import numpy as np
import pytest

from keras_gmlp.benchmark import masking_speed


def test_both_candidates_mask_15_percent(tmp_path):
    corpus = masking_speed.write_random_corpus(tmp_path)
    inputs, _, weights = masking_speed.make_our_batches(corpus, 64)(3)
    theirs = masking_speed.make_peer_batches(corpus, 64)(3)
    assert inputs["token_ids"].shape == theirs["input_ids"].shape == (64, 128)
    ours = weights.sum() / (inputs["token_ids"] >= 4).sum()
    chosen = (theirs["labels"] != -100).sum() / (theirs["input_ids"] >= 4).sum()
    assert [ours, chosen] == pytest.approx([0.15, 0.15], abs=0.02)


def test_table(capsys):
    assert masking_speed.main(["--batch", "8", "--batches", "1", "--rounds", "1"]) == 0
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()[-2:]]
    assert [row[0].strip() for row in rows] == ["`text.MaskedBatches`", "Hugging Face's collator"]
    speeds = np.array([[int(cell.replace(",", "")) for cell in row[1:]] for row in rows])
    assert (speeds > 0).all()


@pytest.mark.parametrize("arguments", [["--batch", "9000"], ["--rounds", "0"]])
def test_wrong_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        masking_speed.main(arguments)
    assert stopped.value.code == 2
    assert f"received {int(arguments[1]):,}" in capsys.readouterr().err
