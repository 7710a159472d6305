from .precision import in_float32 as in_float32
