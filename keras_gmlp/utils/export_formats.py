"""The formats of an export: their files, and the words for the model card."""

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

DESCRIBED = {
    "tflite": "TFLite, 8-bit weights",
    "tflite_float16": "TFLite, float16 weights",
    "tflite_float32": "TFLite, float32",
    "tflite_int8": "TFLite, full integer",
    "features": "TFLite with features, 8-bit weights",
    "mediapipe": "TFLite for MediaPipe, 8-bit weights",
    "saved_model": "SavedModel",
    "onnx": "ONNX",
}

TEXT_FORMATS = {
    name: FORMATS[name] for name in ("tflite", "tflite_float16", "tflite_float32", "features")
}

# "features" and "mediapipe" compute what "tflite" computes, and serve special purposes.
DEFAULT_FORMATS = tuple(name for name in FORMATS if name not in ("features", "mediapipe"))
DEFAULT_TEXT_FORMATS = tuple(name for name in DEFAULT_FORMATS if name in TEXT_FORMATS)
