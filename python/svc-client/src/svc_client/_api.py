"""What the API answers, and a method for each of its routes.

Made from docs/openapi.json by scripts/python.ts. Do not edit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

__all__ = [
    "ActiveFile", "AdoptFile", "AdoptHub", "AdoptPlan", "AdoptPlanFile", "AdoptPlanHub", "Bytes",
    "CatalogEntry", "CatalogSearch", "CatalogStatus", "CompanionFile", "ConnectedPeer",
    "DamagedRecord", "Digest", "DownloadLimitResult", "ErrorBody", "EvictResult", "Finding",
    "GcResult", "HeldBack", "HubAccountResult", "HubEntry", "ImportBtCompanions", "ImportHfBody",
    "ImportPlan", "ImportPlanTotals", "ImportResult", "ImportResultReplaced", "Inspection",
    "Inventory", "Job", "JobKind", "JobList", "JobState", "Making", "MemoryNeed", "MemoryUnknown",
    "ModelMember", "NamedModel", "NamespaceEntry", "OmittedFile", "OpenCompanions",
    "OpenCompanionsChoice", "OpenCompanionsMissing", "OpenFile", "OpenResult", "Origin",
    "OutdatedModel", "OutdatedResult", "PeerList", "PinResult", "PlanArtifact", "PlanFile",
    "PrivateResult", "RemovedModel", "RemovedModelQuant", "RemovedModelQuantHolder", "RemovedView",
    "ResolveResult", "Routes", "SearchResult", "SeedLocalResult", "SeedResult", "ShareResult",
    "ShareResultCompanions", "Snapshot", "StandingLayout", "StandingView", "StandingViewList",
    "Status", "StatusJobs", "StatusStore", "StatusStoreQuarantined", "StatusStoreUnfinished",
    "SwarmStatus", "SwarmStatusSignedWebseed", "SwarmStatusVerifying", "TagEntry", "TagList",
    "Timestamp", "TorrentStatus", "UploadLimitResult", "VerifyReport", "View", "ViewEntry",
    "ViewFile", "ViewLayout", "ViewList", "ViewMode", "WhyResult", "WhyResultCompanions",
    "WhyResultCopie", "WhyResultDecision", "WhyResultDoor", "WhyResultSource", "Withheld",
]

T = TypeVar("T")

Bytes: TypeAlias = int
"""A number of bytes."""
Digest: TypeAlias = str
"""`sha256:` and 64 lower-case hex characters."""
Timestamp: TypeAlias = str
"""UTC, RFC 3339, with fractional seconds."""
JobKind: TypeAlias = Literal["ensure", "import-local", "import-hf", "import-bt", "import-catalog", "import-oci", "companions", "verify", "gc", "evict", "outdated"]
JobState: TypeAlias = Literal["waiting", "fetching", "done", "failed"]
ViewLayout: TypeAlias = Literal["files", "hf"]
ViewMode: TypeAlias = Literal["symlink", "copy", "hardlink"]
StandingLayout: TypeAlias = Literal["hf", "llama", "lmstudio", "comfyui", "ollama"]


@dataclass(frozen=True, kw_only=True)
class ResolveResult:
    ref: str
    """canonical, the selector as typed"""
    ns: str
    name: str
    quant: str | None = None
    """the member that was selected; absent for a reference by digest"""
    manifest_digest: Digest
    index_digest: Digest | None = None
    plan: str
    """a constant without meaning"""
    plan_reason: str
    """a constant without meaning"""


@dataclass(frozen=True, kw_only=True)
class OpenFile:
    digest: Digest
    path: str
    """absolute path of the blob"""
    size: Bytes
    name: str | None = None
    """artifact-relative path"""
    kind: str | None = None
    """e.g. `config`, `weights.gguf`"""
    role: str | None = None
    variant: str | None = None
    part: int | None = None
    runtime: str | None = None


@dataclass(frozen=True, kw_only=True)
class CompanionFile:
    path: str
    """at the source"""
    digest: Digest
    size: Bytes
    own: bool | None = None
    """true: the owner's own, which never leaves this store (additive)"""
    blob_path: str
    """absolute path of the blob"""


@dataclass(frozen=True, kw_only=True)
class OpenCompanionsMissing:
    path: str
    """at the source"""
    digest: Digest
    size: Bytes
    own: bool | None = None
    """true: the owner's own, which never leaves this store (additive)"""


@dataclass(frozen=True, kw_only=True)
class OmittedFile:
    path: str
    size: Bytes
    reason: str
    """`artifact`: a manifest has it; `large`: over 1 MiB; `many`: beyond 1,000 files or 64 MiB;
    `hidden`, `secret`, `unreadable`: on its owner's disk; `name`
    """
    own: bool | None = None
    """true: its name never leaves this store (additive)"""


@dataclass(frozen=True, kw_only=True)
class OpenCompanionsChoice:
    """what its owner chose at the latest import under this name; absent for everything (additive)
    """

    names: str | None = None
    quants: list[str] | None = None
    files: list[str] | None = None
    aux: str | list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class OpenCompanions:
    digest: str
    """of the document that lists them"""
    files: list[CompanionFile]
    missing: list[OpenCompanionsMissing] | None = None
    """their bytes are lost; absent when none are (additive)"""
    omitted: list[OmittedFile]
    choice: OpenCompanionsChoice | None = None
    """what its owner chose at the latest import under this name; absent for everything (additive)
    """
    warnings: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class OpenResult:
    ref: str
    """canonical, the selector as typed"""
    ns: str
    name: str
    quant: str | None = None
    """the member that was selected; absent for a reference by digest"""
    manifest_digest: Digest
    index_digest: Digest | None = None
    plan: str
    """a constant without meaning"""
    plan_reason: str
    """a constant without meaning"""
    files: list[OpenFile]
    """the index blob, the manifest blob, then its files in order; those present"""
    missing: list[Digest] | None = None
    """absent when nothing is missing"""
    companions: OpenCompanions | None = None


@dataclass(frozen=True, kw_only=True)
class ErrorBody:
    code: str
    """a code of the error table"""
    message: str
    """for people: what was wrong and what to do"""
    candidates: list[str] | None = None
    """known alternatives"""


@dataclass(frozen=True, kw_only=True)
class ImportResultReplaced:
    quant: str
    manifest: Digest


