"""A coroutine for each route of the API.

Made from docs/openapi.json by scripts/python.ts. Do not edit.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from ._api import *  # noqa: F403

T = TypeVar("T")


class AsyncRoutes:
    """The routes of the API that answer with JSON."""

    async def _call(
        self, route: str, result: type[T], asked: dict[str, Any], has_body: bool | None = None
    ) -> T:
        raise NotImplementedError

    async def resolve(self, ref: str) -> ResolveResult:
        """Resolve a reference to digests, from local state only."""
        return await self._call("GET /v1/resolve", ResolveResult, locals())

    async def open(self, ref: str) -> OpenResult:
        """Resolve, and list the blobs that are present."""
        return await self._call("GET /v1/open", OpenResult, locals())

    async def ensure(self, ref: str, *, evict: bool | None = None) -> Job:
        """Make a model locally complete. The job can fail with: E_PARSE, E_LENGTH, E_UNKNOWN_REF,
        E_AMBIGUOUS_SELECTOR, E_NO_INDEX, E_INVALID_INDEX, E_NO_MEMBER, E_PIN_MISMATCH,
        E_CORRUPTION, E_NOT_IMPORTABLE, E_SOURCE_UNAVAILABLE, E_NO_SPACE, E_ABORTED, E_INTERNAL.
        """
        return await self._call("POST /v1/ensure", Job, locals())

    async def job(self, id: str) -> Job:
        """One job, a consistent snapshot."""
        return await self._call("GET /v1/jobs/{id}", Job, locals())

    async def resume_job(self, id: str) -> Job:
        """Go on with an import that was interrupted or has failed."""
        return await self._call("PUT /v1/jobs/{id}", Job, locals(), has_body=False)

    async def cancel_job(self, id: str) -> Job:
        """Cancel a job."""
        return await self._call("DELETE /v1/jobs/{id}", Job, locals())

    async def jobs(self) -> JobList:
        """All jobs, newest first."""
        return await self._call("GET /v1/jobs", JobList, locals())

    async def import_local(
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
        return await self._call("POST /v1/import/local", Job, locals())

    async def import_hf(
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
        return await self._call("POST /v1/import/hf", Job, locals())

    async def import_hf_plan(
        self, repo: str, *, revision: str | None = None, follows: str | None = None,
        keep_before: bool | None = None, as_: str | None = None, aux: str | list[str] | None = None,
        recognise: Literal["opaque"] | None = None, allow_pickle: bool | None = None,
        names: Literal["upstream", "normalized"] | None = None, quants: list[str] | None = None,
        files: list[str] | None = None, private: bool | None = None, replace: bool | None = None,
        evict: bool | None = None, malformed: Literal["keep", "refuse"] | None = None,
        context: int | None = None
    ) -> ImportPlan:
        """What an import from the hub would fetch, store and skip."""
        return await self._call("POST /v1/import/hf/plan", ImportPlan, locals())

    async def inspect_hf(self, repo: str, *, revision: str | None = None) -> Inspection:
        """What would run code in a repository of the hub, and what is malformed."""
        return await self._call("POST /v1/inspect/hf", Inspection, locals())

    async def import_bt(
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
        return await self._call("POST /v1/import/bt", Job, locals())

    async def import_catalog(
        self, repo: str, *, quant: str | None = None, trust_catalog: bool | None = None,
        as_: str | None = None, peers: list[str] | None = None, aux: str | list[str] | None = None,
        names: Literal["upstream", "normalized"] | None = None, quants: list[str] | None = None,
        files: list[str] | None = None, private: bool | None = None, replace: bool | None = None,
        evict: bool | None = None, malformed: Literal["keep", "refuse"] | None = None
    ) -> Job:
        """Anchored pull of a model that the community catalog lists. The job can fail with:
        E_INVALID_INDEX, E_NOT_IMPORTABLE, E_SOURCE_UNAVAILABLE, E_NO_SPACE, E_ABORTED, E_INTERNAL.
        """
        return await self._call("POST /v1/import/catalog", Job, locals())

    async def import_oci(
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
        return await self._call("POST /v1/import/oci", Job, locals())

    async def companions(self, ref: str) -> Job:
        """Fetch the companions of an artifact from the hub, and nothing else. The job can fail
        with: E_UNKNOWN_REF, E_SOURCE_FORBIDDEN, E_RATE_LIMITED, E_NOT_IMPORTABLE,
        E_SOURCE_UNAVAILABLE, E_NO_SPACE, E_ABORTED, E_INTERNAL.
        """
        return await self._call("POST /v1/companions", Job, locals())

    async def catalog_search(self, q: str, *, names: str | None = None) -> CatalogSearch:
        """Search the community catalog."""
        return await self._call("GET /v1/catalog/search", CatalogSearch, locals())

    async def search(
        self, q: str, *, source: str | None = None, format: str | None = None,
        license: str | None = None, min_parameters: str | None = None,
        max_parameters: str | None = None, limit: str | None = None, cursor: str | None = None
    ) -> SearchResult:
        """Search the model hub, or the community catalog."""
        return await self._call("GET /v1/search", SearchResult, locals())

    async def hub_account(self, token: str) -> HubAccountResult:
        """Ask the hub whose token it is; nothing is stored."""
        return await self._call("POST /v1/hub/account", HubAccountResult, locals())

    async def verify(self, target: str) -> Job:
        """Re-hash a model, a blob, or the whole store. The job can fail with: E_VERIFY_FAILED,
        E_CORRUPTION, E_ABORTED, E_INTERNAL.
        """
        return await self._call("POST /v1/verify", Job, locals())

    async def models(self, *, limit: str | None = None, after: str | None = None) -> Inventory:
        """The local inventory."""
        return await self._call("GET /v1/models", Inventory, locals())

    async def remove_model(self, ns: str, name: str, *, tags: str | None = None) -> RemovedModel:
        """Remove the name of a model, with all its quants."""
        return await self._call("DELETE /v1/models/{ns}/{name}", RemovedModel, locals())

    async def remove_quant(
        self, ns: str, name: str, quant: str, *, tags: str | None = None
    ) -> RemovedModel:
        """Remove one quant of a model."""
        return await self._call("DELETE /v1/models/{ns}/{name}/{quant}", RemovedModel, locals())

    async def give_name(
        self, *, from_: str, as_: str, move: bool | None = None, replace: bool | None = None
    ) -> NamedModel:
        """Give a model, or one quant of it, another name, or rename it."""
        return await self._call("POST /v1/names", NamedModel, locals())

    async def unpin(self, digest: str) -> RemovedModel:
        """Forget a pinned import that has no name."""
        return await self._call("DELETE /v1/pins/{digest}", RemovedModel, locals())

    async def tags(self, *, repo: str | None = None) -> TagList:
        """The tags of the store, or of one repository."""
        return await self._call("GET /v1/tags", TagList, locals())

    async def tag(self, ns: str, name: str, tag: str) -> TagEntry:
        """The index that a tag names."""
        return await self._call("GET /v1/tags/{ns}/{name}/{tag}", TagEntry, locals())

    async def set_tag(self, ns: str, name: str, tag: str, *, digest: str | None = None) -> TagEntry:
        """Give an index a tag; one of that name moves."""
        return await self._call("PUT /v1/tags/{ns}/{name}/{tag}", TagEntry, locals())

    async def remove_tag(self, ns: str, name: str, tag: str) -> TagEntry:
        """Remove a tag; the answer says what it named."""
        return await self._call("DELETE /v1/tags/{ns}/{name}/{tag}", TagEntry, locals())

    async def gc(
        self, *, dry_run: bool | None = None, grace_seconds: int | None = None,
        before_older_than_seconds: int | None = None, views: bool | None = None,
        leftovers: bool | None = None
    ) -> Job:
        """Remove blobs that nothing needs any more. The job can fail with: E_NO_INDEX,
        E_INVALID_INDEX, E_CORRUPTION, E_ABORTED, E_INTERNAL.
        """
        return await self._call("POST /v1/gc", Job, locals())

    async def evict(self, ref: str, *, force: bool | None = None) -> Job:
        """Free the weights of a model, and keep its name and documents. The job can fail with:
        E_KEPT, E_NO_INDEX, E_INVALID_INDEX, E_CORRUPTION, E_ABORTED, E_INTERNAL.
        """
        return await self._call("POST /v1/evict", Job, locals())

    async def outdated(self, *, refs: list[str] | None = None) -> Job:
        """Ask the hub whether the revisions that models follow have newer commits. The job can fail
        with: E_SOURCE_UNAVAILABLE, E_RATE_LIMITED, E_SOURCE_FORBIDDEN, E_ABORTED, E_INTERNAL.
        """
        return await self._call("POST /v1/outdated", Job, locals())

    async def make_snapshot(self) -> Snapshot:
        """A complete state of the store, held for a backup."""
        return await self._call("POST /v1/snapshots", Snapshot, locals())

    async def hold_snapshot(self, id: str) -> Snapshot:
        """Hold a snapshot for longer."""
        return await self._call("PUT /v1/snapshots/{id}", Snapshot, locals(), has_body=False)

    async def release_snapshot(self, id: str) -> Snapshot:
        """Release a snapshot."""
        return await self._call("DELETE /v1/snapshots/{id}", Snapshot, locals())

    async def set_private(self, *, ref: str, private: bool) -> PrivateResult:
        """Share an artifact with nobody, or share it again."""
        return await self._call("PUT /v1/private", PrivateResult, locals())

    async def set_pinned(self, *, ref: str, pinned: bool) -> PinResult:
        """Protect the bytes of an artifact from the quota, or stop protecting them."""
        return await self._call("PUT /v1/pin", PinResult, locals())

    async def seed(self, seed: bool) -> SeedResult:
        """Turn sharing on or off; takes effect at once."""
        return await self._call("PUT /v1/seed", SeedResult, locals())

    async def seed_local(self, seed_local: bool) -> SeedLocalResult:
        """Decide, once and for all, whether own models are shared."""
        return await self._call("PUT /v1/seed-local", SeedLocalResult, locals())

    async def upload_limit(self, bytes_per_second: int) -> UploadLimitResult:
        """Limit the upload rate; takes effect at once."""
        return await self._call("PUT /v1/upload-limit", UploadLimitResult, locals())

    async def peers(self) -> PeerList:
        """The connections with peers, the busiest first."""
        return await self._call("GET /v1/peers", PeerList, locals())

    async def download_limit(self, bytes_per_second: int) -> DownloadLimitResult:
        """Limit the rate of all downloads together; takes effect at once."""
        return await self._call("PUT /v1/download-limit", DownloadLimitResult, locals())

    async def status(self) -> Status:
        """The daemon, its store and its swarm client."""
        return await self._call("GET /v1/status", Status, locals())

    async def share(self, ref: str) -> ShareResult:
        """All that another node needs to import this artifact over the swarm."""
        return await self._call("GET /v1/share", ShareResult, locals())

    async def join_share(self, ref: str) -> ShareResult:
        """Announce an artifact now if nothing prevents that, and return what another node needs."""
        return await self._call("POST /v1/share", ShareResult, locals())

    async def why(self, ref: str) -> WhyResult:
        """Who may get an artifact, through which door, and why."""
        return await self._call("GET /v1/why", WhyResult, locals())

    async def adopt(
        self, *, as_: str, files: list[AdoptFile], hub: AdoptHub | None = None,
        own: bool | None = None, names: Literal["upstream", "normalized"] | None = None,
        private: bool | None = None, replace: bool | None = None, malformed: Literal["keep",
        "refuse"] | None = None
    ) -> Job:
        """Import files that are stored under other names. The job can fail with: E_NOT_IMPORTABLE,
        E_INVALID_INDEX, E_SOURCE_NOT_REGULAR, E_NO_SPACE, E_ABORTED, E_INTERNAL.
        """
        return await self._call("POST /v1/adopt", Job, locals())

    async def adopt_plan(
        self, *, as_: str, files: list[AdoptPlanFile], hub: AdoptPlanHub | None = None,
        own: bool | None = None, names: Literal["upstream", "normalized"] | None = None,
        private: bool | None = None, replace: bool | None = None, malformed: Literal["keep",
        "refuse"] | None = None
    ) -> AdoptPlan:
        """The quants that such an import would make."""
        return await self._call("POST /v1/adopt/plan", AdoptPlan, locals())

    async def make_view(
        self, ref: str, *, layout: ViewLayout | None = None, mode: ViewMode | None = None,
        path: str | None = None, replace: bool | None = None, hold_seconds: int | None = None
    ) -> View:
        """Lay an artifact out in a folder that runtimes load."""
        return await self._call("POST /v1/views", View, locals())

    async def views(self) -> ViewList:
        """The views of this store."""
        return await self._call("GET /v1/views", ViewList, locals())

    async def remove_view(self, path: str, *, ref: str | None = None) -> RemovedView:
        """Remove a view."""
        return await self._call("DELETE /v1/views", RemovedView, locals(), has_body=True)

    async def standing_views(self) -> StandingViewList:
        """The folders of tools that follow this store, after a look at each."""
        return await self._call("GET /v1/views/standing", StandingViewList, locals())

    async def add_standing_view(
        self, *, layout: StandingLayout, path: str, match: list[str] | None = None,
        copy: bool | None = None, reload: str | None = None
    ) -> StandingView:
        """Let a tool's folder follow this store; saved in the daemon's configuration."""
        return await self._call("PUT /v1/views/standing", StandingView, locals())

    async def remove_standing_view(self, path: str) -> RemovedView:
        """Take what is ours out of such a folder, and let it follow no more."""
        return await self._call("DELETE /v1/views/standing", RemovedView, locals(), has_body=True)
