"""Client of svcd, the local store of machine-learning models.

    >>> from svc_client import Client
    >>> Client().path("qwen/qwen3-0.6b-gguf:q8_0")

The first number of the version is that of the API.
"""

from . import errors
from ._api import *  # noqa: F403
from ._client import Client
from .errors import SvcError

__version__ = "1.0.0"
__all__ = ["Client", "SvcError", "errors"]
