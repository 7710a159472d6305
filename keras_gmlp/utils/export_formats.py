"""The formats of an export and their files."""

FORMATS = {
    "tflite": "model.tflite",  # 8-bit weights, float activations
    "tflite_float16": "model_float16.tflite",
    "tflite_float32": "model_float32.tflite",
    "tflite_int8": "model_int8.tflite",  # integers throughout, from uint8 pixels
    "features": "model_features.tflite",  # as "tflite", with a second signature
    "mediapipe": "model_mediapipe.tflite",  # as "tflite", to probabilities
    "saved_model": "saved_model",
    "onnx": "model.onnx",
}

TEXT_FORMATS = {
    name: FORMATS[name] for name in ("tflite", "tflite_float16", "tflite_float32", "features")
}

# "features" and "mediapipe" compute what "tflite" computes, and serve special purposes.
DEFAULT_FORMATS = tuple(name for name in FORMATS if name not in ("features", "mediapipe"))
