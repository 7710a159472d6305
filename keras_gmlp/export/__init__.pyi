from .verify import export_run as export_run
from .writing import FORMATS as FORMATS
from .writing import export as export
