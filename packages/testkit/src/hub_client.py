"""What huggingface_hub makes of a hub: reads one JSON object of arguments, prints one of results.

`endpoint` of `demand` is that of a second hub, for a file that is not there yet.
"""

import json
import sys

import huggingface_hub as hub
from huggingface_hub import constants

# what a connection gave before it broke counts by chunks: a small file has to have several
constants.DOWNLOAD_CHUNK_SIZE = 1 << 16

asked = json.loads(sys.argv[1])
repo, commit, weights, cache = asked["repo"], asked["commit"], asked["weights"], asked["cache"]


def failure(work):
    try:
        work()
    except Exception as error:  # its kind is what programs act on
        return type(error).__name__
    return None


def said_of(work):
    try:
        work()
    except Exception as error:
        return str(error)
    return None


said = {"snapshot": hub.snapshot_download(repo, cache_dir=cache)}
if asked.get("all"):
    said["again"] = hub.snapshot_download(repo, cache_dir=cache)
    said["pinned"] = hub.hf_hub_download(repo, "config.json", revision=commit, cache_dir=cache)
    info = hub.model_info(repo, files_metadata=True)
    said["sha"] = info.sha
    said["sizes"] = {file.rfilename: file.size for file in info.siblings}
    said["files"] = sorted(hub.list_repo_files(repo, revision=commit))
    said["tree"] = sorted(entry.path for entry in hub.list_repo_tree(repo, recursive=True))
    said["paths"] = sorted(entry.path for entry in hub.get_paths_info(repo, ["config.json", asked["left"], "extras"]))
    refs = hub.list_repo_refs(repo, include_pull_requests=True)
    said["refs"] = [[ref.name, ref.target_commit] for ref in refs.branches], refs.tags, refs.converts, refs.pull_requests
    said["left"] = said_of(lambda: hub.hf_hub_download(repo, asked["left"], cache_dir=cache))
    said["exists"] = [hub.file_exists(repo, weights), hub.file_exists(repo, asked["left"]), hub.repo_exists("acme/absent")]
    meta = hub.get_hf_file_metadata(hub.hf_hub_url(repo, weights))
    said["meta"] = [meta.commit_hash, meta.etag, meta.size]
    said["failures"] = [
        failure(lambda: hub.hf_hub_download(repo, "absent.json", cache_dir=cache)),
        failure(lambda: hub.hf_hub_download("acme/absent", "config.json", cache_dir=cache)),
        failure(lambda: hub.hf_hub_download(repo, "config.json", revision="0" * 40, cache_dir=cache)),
        failure(lambda: hub.snapshot_download("acme/absent", cache_dir=cache)),
    ]
    demand = asked["demand"]
    said["demanded"] = hub.hf_hub_download(
        demand["repo"], demand["file"], cache_dir=cache, endpoint=demand["endpoint"]
    )
    said["not_allowed"] = failure(
        lambda: hub.hf_hub_download("Other/Model", demand["file"], cache_dir=cache, endpoint=demand["endpoint"])
    )
print(json.dumps(said))