@dataclass(frozen=True, kw_only=True)
class ImportResult:
    manifests: list[Digest]
    index_digest: Digest | None = None
    quants: list[str] | None = None
    infohash: str | None = None
    """`btmh:1220` and the 64 lower-case hex characters of a BitTorrent v2 infohash"""
    warnings: list[str] | None = None
    replaced: list[ImportResultReplaced] | None = None
    """artifacts that had a quant of this name before; absent when there were none"""
    skipped: int
    not_chosen: int | None = None
    """weights and aux files that the choice left out, where there was one"""
    before: str | None = None
    """the tag of the artifact that the name had before (additive)"""
    fetched_bytes: int | None = None
    """unpacked bytes of files that this run fetched from the source (additive)"""
    reused_bytes: int | None = None
    """bytes of files that were copied from older versions here; absent without any (additive)"""
    companions: str | None = None
    """the document that lists the companions (additive)"""
    omitted: int | None = None
    """files that are neither in an artifact nor companions (additive)"""


@dataclass(frozen=True, kw_only=True)
class GcResult:
    blobs: int
    """removed; with `dryRun`, that would be removed"""
    bytes: Bytes
    unreadable: int | None = None
    """records that cannot be read; everything that they could name was kept (additive)"""
    tags: int | None = None
    """with `beforeOlderThanSeconds`: tags that were removed, or would be"""
    views: int | None = None
    """with `views`: managed views that were removed, or would be"""
    leftovers: int | None = None
    """with `leftovers`: files of unfinished downloads and corrupt blobs"""
    leftover_bytes: int | None = None
    """of these, not in `bytes`"""


@dataclass(frozen=True, kw_only=True)
class EvictResult:
    blobs: int
    """weights that were removed"""
    bytes: Bytes
    evicted: list[Digest]
    """manifests"""


@dataclass(frozen=True, kw_only=True)
class Origin:
    kind: str
    """`local`, `hf`, `catalog`, `oci` or `bt`"""
    repo: str | None = None
    """`org/name`, as its source spells it"""
    revision: str | None = None
    """the branch or tag that it follows; absent for one that was imported by its commit"""
    commit: str | None = None
    """40 hex"""


@dataclass(frozen=True, kw_only=True)
class ImportHfBody:
    repo: str
    """`org/name` on the hub, or `name` for one without an owner"""
    revision: str | None = None
    """branch, tag or commit; the default branch when absent"""
    follows: str | None = None
    """the branch or tag at which `revision`, a commit, was found; the model follows it (additive)
    """
    keep_before: bool | None = None
    """if the name changes its artifact, the old one gets the tag `before-<date>` (additive)"""
    as_: str | None = None
    """`ns/name`, lower case"""
    aux: str | list[str] | None = None
    """what to import beside the weights: `one` for the nearest projector and draft head, `mmproj`
    or `draft` for one of them; precisions of projectors (`f16`), `draft:q8_0`, `imatrix`, `lora`;
    `all` when absent
    """
    recognise: Literal["opaque"] | None = None
    """takes every file as it is, or those that `files` match, as one artifact of the quant `raw`
    (additive)
    """
    allow_pickle: bool | None = None
    """with `recognise`, also takes pickles, which can run code when they are loaded (additive)"""
    names: Literal["upstream", "normalized"] | None = None
    """which names `*.gguf` files get; `upstream` when absent"""
    quants: list[str] | None = None
    """only these; compared in lower case"""
    files: list[str] | None = None
    """globs: only these weights and aux files"""
    private: bool | None = None
    """neither announced nor shared"""
    replace: bool | None = None
    """false: the job fails if a quant of that name is another artifact here, unless that came from
    the same hub repository; true when absent
    """
    evict: bool | None = None
    """if space is short, evicts models that can be fetched again; else the job fails and names them
    (additive)
    """
    malformed: Literal["keep", "refuse"] | None = None
    """weights that no runtime can load, by their headers (spec rec.12): `keep` (when absent)
    imports them with a warning, `refuse` fails the job and imports nothing (additive)
    """


@dataclass(frozen=True, kw_only=True)
class OutdatedModel:
    ref: str
    """`ns/name:quant`"""
    status: Literal["same", "newer", "gone", "gated", "pinned", "elsewhere", "unknown"]
    origin: Origin | None = None
    commit: str | None = None
    """what the revision points to now"""
    moved_to: str | None = None
    """the repository's new name"""
    files: int | None = None
    """on `newer`: its new or changed files"""
    bytes: int | None = None
    """on `newer`: the bytes of these files"""
    bytes_present: int | None = None
    """on `newer`: of these, bytes that the store has"""
    reason: str | None = None
    """on `gone`, `gated` and `unknown`, for people"""
    upgrade: ImportHfBody | None = None


@dataclass(frozen=True, kw_only=True)
class OutdatedResult:
    models: list[OutdatedModel]


@dataclass(frozen=True, kw_only=True)
class VerifyReport:
    mismatched: list[Digest] | None = None
    missing: list[Digest] | None = None
    state_errors: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class ActiveFile:
    name: str
    bytes_done: Bytes
    bytes_total: Bytes


@dataclass(frozen=True, kw_only=True)
class Job:
    id: str
    """opaque hex"""
    kind: JobKind
    ref: str
    state: JobState
    created_at: Timestamp
    manifest: Digest | None = None
    as_: str | None = None
    """`ns/name`, on imports"""
    target: str | None = None
    """on verify: the resolved digest, or `all`"""
    dry_run: bool | None = None
    """true on gc jobs that only count"""
    interrupted: bool | None = None
    """true on an import that an earlier daemon left unfinished: `PUT /v1/jobs/{id}` goes on
    (additive)
    """
    files_done: int | None = None
    files_total: int | None = None
    error: ErrorBody | None = None
    result: ImportResult | GcResult | EvictResult | OutdatedResult | None = None
    verify: VerifyReport | None = None
    bytes_done: Bytes | None = None
    bytes_total: Bytes | None = None
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None
    message: str | None = None
    """one line for people on what is happening, e.g. a wait for a rate limit"""
    warnings: list[str] | None = None
    """on running imports: warnings that names alone cause; the result has all"""
    files: list[ActiveFile] | None = None
    """files in flight"""
    peers: int | None = None
    """connected peers of the swarm"""
    sources: int | None = None
    """webseeds and peers that send bytes"""
    rate_bytes_per_second: Bytes | None = None


