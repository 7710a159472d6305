"""`finetune`: from a folder of pictures to a trained model, in one call."""

from pathlib import Path
from typing import TYPE_CHECKING

from keras_gmlp.data.datasets import canonical_name
from keras_gmlp.data.images.image_data import ImageData
from keras_gmlp.data.run_folder import Run
from keras_gmlp.models.saved import load_model
from keras_gmlp.runs.run import train_run
from keras_gmlp.runs.settings import RunSettings
from keras_gmlp.training.precision import choose_precision
from keras_gmlp.utils.sources import DEFAULT_BACKBONE

if TYPE_CHECKING:
    import keras


def finetune(
    data: str | Path | ImageData,
    weights: str | Path | None = None,
    *,
    directory: str | Path | None = None,
    image_size: int | tuple[int, int] | None = None,
    validation: float | None = None,
    groups: str | None = None,
    export: bool = False,
    restart: bool = False,
    verbose: str | int = "auto",
    **changes,
) -> tuple["keras.Model", dict]:
    """Trains a classifier of your own pictures from a model that knows photographs.

    It fits a linear head to the features of the weights, trains all layers at two learning rates,
    and takes what is best on pictures that were held out from training. Test pictures choose
    nothing. The folder of the run then holds the model, its history and its model card; the same
    call loads a complete run, and resumes one that was stopped.

    Args:
        data: A folder with one folder of pictures for each class, a table or a packed set, as in
            `data.load`; or an `ImageData`.
        weights, image_size, groups: As in `RunSettings`. The weights default to the included
            `gmlp_photo_64`.
        directory: Folder of the run. Defaults to `runs/WEIGHTS-DATA`.
        validation: Share of the training pictures that chooses and is never trained on, in (0, 1).
            By default a fifth chooses, and the model then trains on all of them.
        export, restart, verbose: As in `train_run`; 0 prints nothing.
        **changes: Settings of the recipe `"finetune"`, such as `flip=False` for letters or
            `learning_rate=1e-3`. `epochs` switches the choice off; `epochs=0` only fits the head.

    Returns:
        `(model, metrics)`: a `keras.Model` from pixels in [0, 255] to logits, with the classes in
        the order of `metrics["labels"]`; and a dict as `train` returns it, with the `directory` of
        the run and, after a choice, its `candidates`.

    Raises:
        ValueError: If the data or the weights cannot be loaded, a setting is wrong, or the included
            weights are not in this installation. One line.

    Example:
        model, metrics = keras_gmlp.finetune("photos", validation=0.2)
    """
    dataset = data if isinstance(data, ImageData) else None
    if dataset and image_size is not None:
        raise ValueError(
            f"image_size is for pictures in files; received {image_size} and images in memory of "
            f"{dataset.image_shape[0]} x {dataset.image_shape[1]} pixels. Leave it out."
        )
    settings = RunSettings(
        weights=DEFAULT_BACKBONE if weights is None else str(weights),
        data=data.name if dataset else canonical_name(data),
        image_size=dataset.image_shape[:2] if dataset else image_size,
        validation=validation,
        groups=groups,
        recipe="finetune",
        out=None if directory is None else str(directory),
    ).with_changes(**changes)
    settings.check()
    if "precision" not in changes:
        precision = choose_precision(None if restart else settings.out)
        settings = settings.with_changes(precision=precision)
    report = (lambda text: None) if verbose == 0 else print
    options = {"dataset": dataset, "report": report, "restart": restart, "verbose": verbose}
    metrics = train_run(settings, export, **options)
    model, labels = load_model(settings.out), Run(settings.out).recipe["labels"]
    return model, {**metrics, "labels": labels, "directory": settings.out}
