from ..utils.formats import FORMATS as FORMATS
from .verify import export_run as export_run
from .writing import export as export