@dataclass(frozen=True, kw_only=True)
class JobList:
    jobs: list[Job]
    interrupted: list[Job] | None = None
    """imports that an earlier daemon left unfinished, newest first; absent without any (additive)
    """


@dataclass(frozen=True, kw_only=True)
class PlanFile:
    name: str
    size: Bytes
    action: Literal["store", "annotate", "present", "skip"]
    kind: str | None = None
    """kind of the entry that it becomes or joins"""
    quant: str | None = None
    """on weights"""
    reason: str | None = None
    """on `skip`"""
    companion: bool | None = None
    """true if it is kept as a companion, in no manifest (additive)"""
    upstream: str | None = None
    """its name on the hub, if it is imported under another one"""


@dataclass(frozen=True, kw_only=True)
class ImportPlanTotals:
    files: int
    bytes: Bytes
    fetch_files: int
    fetch_bytes: Bytes
    store_files: int
    store_bytes: Bytes
    skip_files: int
    skip_bytes: Bytes


@dataclass(frozen=True, kw_only=True)
class PlanArtifact:
    quant: str
    upstream: str | None = None
    """the first of its weights on the hub, if that name does not tell the quant (additive)"""
    files: int
    """entries, including those that it shares with other artifacts"""
    bytes: Bytes
    bytes_present: int
    """of these, bytes that the store has"""
    weights_bytes: int | None = None
    """of weights, projectors and draft heads, if `context` was given"""


@dataclass(frozen=True, kw_only=True)
class MemoryNeed:
    context_tokens: int
    cache_bytes: Bytes
    compute_bytes: Bytes


@dataclass(frozen=True, kw_only=True)
class MemoryUnknown:
    unknown: str
    """why it is unknown"""


@dataclass(frozen=True, kw_only=True)
class ImportPlan:
    repo: str
    commit: str
    """40 hex"""
    as_: str
    """`ns/name` that it would have"""
    files: list[PlanFile]
    totals: ImportPlanTotals
    quants: list[str]
    artifacts: list[PlanArtifact]
    """one per quant, in the same order"""
    license: str | None = None
    """SPDX expression of the texts; without any, what the hub names"""
    gated: bool | None = None
    """true if the hub asks for consent"""
    private: bool | None = None
    """true if the hub shows it only to some"""
    memory: MemoryNeed | MemoryUnknown | None = None
    """if `context` was given: an estimate of what every artifact needs besides its weights"""
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class Finding:
    file: str
    key: str | None = None
    """of a configuration or a header, with those above it"""
    is_: Literal["runs-code", "malformed"]
    what: str
    """for people"""


@dataclass(frozen=True, kw_only=True)
class Inspection:
    commit: str
    """40 hex"""
    findings: list[Finding]
    """by file"""
    unread: list[str]
    """files whose content was not read"""


@dataclass(frozen=True, kw_only=True)
class ImportBtCompanions:
    """the second pin of a share: the companions of the artifact (additive)"""

    digest: str
    """the pin of the document, `sha256:<hex>`"""
    infohash: str
    """`btmh:1220<hex>`"""


@dataclass(frozen=True, kw_only=True)
class CatalogEntry:
    repo: str
    """`owner/name`, as listed"""
    name: str
    """file or torrent name"""
    quant: str | None = None
    size_label: str
    """as the provider prints it"""
    seeds: int
    infohash: str
    """`btih:<40 hex>`"""


@dataclass(frozen=True, kw_only=True)
class CatalogSearch:
    entries: list[CatalogEntry]


@dataclass(frozen=True, kw_only=True)
class HubEntry:
    repo: str
    """`org/name`"""
    gated: bool
    private: bool
    formats: list[str]
    """`gguf`, `safetensors`"""
    license: str | None = None
    """as the hub names it"""
    parameters: int | None = None
    downloads: int | None = None
    updated_at: str | None = None
    """UTC, RFC 3339"""


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    entries: list[HubEntry]
    """of the hub, the most downloaded first"""
    catalog: list[CatalogEntry] | None = None
    """if `source` is `catalog`"""
    next: str | None = None
    """the `cursor` of the next page; absent on the last one"""


@dataclass(frozen=True, kw_only=True)
class HubAccountResult:
    endpoint: str
    """the hub that was asked"""
    name: str | None = None
    """of the account; absent where the hub does not tell it"""
    variable: str | None = None
    """the variable of the daemon's environment that has its token now"""
    file: str | None = None
    """the file that its token is read from; absent if a variable has it, or no file is read"""


@dataclass(frozen=True, kw_only=True)
class Withheld:
    fact: Literal["no-record", "damaged-record", "private", "restricted", "marked", "unproven", "unknown-access", "malformed", "unsigned"]
    reason: str
    """for people"""


@dataclass(frozen=True, kw_only=True)
class ModelMember:
    quant: str
    manifest: Digest
    size_bytes: int
    """of its files; 0 while the manifest is missing"""
    complete: bool
    private: bool
    imported_at: Timestamp | None = None
    last_used_at: Timestamp | None = None
    missing_bytes: int | None = None
    """of files that are not here"""
    damaged: bool | None = None
    """some of the missing files were found corrupt"""
    withheld: Withheld | None = None
    restricted: bool | None = None
    """its hub repository needed access"""
    companions: str | None = None
    """the document that lists its companions (additive)"""
    malformed: list[str] | None = None
    """its weights that no runtime can load; absent without any (additive)"""
    away: bool | None = None
    """evicted: `POST /v1/ensure` fetches what is missing (additive)"""
    pinned: bool | None = None
    """`PUT /v1/pin` keeps its bytes here (additive)"""
    origin: Origin | None = None
    newer: str | None = None
    """the newer commit that the last `POST /v1/outdated` found"""


@dataclass(frozen=True, kw_only=True)
class NamespaceEntry:
    ns: str
    name: str
    index_digest: Digest
    index_present: bool
    quants: list[str]
    """of the current index, if it is present and valid"""
    members: list[ModelMember]
    """in the order of `quants`"""


@dataclass(frozen=True, kw_only=True)
class TagEntry:
    repo: str
    """`ns/name`"""
    tag: str
    digest: Digest
    blob_present: bool


@dataclass(frozen=True, kw_only=True)
class DamagedRecord:
    file: str
    """relative to the store, as in `state/repos/ns/name.json`"""
    what: str
    """what is wrong with it, and what to do"""


