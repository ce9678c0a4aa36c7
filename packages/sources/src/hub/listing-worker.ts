import { workerData } from 'node:worker_threads'
import { normalizedNames, recognize, requireImportable } from '@svc/classify'
import { createHub, HubError, type HubFile, type HubListing } from '@svc/hub'
import { type CallContext, RECOGNITION_NICE, serveCalls, yieldToOthers } from '@svc/internal-workers'
import type { UpstreamFile } from '@svc/library/parts'
import { probeAccess } from './access-probe.ts'
import {
  encodeListingError,
  type ListingRequest,
  type ListingTasks,
  MAX_KEPT_FILES,
  MAX_LEFT_OUT,
  MAX_SMALL_BYTES,
  type StrangerListing,
  type ThreadHub
} from './listing-task.ts'

const hub = createHub(workerData as ThreadHub)

async function list(
  { repo, revision, isNamedOnly }: ListingRequest,
  { progress: onBytes }: CallContext<number>
): Promise<StrangerListing> {
  const options = { maxRateWaitMs: 60_000, onBytes }
  const listing = await hub.listing(repo, revision, options)
  const { repoId, commit } = listing
  if (listing.restricted)
    throw new HubError('E_SOURCE_FORBIDDEN', 'gated', `${repoId} is private or gated: no mirror serves it`)
  await probeAccess(hub, listing, options)
  if (isNamedOnly && !(await hub.namedCommits(repoId, options)).has(commit))
    throw new HubError('E_UNKNOWN_REF', 'no-such-revision', `no branch or tag of ${repoId} names ${commit}`)
  return { repoId, commit, ...keptOf(listing) }
}

/** The files that an import would take, and then those beside them that can be read alone, under the hub's names. */
function keptOf({
  repoId,
  files,
  leftOut: unlisted = 0
}: HubListing): Pick<StrangerListing, 'files' | 'leftOut' | 'more'> {
  const names = normalizedNames(files.map(({ path }) => path))
  const upstream = new Map(files.map((file) => [names.get(file.path)!, file]))
  const recognition = recognize(
    [...upstream].map(([name, { sizeBytes }]) => ({ name, sizeBytes })),
    'normalized'
  )
  // a client would take the files beside the weights for all of the model
  requireImportable(recognition)
  const { entries, uses } = recognition
  const weights = new Set(entries.filter(({ kind }) => kind.startsWith('weights.')).map(({ name }) => name))
  const kept: UpstreamFile[] = []
  const skipped: HubFile[] = []
  for (const [name, use] of uses) {
    const file = upstream.get(name)!
    if (use.use === 'skip') skipped.push(file)
    else kept.push(upstreamFile(file, use.use === 'entry' && weights.has(use.entry)))
  }
  if (kept.length > MAX_KEPT_FILES)
    throw new HubError('E_NOT_IMPORTABLE', 'bad-listing', `${repoId} has more than ${MAX_KEPT_FILES} model files`)
  const left: StrangerListing['leftOut'][number][] = []
  for (const file of skipped) {
    if (file.sizeBytes > MAX_SMALL_BYTES) left.push({ name: file.path, reason: 'large' })
    else if (kept.length === MAX_KEPT_FILES) left.push({ name: file.path, reason: 'many' })
    else kept.push(upstreamFile(file, false))
  }
  const leftOut = left.slice(0, MAX_LEFT_OUT)
  return { files: kept, leftOut, more: left.length - leftOut.length + unlisted }
}

const upstreamFile = ({ path: name, sizeBytes, sha256, gitBlobSha1 }: HubFile, isWeights: boolean): UpstreamFile => ({
  name,
  sizeBytes,
  sha256,
  gitBlobSha1,
  isLarge: isWeights || sizeBytes > MAX_SMALL_BYTES
})

yieldToOthers(RECOGNITION_NICE)

serveCalls<ListingTasks>({ list }, { errors: { encode: encodeListingError } })
