import { workerData } from 'node:worker_threads'
import { normalisedNames, recognise, requireImportable } from '@svc/classify'
import { createHub, HubError, type HubListing } from '@svc/hub'
import { type CallContext, serveCalls, yieldToOthers } from '@svc/internal-workers'
import { RECOGNITION_NICE } from '../../thread-priority.ts'
import {
  type ListedFile,
  type ListingRequest,
  type ListingTasks,
  listingErrors,
  MAX_KEPT_FILES,
  type StrangerListing,
  type ThreadHub
} from './stranger-listing.ts'
import { cheapestWitness } from './witness.ts'

const hub = createHub(workerData as ThreadHub)

async function list(
  { repo, revision, isNamedOnly }: ListingRequest,
  { progress: onBytes }: CallContext<number>
): Promise<StrangerListing> {
  const options = { maxRateWaitMs: 60_000, onBytes }
  const listing = await hub.listing(repo, revision, options)
  const { repoId, commit } = listing
  if (listing.restricted)
    throw new HubError('E_SOURCE_FORBIDDEN', 'gated', `${repoId} is private or gated: no mirror gives it away`)
  // the listing of a gated repository may be open
  const probed = cheapestWitness(listing)
  if (probed !== undefined) await hub.probe(probed, options)
  if (isNamedOnly && !(await hub.namedCommits(repoId, options)).has(commit))
    throw new HubError('E_UNKNOWN_REF', 'no-such-revision', `no branch or tag of ${repoId} names ${commit}`)
  return { repoId, commit, files: keptOf(listing) }
}

/** The files that an import would keep, under the hub's names. */
function keptOf({ repoId, files }: HubListing): ListedFile[] {
  const names = normalisedNames(files.map(({ path }) => path))
  const upstream = new Map(files.map((file) => [names.get(file.path)!, file]))
  const recognition = recognise([...upstream].map(([name, { sizeBytes }]) => ({ name, sizeBytes })))
  // a client would believe the files beside the weights to be all
  requireImportable(recognition)
  const { entries, uses } = recognition
  const weights = new Set(entries.filter(({ kind }) => kind.startsWith('weights.')).map(({ name }) => name))
  const kept: ListedFile[] = []
  for (const [name, use] of uses) {
    if (use.use === 'skip') continue
    const { path, sizeBytes, sha256, gitBlobSha1 } = upstream.get(name)!
    const isWeights = use.use === 'entry' && weights.has(use.entry)
    kept.push({ name: path, sizeBytes, sha256, gitBlobSha1, isWeights })
    if (kept.length > MAX_KEPT_FILES)
      throw new HubError('E_NOT_IMPORTABLE', 'bad-listing', `${repoId} has more than ${MAX_KEPT_FILES} files of models`)
  }
  return kept
}

yieldToOthers(RECOGNITION_NICE)

serveCalls<ListingTasks>({ list }, { errors: listingErrors })