@dataclass(frozen=True, kw_only=True)
class Inventory:
    skeleton: bool
    note: str
    """a constant"""
    namespaces: list[NamespaceEntry]
    tags: list[TagEntry]
    next: str | None = None
    """with `limit`: the name to give as `after`; absent where no more follow (additive)"""
    damaged: list[DamagedRecord] | None = None
    """records that cannot be read; absent without any (additive)"""


@dataclass(frozen=True, kw_only=True)
class RemovedModelQuantHolder:
    kind: Literal["name", "tag", "pin", "view", "job", "use"]
    what: str | None = None
    """the name, the tag, the path of the view or the id of the job; absent for `pin` and `use`"""


@dataclass(frozen=True, kw_only=True)
class RemovedModelQuant:
    quant: str
    manifest: Digest
    needed: bool
    """true if another name, a tag, a pin or a view still needs it"""
    holders: list[RemovedModelQuantHolder] | None = None
    """who still needs it, or uses its files now; absent without any"""


@dataclass(frozen=True, kw_only=True)
class RemovedModel:
    ref: str
    """`ns/name`, or `ns/name:quant`"""
    quants: list[RemovedModelQuant]
    tags: list[str]
    """tags that were removed as well"""
    freeable_bytes: Bytes


@dataclass(frozen=True, kw_only=True)
class NamedModel:
    as_: str
    """`ns/name`"""
    quants: list[str]
    """that have the new name"""
    tags: list[str]
    """that have the new name"""


@dataclass(frozen=True, kw_only=True)
class TagList:
    tags: list[TagEntry]
    """by repository, then by tag"""
    damaged: list[DamagedRecord] | None = None
    """records that cannot be read, with their tags; absent without any"""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    id: str
    store_id: str
    """the id of the store"""
    created_at: Timestamp
    path: str
    """a file of JSON lines: the state files of that moment, and the blobs that they need"""
    blobs: int
    bytes: Bytes
    missing_blobs: int
    """blobs that the state names but that are not here: of unfinished models, or lost"""
    held_until: Timestamp


@dataclass(frozen=True, kw_only=True)
class PrivateResult:
    ref: str
    manifest_digest: Digest
    private: bool


@dataclass(frozen=True, kw_only=True)
class PinResult:
    ref: str
    manifest_digest: Digest
    pinned: bool


@dataclass(frozen=True, kw_only=True)
class SeedResult:
    seed: bool
    file: str | None = None
    """the configuration file that remembers it"""


@dataclass(frozen=True, kw_only=True)
class SeedLocalResult:
    seed_local: bool
    file: str | None = None
    """the configuration file that remembers it"""


@dataclass(frozen=True, kw_only=True)
class UploadLimitResult:
    bytes_per_second: Bytes
    file: str | None = None
    """the configuration file that remembers it"""


@dataclass(frozen=True, kw_only=True)
class ConnectedPeer:
    infohash: str
    """of the torrent"""
    manifest_digest: Digest
    address: str
    """`host:port`"""
    client: str | None = None
    """as it calls itself"""
    source: Literal["named", "found", "incoming"]
    """named by the owner or a link; found by a tracker, the DHT, the local network or another peer;
    or it connected to us
    """
    have: float | None = None
    """share of the artifact that it has, 0 to 1; absent until it says so"""
    down_bytes_per_second: Bytes
    up_bytes_per_second: Bytes


@dataclass(frozen=True, kw_only=True)
class PeerList:
    peers: list[ConnectedPeer]
    """at most 500, the busiest first"""
    more: int
    """connections that are not listed"""


@dataclass(frozen=True, kw_only=True)
class DownloadLimitResult:
    bytes_per_second: Bytes
    file: str | None = None
    """the configuration file that remembers it"""


@dataclass(frozen=True, kw_only=True)
class StatusJobs:
    waiting: int
    fetching: int
    done: int
    failed: int


@dataclass(frozen=True, kw_only=True)
class StatusStoreUnfinished:
    """what was written of downloads that have not ended; absent without any"""

    files: int
    bytes: Bytes


@dataclass(frozen=True, kw_only=True)
class StatusStoreQuarantined:
    """corrupt blobs that were moved aside; absent without any"""

    files: int
    bytes: Bytes


@dataclass(frozen=True, kw_only=True)
class StatusStore:
    id: str | None = None
    """the store's own UUID, wherever its folder is"""
    blobs: int
    bytes: Bytes
    free_bytes: Bytes | None = None
    max_bytes: int | None = None
    """`[store] max_bytes`"""
    min_free_bytes: int | None = None
    """`[store] min_free`; absent for 0"""
    unfinished: StatusStoreUnfinished | None = None
    """what was written of downloads that have not ended; absent without any"""
    quarantined: StatusStoreQuarantined | None = None
    """corrupt blobs that were moved aside; absent without any"""


@dataclass(frozen=True, kw_only=True)
class HeldBack:
    manifest_digest: Digest
    ref: str | None = None
    reason: str


@dataclass(frozen=True, kw_only=True)
class SwarmStatusVerifying:
    """the re-hash at start-up, while it runs"""

    artifacts_done: int
    artifacts_total: int
    bytes_done: Bytes
    bytes_total: Bytes


@dataclass(frozen=True, kw_only=True)
class TorrentStatus:
    infohash: str
    """`btmh:1220<hex>`; `btih:<40 hex>` for a torrent of the catalog"""
    name: str
    manifest_digest: Digest | None = None
    ref: str | None = None
    """a local name of the artifact, `ns/name:quant`"""
    state: Literal["verifying", "fetching", "seeding"]
    size_bytes: Bytes | None = None
    peers: int
    down_bytes_per_second: Bytes
    up_bytes_per_second: Bytes
    uploaded_bytes: Bytes


@dataclass(frozen=True, kw_only=True)
class SwarmStatusSignedWebseed:
    url: str
    """of `[webseed."URL"]`"""
    credentials_file: str | None = None
    """absent: the key of the daemon's environment"""
    problem: str | None = None
    """why the key cannot be used now"""


