"""Data sets as TensorFlow Datasets prepares them, written by hand with TensorFlow."""

import json

import tensorflow as tf


def example(**features):
    """Returns a serialized `tf.train.Example` of bytes and numbers, or lists of them."""

    def feature(value):
        values = value if isinstance(value, list) else [value]
        if isinstance(values[0] if values else b"", bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    entries = {name: feature(value) for name, value in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=entries)).SerializeToString()


def write_records(path, records):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)


def write_set(root, splits, shape, labels, place="planted/1.0.0", **info):
    """Writes shards of (encoded image, class index) by split; returns the folder of the set."""
    # A side of the shape is -1 if it varies; without labels there is no file of them; info are
    # further entries of dataset_info.json.
    folder = root / place
    folder.mkdir(parents=True)
    core = "tensorflow_datasets.core.features"
    image = {"shape": {"dimensions": list(map(str, shape))}, "dtype": "uint8"}
    features = {
        "id": {"pythonClassName": f"{core}.text_feature.Text", "text": {}},
        "image": {"pythonClassName": f"{core}.image_feature.Image", "image": image},
        "label": {
            "pythonClassName": f"{core}.class_label_feature.ClassLabel",
            "classLabel": {"numClasses": str(len(labels or "abc"))},
        },
    }
    features = {
        "pythonClassName": f"{core}.features_dict.FeaturesDict",
        "featuresDict": {"features": features},
    }
    (folder / "features.json").write_text(json.dumps(features))
    described = []
    for name, shards in splits.items():
        for number, samples in enumerate(shards):
            path = folder / f"planted-{name}.tfrecord-{number:05}-of-{len(shards):05}"
            write_records(path, (example(image=i, label=n, id=b"x", z=0.5) for i, n in samples))
        template = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
        lengths = [str(len(samples)) for samples in shards]
        described.append({"name": name, "shardLengths": lengths, "filepathTemplate": template})
    version = folder.name
    whole = {"name": "planted", "version": version, "fileFormat": "tfrecord", "splits": described}
    (folder / "dataset_info.json").write_text(json.dumps({**whole, **info}))
    if labels:
        (folder / "label.labels.txt").write_text("\n".join(labels) + "\n")
    return folder


def write_prepared(folder, features, splits):
    """Writes a set of other features; for each split its serialized examples."""
    folder.mkdir(parents=True)
    (folder / "features.json").write_text(json.dumps({"featuresDict": {"features": features}}))
    described = []
    for split, records in splits.items():
        write_records(folder / f"set-{split}.tfrecord-00000-of-00001", records)
        described.append({"name": split, "shardLengths": [str(len(records))]})
    info = {"name": "set", "fileFormat": "tfrecord", "splits": described}
    (folder / "dataset_info.json").write_text(json.dumps(info))
    return folder
