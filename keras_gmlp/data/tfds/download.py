"""Sets of TensorFlow Datasets (TFDS), which it downloads and prepares where they are missing."""

import contextlib
import os
import re
import sys
from pathlib import Path

from keras_gmlp.data.tfds.prepared import PreparedSet, open_prepared, tfds_folder
from keras_gmlp.utils.environment import is_installed
from keras_gmlp.utils.errors import did_you_mean, first_line


def open_or_download(name, data_dir, check_features):
    """Returns a `PreparedSet`; before a download `check_features` gets its features."""
    prepared = open_prepared(name, data_dir)
    if prepared is not None:
        return prepared
    if not is_installed("tensorflow_datasets"):
        raise ValueError(
            f"{name!r} is neither a folder, nor 'digits', nor a set of labelled images that "
            f"TensorFlow Datasets prepared in {tfds_folder(data_dir)}; pip install -e '.[train]' "
            "installs what prepares it."
        )
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core.download import downloader

    try:
        builder = tfds.builder(name, data_dir=data_dir and os.path.expanduser(data_dir))
    except Exception as error:  # mistakes in a name raise many types
        names = tfds.list_builders(with_community_datasets=False)
        hint = did_you_mean(re.split("[:/]", name)[0], names, str, most=2, cutoff=0.8)
        raise ValueError(
            f"{name!r} is neither a folder, nor 'digits', nor a data set of TensorFlow Datasets "
            f"({first_line(error)}).{hint}"
        ) from None
    check_features(builder.info.features.to_json()["content"].get("features", {}))
    usual, downloader.MAX_RETRIES = downloader.MAX_RETRIES, 4  # ten take 200 s without a network
    try:
        with contextlib.redirect_stdout(sys.stderr):  # standard output is for results
            builder.download_and_prepare()
    except Exception as error:  # network, disk, missing package, manual download
        raise ValueError(
            f"{name!r} is not in {builder.data_dir} and could not be downloaded. Set TFDS_DATA_DIR "
            f"to the folder that contains it, or connect to the internet. ({first_line(error)})"
        ) from None
    finally:
        downloader.MAX_RETRIES = usual
    return PreparedSet(Path(builder.data_dir))