@dataclass(frozen=True, kw_only=True)
class SwarmStatus:
    enabled: bool
    seed: bool
    """`[swarm] seed`"""
    seeding: int
    """artifacts that are announced"""
    held_back: list[HeldBack]
    verifying: SwarmStatusVerifying | None = None
    """the re-hash at start-up, while it runs"""
    torrents: list[TorrentStatus]
    peers: int
    down_bytes_per_second: Bytes
    up_bytes_per_second: Bytes
    upload_limit_bytes_per_second: int | None = None
    """`[swarm] upload_limit`; absent without one"""
    peer_address: str | None = None
    """`host:port` that is listened on"""
    webseed_address: str | None = None
    """`host:port` that is listened on"""
    dht_port: int | None = None
    """UDP port of the DHT node; absent when the DHT is off"""
    seed_on_import: bool | None = None
    """true: imports are shared at once; absent: from the next start on"""
    signed_webseeds: list[SwarmStatusSignedWebseed] | None = None
    """absent without any"""


@dataclass(frozen=True, kw_only=True)
class CatalogStatus:
    torrents: list[TorrentStatus]
    peers: int
    up_bytes_per_second: Bytes
    peer_address: str | None = None
    """`host:port` that is listened on, once a BitTorrent v1 swarm was joined"""


@dataclass(frozen=True, kw_only=True)
class Status:
    pid: int
    version: str
    root: str
    """absolute path of the store"""
    started_at: Timestamp
    jobs: StatusJobs
    store: StatusStore
    swarm: SwarmStatus
    catalog: CatalogStatus | None = None
    damaged: list[DamagedRecord] | None = None
    """records of the state that could not be read a few seconds ago; absent without any"""
    download_limit_bytes_per_second: int | None = None
    """`[network] download_limit`; absent without one"""
    seed_local: bool | None = None
    """`[swarm] seed_local`; absent while nobody has decided, which means true"""


@dataclass(frozen=True, kw_only=True)
class ShareResultCompanions:
    """its companions, if others may have them: announced with it (additive)"""

    digest: str
    """the pin of the document, `sha256:<hex>`"""
    infohash: str
    """`btmh:1220<hex>`"""


@dataclass(frozen=True, kw_only=True)
class ShareResult:
    ref: str
    manifest_digest: Digest
    infohash: str
    """`btmh:1220` and the 64 lower-case hex characters of a BitTorrent v2 infohash"""
    name: str
    """name of the torrent"""
    magnet: str
    """with `ws=` for each webseed and `x.pe=` for each peer"""
    webseeds: list[str]
    peers: list[str]
    trackers: list[str]
    announced: bool
    """whether the artifact is being served to the swarm now"""
    companions: ShareResultCompanions | None = None
    """its companions, if others may have them: announced with it (additive)"""
    note: str | None = None
    """why it is not announced, or what limits who can reach it"""
    command: str
    """what to type on the other side"""


@dataclass(frozen=True, kw_only=True)
class WhyResultSource:
    kind: str
    """`local`, `hf`, `catalog`, `oci` or `bt`"""
    repo: str | None = None
    revision: str | None = None


@dataclass(frozen=True, kw_only=True)
class WhyResultDecision:
    is_: str
    """`private` or `shared`: what the owner said"""
    at: Timestamp | None = None


@dataclass(frozen=True, kw_only=True)
class WhyResultCopie:
    kind: str
    """`hub`, `webseed` or `peer`"""
    where: str
    at: Timestamp


@dataclass(frozen=True, kw_only=True)
class WhyResultCompanions:
    """its companions; absent without any (additive)"""

    given: int
    """files that are shared with the artifact"""
    own: list[str]
    """the owner's own, which never leave this store"""


@dataclass(frozen=True, kw_only=True)
class WhyResultDoor:
    door: str
    """`swarm`, `webseed`, `hub-mirror`, `oci-mirror`, `s3-mirror`, `publish`, `export` or `push`"""
    open: bool
    """false: the configuration keeps it closed for all models"""
    given: bool
    withheld: Withheld | None = None


@dataclass(frozen=True, kw_only=True)
class WhyResult:
    ref: str
    manifest_digest: Digest
    record: Literal["present", "absent", "damaged"]
    source: WhyResultSource | None = None
    imported_at: Timestamp | None = None
    access: str | None = None
    """`own`, `public`, `restricted` or `unknown`"""
    by: str | None = None
    """`hub-token`, `registry-login` or `webseed-key`"""
    confirmed_public_at: Timestamp | None = None
    unproven: list[str] | None = None
    malformed: list[str] | None = None
    marked: bool | None = None
    """whoever exported it marked it as not for others"""
    decision: WhyResultDecision | None = None
    copies: list[WhyResultCopie] | None = None
    """where else its weights were seen, and when (additive)"""
    companions: WhyResultCompanions | None = None
    """its companions; absent without any (additive)"""
    doors: list[WhyResultDoor]


@dataclass(frozen=True, kw_only=True)
class AdoptFile:
    name: str
    """in the artifact, with `/` between folders"""
    path: str
    """absolute path of the regular file; no component is a link"""
    sha256: str | None = None
    """`sha256:<hex>` that the bytes must have"""
    git_sha1: str | None = None
    """40 hex characters, git's name of the blob"""


@dataclass(frozen=True, kw_only=True)
class AdoptHub:
    """where the files came from, as their cache says; recorded if it has a commit and every file a
    digest, which is checked. Without a commit the hub is asked for its latest
    """

    repo: str
    revision: str | None = None


@dataclass(frozen=True, kw_only=True)
class AdoptPlan:
    quants: list[str]


@dataclass(frozen=True, kw_only=True)
class AdoptPlanFile:
    name: str
    """in the artifact, with `/` between folders"""
    path: str
    """absolute path of the regular file; no component is a link"""
    sha256: str | None = None
    """`sha256:<hex>` that the bytes must have"""
    git_sha1: str | None = None
    """40 hex characters, git's name of the blob"""


@dataclass(frozen=True, kw_only=True)
class AdoptPlanHub:
    """where the files came from, as their cache says; recorded if it has a commit and every file a
    digest, which is checked. Without a commit the hub is asked for its latest
    """

    repo: str
    revision: str | None = None


@dataclass(frozen=True, kw_only=True)
class ViewFile:
    name: str
    """within the model"""
    path: str
    """absolute; pass it on unchanged, without resolving links"""
    size: Bytes
    kind: str
    """of the entry in the manifest; of the tar for files unpacked from one; `companion` for
    companions
    """
    role: str | None = None
    variant: str | None = None
    part: int | None = None
    own: bool | None = None
    """true: the owner's own, which never leaves this store (additive)"""
    digest: Digest | None = None


