from .folds import fold_settings as fold_settings
from .run import read_run as read_run
from .run import train_run as train_run
from .settings import RunSettings as RunSettings
