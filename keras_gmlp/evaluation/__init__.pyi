from .calibration import calibrate_run as calibrate_run
from .scoring import evaluate as evaluate
