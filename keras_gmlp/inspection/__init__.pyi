from .check import check_folder as check_folder
from .label_errors import find_label_errors as find_label_errors
from .near_duplicates import find_near_duplicates as find_near_duplicates
