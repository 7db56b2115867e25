"""Does not get far."""

import a_module_that_is_not_there  # noqa: F401
