import type { DiskBlobStore } from '@svc/cas'
import type { Inventory } from '@svc/client/protocol'
import { yieldToEventLoop } from '@svc/internal-concurrency'
import type { ModelIndex } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import type { Documents } from './documents.ts'
import type { Members } from './members.ts'
import type { Repos } from './repos.ts'
import { stampOf } from './stamp.ts'

const INVENTORY_NOTE = 'a skeleton inventory: names, quants and tags; ask /v1/open for the blobs of one model'

/** After this much time the walk yields to other requests. */
const SLICE_MS = 2

export interface InventoryDeps {
  readonly repos: Repos
  readonly documents: Documents
  readonly store: DiskBlobStore
  readonly members: Members
}

/** GET /v1/models (spec route.26), sorted by name. @throws CorruptStateError when a state file is unreadable. */
export async function inventory({ repos, documents, store, members }: InventoryDeps): Promise<Inventory> {
  const quarantined = await members.quarantined()
  const namespaces: Inventory['namespaces'] = []
  const tags: Inventory['tags'] = []
  let sliceEnd = performance.now() + SLICE_MS
  for (const ns of await repos.namespaces()) {
    for (const name of await repos.names(ns)) {
      const state = repos.cached(ns, name) ?? (await repos.read(ns, name))
      if (state === undefined) continue
      if (state.index !== undefined) {
        const { indexPresent, index } = await presenceOf(state.index, documents, store)
        const quants = index.members.map((member) => member.quant)
        const listed = await members.of(index, quarantined)
        namespaces.push({ ns, name, indexDigest: state.index, indexPresent, quants, members: listed })
      }
      for (const [tag, digest] of [...state.tags].sort(([a], [b]) => (a < b ? -1 : 1))) {
        tags.push({ repo: `${ns}/${name}`, tag, digest, blobPresent: stampOf(store.blobPath(digest)) !== undefined })
      }
      if (performance.now() > sliceEnd) {
        await yieldToEventLoop()
        sliceEnd = performance.now() + SLICE_MS
      }
    }
  }
  return { skeleton: true, note: INVENTORY_NOTE, namespaces, tags }
}

interface Presence {
  readonly indexPresent: boolean
  readonly index: Pick<ModelIndex, 'members'>
}

async function presenceOf(digest: Sha256Digest, documents: Documents, store: DiskBlobStore): Promise<Presence> {
  const cached = documents.cachedIndex(digest)
  if (cached !== undefined) return { indexPresent: true, index: cached }
  try {
    return { indexPresent: true, index: await documents.index(digest, { scan: true }) }
  } catch (error) {
    if (!(error instanceof DaemonError)) throw error
    // absent or invalid: the inventory omits its members, resolve reports the error
    return { indexPresent: stampOf(store.blobPath(digest)) !== undefined, index: { members: [] } }
  }
}