@dataclass(frozen=True, kw_only=True)
class View:
    ref: str
    """canonical reference, `svc:///ns/name[:sel][@digest]`, at most 512 bytes"""
    path: str
    """absolute"""
    managed: bool
    """it lies below `<root>/views`"""
    manifest_digest: Digest
    layout: ViewLayout
    mode: ViewMode
    held_until: Timestamp | None = None
    made: bool
    """false if the same view was already there and complete"""
    folder: str
    """the path for runtimes that take a folder"""
    loads: str | None = None
    """the path for runtimes: the GGUF, the first shard of a split one, or else the folder; absent
    if several fit
    """
    files: list[ViewFile]
    warnings: list[str] | None = None
    """why loaders may refuse the folder; absent without any (additive)"""


@dataclass(frozen=True, kw_only=True)
class Making:
    bytes_done: Bytes
    bytes_total: Bytes


@dataclass(frozen=True, kw_only=True)
class ViewEntry:
    path: str
    """absolute"""
    managed: bool
    """it lies below `<root>/views`"""
    manifest_digest: Digest
    layout: ViewLayout
    mode: ViewMode
    held_until: Timestamp | None = None
    others: list[Digest] | None = None
    """in a hub cache: the artifacts of the other models in it (additive)"""
    present: bool
    """false if it cannot be found now: its disk is not mounted, or it is not made yet"""
    needed: bool | None = None
    """false if no name, tag or pin refers to its artifact any more: only views keep it"""
    making: Making | None = None


@dataclass(frozen=True, kw_only=True)
class ViewList:
    views: list[ViewEntry]


@dataclass(frozen=True, kw_only=True)
class RemovedView:
    path: str
    removed: bool
    """false if the folder was already gone"""


@dataclass(frozen=True, kw_only=True)
class StandingView:
    layout: StandingLayout
    path: str
    """absolute: the tool's folder; made if it is absent"""
    match: list[str] | None = None
    """models to show: `ns/name:quant`, with `*` in all parts; default: all"""
    copy: bool | None = None
    """true: the files are copies, which share blocks with the store where they can; default: links
    """
    reload: str | None = None
    """layout `llama`: the address of llama-server's router on this machine, such as
    `http://127.0.0.1:8080`
    """
    entries: int
    """links, copies and small files in it that are ours"""
    copied_bytes: int | None = None
    """the space that copies take beyond that of the store"""
    bytes_done: int | None = None
    """while copies are being made: those so far"""
    taken: list[str] | None = None
    """some of the paths where the tool's own files are, which stay"""
    problem: str | None = None
    """why it does not follow now"""


@dataclass(frozen=True, kw_only=True)
class StandingViewList:
    views: list[StandingView]


