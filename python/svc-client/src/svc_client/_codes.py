"""An exception for each error code of the daemon.

Made from the table of error codes by scripts/python.ts. Do not edit.
"""

from ._error import SvcError


class UnsupportedVersion(SvcError):
    """The path is under another major version. `candidates` is `["v1"]`."""


class NotFound(SvcError):
    """Unknown path, unknown job id, or unknown blob."""


class MethodNotAllowed(SvcError):
    """The path exists, the method does not; `Allow` lists the allowed methods."""


class BadRequest(SvcError):
    """A missing or malformed body field, query parameter or digest, `magnet` and `infohash`
    together, or a request that is not HTTP.
    """


class Timeout(SvcError):
    """The request did not arrive in time."""


class PreconditionFailed(SvcError):
    """`If-Match` names another blob."""


class TooLarge(SvcError):
    """The request body exceeds 1 MiB, or 32 MiB on `/v1/adopt`."""


class HeadersTooLarge(SvcError):
    """The request headers are too large."""


class Parse(SvcError):
    """The reference is malformed or not canonical; the message names the fix."""


class Length(SvcError):
    """The reference is longer than 512 bytes."""


class UnknownRef(SvcError):
    """No local index of that name, no such tag, a digest whose blob is not a manifest, or a
    repository that the hub or the catalog does not have.
    """


class AmbiguousSelector(SvcError):
    """The prefix matches several quants; `candidates` lists them."""


class NoMember(SvcError):
    """No quant matches the selector; `candidates` lists all."""


class PinMismatch(SvcError):
    """The digest in the reference is not that of the selected quant."""


class NoIndex(SvcError):
    """The state names an index blob that is absent from the store."""


class InvalidIndex(SvcError):
    """The model index fails validation. It is never rebuilt silently."""


class Corruption(SvcError):
    """A manifest in the store is corrupt."""


class RangeInvalid(SvcError):
    """The `Range` does not overlap the blob, or is malformed."""


class SourceNotRegular(SvcError):
    """A path to import is, or contains, a symlink, FIFO, device or socket; or a file changed during
    the import.
    """


class SourceForbidden(SvcError):
    """The hub refuses access: gated, private, or nonexistent when anonymous."""


class SourceUnavailable(SvcError):
    """No source has the bytes: unreachable, swarm disabled, manifest not local, or bytes that do
    not match the pin.
    """


class RateLimited(SvcError):
    """The hub still limits the rate after the requested wait. With 503: the daemon has too many
    open jobs.
    """


class NotImportable(SvcError):
    """No recognized weights, a refused listing, or fetched bytes that fail verification or do not
    match the pin.
    """


class NotImplemented(SvcError):
    """BT import while the swarm client is disabled."""


class NotAnchored(SvcError):
    """A rescued catalog model without `trustCatalog`."""


class VerifyFailed(SvcError):
    """The re-hash found mismatches, missing blobs or state errors; the job lists them under
    `verify`.
    """


class Kept(SvcError):
    """An eviction is refused: no other source is proven to have the bytes, or they are pinned, in a
    view or in use.
    """


class NoSpace(SvcError):
    """The disk has too little space. No partial write is kept as a blob."""


class Aborted(SvcError):
    """The daemon stopped, or the job was cancelled. Verified bytes are kept."""


class ShuttingDown(SvcError):
    """The daemon is stopping and accepts no new work."""


class Internal(SvcError):
    """Unreadable state or configuration, an I/O error, or a defect of the daemon."""


BY_CODE: dict[str, type[SvcError]] = {
    "E_UNSUPPORTED_VERSION": UnsupportedVersion,
    "E_NOT_FOUND": NotFound,
    "E_METHOD_NOT_ALLOWED": MethodNotAllowed,
    "E_BAD_REQUEST": BadRequest,
    "E_TIMEOUT": Timeout,
    "E_PRECONDITION_FAILED": PreconditionFailed,
    "E_TOO_LARGE": TooLarge,
    "E_HEADERS_TOO_LARGE": HeadersTooLarge,
    "E_PARSE": Parse,
    "E_LENGTH": Length,
    "E_UNKNOWN_REF": UnknownRef,
    "E_AMBIGUOUS_SELECTOR": AmbiguousSelector,
    "E_NO_MEMBER": NoMember,
    "E_PIN_MISMATCH": PinMismatch,
    "E_NO_INDEX": NoIndex,
    "E_INVALID_INDEX": InvalidIndex,
    "E_CORRUPTION": Corruption,
    "E_RANGE_INVALID": RangeInvalid,
    "E_SOURCE_NOT_REGULAR": SourceNotRegular,
    "E_SOURCE_FORBIDDEN": SourceForbidden,
    "E_SOURCE_UNAVAILABLE": SourceUnavailable,
    "E_RATE_LIMITED": RateLimited,
    "E_NOT_IMPORTABLE": NotImportable,
    "E_NOT_IMPLEMENTED": NotImplemented,
    "E_NOT_ANCHORED": NotAnchored,
    "E_VERIFY_FAILED": VerifyFailed,
    "E_KEPT": Kept,
    "E_NO_SPACE": NoSpace,
    "E_ABORTED": Aborted,
    "E_SHUTTING_DOWN": ShuttingDown,
    "E_INTERNAL": Internal,
}
