from .resampling import transfer as transfer