class Routes:
    """The routes of the API that answer with JSON."""

    def _call(
        self, route: str, result: type[T], asked: dict[str, Any], has_body: bool | None = None
    ) -> T:
        raise NotImplementedError

    def resolve(self, ref: str) -> ResolveResult:
        """Resolve a reference to digests, from local state only."""
        return self._call("GET /v1/resolve", ResolveResult, locals())

    def open(self, ref: str) -> OpenResult:
        """Resolve, and list the blobs that are present."""
        return self._call("GET /v1/open", OpenResult, locals())

    def ensure(self, ref: str, *, evict: bool | None = None) -> Job:
        """Make a model locally complete. The job can fail with: E_PARSE, E_LENGTH, E_UNKNOWN_REF,
        E_AMBIGUOUS_SELECTOR, E_NO_INDEX, E_INVALID_INDEX, E_NO_MEMBER, E_PIN_MISMATCH,
        E_CORRUPTION, E_NOT_IMPORTABLE, E_SOURCE_UNAVAILABLE, E_NO_SPACE, E_ABORTED, E_INTERNAL.
        """
        return self._call("POST /v1/ensure", Job, locals())

    def job(self, id: str) -> Job:
        """One job, a consistent snapshot."""
        return self._call("GET /v1/jobs/{id}", Job, locals())

    def resume_job(self, id: str) -> Job:
        """Go on with an import that was interrupted or has failed."""
        return self._call("PUT /v1/jobs/{id}", Job, locals(), has_body=False)

    def cancel_job(self, id: str) -> Job:
        """Cancel a job."""
        return self._call("DELETE /v1/jobs/{id}", Job, locals())

    def jobs(self) -> JobList:
        """All jobs, newest first."""
        return self._call("GET /v1/jobs", JobList, locals())

    def import_local(
        self, *, paths: list[str], as_: str, companions: Literal["loaders", "all"] | None = None,
        aux: str | list[str] | None = None, recognise: Literal["opaque"] | None = None,
        allow_pickle: bool | None = None, names: Literal["upstream", "normalized"] | None = None,
        quants: list[str] | None = None, files: list[str] | None = None,
        private: bool | None = None, replace: bool | None = None, evict: bool | None = None,
        malformed: Literal["keep", "refuse"] | None = None
    ) -> Job:
        """Import files and folders of this machine. The job can fail with: E_NOT_IMPORTABLE,
        E_INVALID_INDEX, E_SOURCE_NOT_REGULAR, E_NO_SPACE, E_ABORTED, E_INTERNAL.
        """
        return self._call("POST /v1/import/local", Job, locals())

    def import_hf(
        self, repo: str, *, revision: str | None = None, follows: str | None = None,
        keep_before: bool | None = None, as_: str | None = None, aux: str | list[str] | None = None,
        recognise: Literal["opaque"] | None = None, allow_pickle: bool | None = None,
        names: Literal["upstream", "normalized"] | None = None, quants: list[str] | None = None,
        files: list[str] | None = None, private: bool | None = None, replace: bool | None = None,
        evict: bool | None = None, malformed: Literal["keep", "refuse"] | None = None
    ) -> Job:
        """Import a repository of the model hub at one commit. The job can fail with: E_UNKNOWN_REF,
        E_SOURCE_FORBIDDEN, E_RATE_LIMITED, E_INVALID_INDEX, E_NOT_IMPORTABLE, E_SOURCE_UNAVAILABLE,
        E_NO_SPACE, E_ABORTED, E_INTERNAL.
        """
        return self._call("POST /v1/import/hf", Job, locals())

    def import_hf_plan(
        self, repo: str, *, revision: str | None = None, follows: str | None = None,
        keep_before: bool | None = None, as_: str | None = None, aux: str | list[str] | None = None,
        recognise: Literal["opaque"] | None = None, allow_pickle: bool | None = None,
        names: Literal["upstream", "normalized"] | None = None, quants: list[str] | None = None,
        files: list[str] | None = None, private: bool | None = None, replace: bool | None = None,
        evict: bool | None = None, malformed: Literal["keep", "refuse"] | None = None,
        context: int | None = None
    ) -> ImportPlan:
        """What an import from the hub would fetch, store and skip."""
        return self._call("POST /v1/import/hf/plan", ImportPlan, locals())

    def inspect_hf(self, repo: str, *, revision: str | None = None) -> Inspection:
        """What would run code in a repository of the hub, and what is malformed."""
        return self._call("POST /v1/inspect/hf", Inspection, locals())

    def import_bt(
        self, manifest_digest: str, *, magnet: str | None = None, infohash: str | None = None,
        trackers: list[str] | None = None, webseeds: list[str] | None = None,
        peers: list[str] | None = None, companions: ImportBtCompanions | None = None,
        manifest_from_peers: bool | None = None, as_: str | None = None,
        private: bool | None = None, recognise: Literal["opaque"] | None = None,
        allow_pickle: bool | None = None, replace: bool | None = None, evict: bool | None = None
    ) -> Job:
        """Import a pinned artifact from a BitTorrent v2 swarm. The job can fail with:
        E_NOT_IMPORTABLE, E_SOURCE_UNAVAILABLE, E_NO_SPACE, E_ABORTED, E_INTERNAL.
        """
        return self._call("POST /v1/import/bt", Job, locals())

    def import_catalog(
        self, repo: str, *, quant: str | None = None, trust_catalog: bool | None = None,
        as_: str | None = None, peers: list[str] | None = None, aux: str | list[str] | None = None,
        names: Literal["upstream", "normalized"] | None = None, quants: list[str] | None = None,
        files: list[str] | None = None, private: bool | None = None, replace: bool | None = None,
        evict: bool | None = None, malformed: Literal["keep", "refuse"] | None = None
    ) -> Job:
        """Anchored pull of a model that the community catalog lists. The job can fail with:
        E_INVALID_INDEX, E_NOT_IMPORTABLE, E_SOURCE_UNAVAILABLE, E_NO_SPACE, E_ABORTED, E_INTERNAL.
        """
        return self._call("POST /v1/import/catalog", Job, locals())

    def import_oci(
        self, as_: str, *, path: str | None = None, manifest: str | None = None,
        image: str | None = None, plain_http: bool | None = None,
        recognise: Literal["opaque"] | None = None, allow_pickle: bool | None = None,
        names: Literal["upstream", "normalized"] | None = None, quants: list[str] | None = None,
        files: list[str] | None = None, private: bool | None = None, replace: bool | None = None,
        evict: bool | None = None, malformed: Literal["keep", "refuse"] | None = None
    ) -> Job:
        """Import an OCI artifact, from an image layout on this machine or from a registry. The job
        can fail with: E_NOT_IMPORTABLE, E_SOURCE_UNAVAILABLE, E_NO_SPACE, E_ABORTED, E_INTERNAL,
        E_UNKNOWN_REF, E_SOURCE_FORBIDDEN, E_RATE_LIMITED, E_BAD_REQUEST, E_NO_MEMBER.
        """
        return self._call("POST /v1/import/oci", Job, locals())

    def companions(self, ref: str) -> Job:
        """Fetch the companions of an artifact from the hub, and nothing else. The job can fail
        with: E_UNKNOWN_REF, E_SOURCE_FORBIDDEN, E_RATE_LIMITED, E_NOT_IMPORTABLE,
        E_SOURCE_UNAVAILABLE, E_NO_SPACE, E_ABORTED, E_INTERNAL.
        """
        return self._call("POST /v1/companions", Job, locals())

    def catalog_search(self, q: str, *, names: str | None = None) -> CatalogSearch:
        """Search the community catalog."""
        return self._call("GET /v1/catalog/search", CatalogSearch, locals())

    def search(
        self, q: str, *, source: str | None = None, format: str | None = None,
        license: str | None = None, min_parameters: str | None = None,
        max_parameters: str | None = None, limit: str | None = None, cursor: str | None = None
    ) -> SearchResult:
        """Search the model hub, or the community catalog."""
        return self._call("GET /v1/search", SearchResult, locals())

    def hub_account(self, token: str) -> HubAccountResult:
        """Ask the hub whose token it is; nothing is stored."""
        return self._call("POST /v1/hub/account", HubAccountResult, locals())

    def verify(self, target: str) -> Job:
        """Re-hash a model, a blob, or the whole store. The job can fail with: E_VERIFY_FAILED,
        E_CORRUPTION, E_ABORTED, E_INTERNAL.
        """
        return self._call("POST /v1/verify", Job, locals())

    def models(self, *, limit: str | None = None, after: str | None = None) -> Inventory:
        """The local inventory."""
        return self._call("GET /v1/models", Inventory, locals())

    def remove_model(self, ns: str, name: str, *, tags: str | None = None) -> RemovedModel:
        """Remove the name of a model, with all its quants."""
        return self._call("DELETE /v1/models/{ns}/{name}", RemovedModel, locals())

    def remove_quant(
        self, ns: str, name: str, quant: str, *, tags: str | None = None
    ) -> RemovedModel:
        """Remove one quant of a model."""
        return self._call("DELETE /v1/models/{ns}/{name}/{quant}", RemovedModel, locals())

    def give_name(
        self, *, from_: str, as_: str, move: bool | None = None, replace: bool | None = None
    ) -> NamedModel:
        """Give a model, or one quant of it, another name, or rename it."""
        return self._call("POST /v1/names", NamedModel, locals())

    def unpin(self, digest: str) -> RemovedModel:
        """Forget a pinned import that has no name."""
        return self._call("DELETE /v1/pins/{digest}", RemovedModel, locals())

    def tags(self, *, repo: str | None = None) -> TagList:
        """The tags of the store, or of one repository."""
        return self._call("GET /v1/tags", TagList, locals())

    def tag(self, ns: str, name: str, tag: str) -> TagEntry:
        """The index that a tag names."""
        return self._call("GET /v1/tags/{ns}/{name}/{tag}", TagEntry, locals())

    def set_tag(self, ns: str, name: str, tag: str, *, digest: str | None = None) -> TagEntry:
        """Give an index a tag; one of that name moves."""
        return self._call("PUT /v1/tags/{ns}/{name}/{tag}", TagEntry, locals())

    def remove_tag(self, ns: str, name: str, tag: str) -> TagEntry:
        """Remove a tag; the answer says what it named."""
        return self._call("DELETE /v1/tags/{ns}/{name}/{tag}", TagEntry, locals())

    def gc(
        self, *, dry_run: bool | None = None, grace_seconds: int | None = None,
        before_older_than_seconds: int | None = None, views: bool | None = None,
        leftovers: bool | None = None
    ) -> Job:
        """Remove blobs that nothing needs any more. The job can fail with: E_NO_INDEX,
        E_INVALID_INDEX, E_CORRUPTION, E_ABORTED, E_INTERNAL.
        """
        return self._call("POST /v1/gc", Job, locals())

    def evict(self, ref: str, *, force: bool | None = None) -> Job:
        """Free the weights of a model, and keep its name and documents. The job can fail with:
        E_KEPT, E_NO_INDEX, E_INVALID_INDEX, E_CORRUPTION, E_ABORTED, E_INTERNAL.
        """
        return self._call("POST /v1/evict", Job, locals())

    def outdated(self, *, refs: list[str] | None = None) -> Job:
        """Ask the hub whether the revisions that models follow have newer commits. The job can fail
        with: E_SOURCE_UNAVAILABLE, E_RATE_LIMITED, E_SOURCE_FORBIDDEN, E_ABORTED, E_INTERNAL.
        """
        return self._call("POST /v1/outdated", Job, locals())

    def make_snapshot(self) -> Snapshot:
        """A complete state of the store, held for a backup."""
        return self._call("POST /v1/snapshots", Snapshot, locals())

    def hold_snapshot(self, id: str) -> Snapshot:
        """Hold a snapshot for longer."""
        return self._call("PUT /v1/snapshots/{id}", Snapshot, locals(), has_body=False)

    def release_snapshot(self, id: str) -> Snapshot:
        """Release a snapshot."""
        return self._call("DELETE /v1/snapshots/{id}", Snapshot, locals())

    def set_private(self, *, ref: str, private: bool) -> PrivateResult:
        """Share an artifact with nobody, or share it again."""
        return self._call("PUT /v1/private", PrivateResult, locals())

    def set_pinned(self, *, ref: str, pinned: bool) -> PinResult:
        """Protect the bytes of an artifact from the quota, or stop protecting them."""
        return self._call("PUT /v1/pin", PinResult, locals())

    def seed(self, seed: bool) -> SeedResult:
        """Turn sharing on or off; takes effect at once."""
        return self._call("PUT /v1/seed", SeedResult, locals())

    def seed_local(self, seed_local: bool) -> SeedLocalResult:
        """Decide, once and for all, whether own models are shared."""
        return self._call("PUT /v1/seed-local", SeedLocalResult, locals())

    def upload_limit(self, bytes_per_second: int) -> UploadLimitResult:
        """Limit the upload rate; takes effect at once."""
        return self._call("PUT /v1/upload-limit", UploadLimitResult, locals())

    def peers(self) -> PeerList:
        """The connections with peers, the busiest first."""
        return self._call("GET /v1/peers", PeerList, locals())

    def download_limit(self, bytes_per_second: int) -> DownloadLimitResult:
        """Limit the rate of all downloads together; takes effect at once."""
        return self._call("PUT /v1/download-limit", DownloadLimitResult, locals())

    def status(self) -> Status:
        """The daemon, its store and its swarm client."""
        return self._call("GET /v1/status", Status, locals())

    def share(self, ref: str) -> ShareResult:
        """All that another node needs to import this artifact over the swarm."""
        return self._call("GET /v1/share", ShareResult, locals())

    def join_share(self, ref: str) -> ShareResult:
        """Announce an artifact now if nothing prevents that, and return what another node needs."""
        return self._call("POST /v1/share", ShareResult, locals())

    def why(self, ref: str) -> WhyResult:
        """Who may get an artifact, through which door, and why."""
        return self._call("GET /v1/why", WhyResult, locals())

    def adopt(
        self, *, as_: str, files: list[AdoptFile], hub: AdoptHub | None = None,
        own: bool | None = None, names: Literal["upstream", "normalized"] | None = None,
        private: bool | None = None, replace: bool | None = None, malformed: Literal["keep",
        "refuse"] | None = None
    ) -> Job:
        """Import files that are stored under other names. The job can fail with: E_NOT_IMPORTABLE,
        E_INVALID_INDEX, E_SOURCE_NOT_REGULAR, E_NO_SPACE, E_ABORTED, E_INTERNAL.
        """
        return self._call("POST /v1/adopt", Job, locals())

    def adopt_plan(
        self, *, as_: str, files: list[AdoptPlanFile], hub: AdoptPlanHub | None = None,
        own: bool | None = None, names: Literal["upstream", "normalized"] | None = None,
        private: bool | None = None, replace: bool | None = None, malformed: Literal["keep",
        "refuse"] | None = None
    ) -> AdoptPlan:
        """The quants that such an import would make."""
        return self._call("POST /v1/adopt/plan", AdoptPlan, locals())

    def make_view(
        self, ref: str, *, layout: ViewLayout | None = None, mode: ViewMode | None = None,
        path: str | None = None, replace: bool | None = None, hold_seconds: int | None = None
    ) -> View:
        """Lay an artifact out in a folder that runtimes load."""
        return self._call("POST /v1/views", View, locals())

    def views(self) -> ViewList:
        """The views of this store."""
        return self._call("GET /v1/views", ViewList, locals())

    def remove_view(self, path: str, *, ref: str | None = None) -> RemovedView:
        """Remove a view."""
        return self._call("DELETE /v1/views", RemovedView, locals(), has_body=True)

    def standing_views(self) -> StandingViewList:
        """The folders of tools that follow this store, after a look at each."""
        return self._call("GET /v1/views/standing", StandingViewList, locals())

    def add_standing_view(
        self, *, layout: StandingLayout, path: str, match: list[str] | None = None,
        copy: bool | None = None, reload: str | None = None
    ) -> StandingView:
        """Let a tool's folder follow this store; saved in the daemon's configuration."""
        return self._call("PUT /v1/views/standing", StandingView, locals())

    def remove_standing_view(self, path: str) -> RemovedView:
        """Take what is ours out of such a folder, and let it follow no more."""
        return self._call("DELETE /v1/views/standing", RemovedView, locals(), has_body=True)
