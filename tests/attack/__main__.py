"""`python -m attack`, in tests/, attacks the library."""

import sys

from attack.cases import main

if __name__ == "__main__":
    sys.exit(main())
