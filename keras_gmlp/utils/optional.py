"""Packages that only some parts require."""

import importlib
import importlib.util


def is_installed(package):
    """Returns whether a package can be imported; imports nothing."""
    return importlib.util.find_spec(package) is not None


def require(package, job, extra):
    """Imports a package that a job requires.

    Args:
        package: Name of the module.
        job: What requires it, the start of the error.
        extra: The extra of this project that installs it.

    Returns:
        The module.

    Raises:
        ImportError: If it is not installed. One line.
    """
    if not is_installed(package):
        raise ImportError(f"{job} requires {package}; install it: pip install -e '.[{extra}]'")
    return importlib.import_module(package)
