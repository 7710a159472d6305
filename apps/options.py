"""Options that several of the programs here take."""

import os


def add_data_dir(parser):
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="where TensorFlow Datasets keeps its sets; default: "
        "$TFDS_DATA_DIR or ~/tensorflow_datasets",
    )


def add_backend(parser):
    parser.add_argument(
        "--backend",
        choices=["tensorflow", "jax", "torch"],
        help="of Keras; default: $KERAS_BACKEND, or what Keras is set to, tensorflow at first",
    )


def choose_backend(options):
    """Has Keras take the backend that was asked for; before anything imports Keras."""
    if options.backend:
        os.environ["KERAS_BACKEND"] = options.backend
