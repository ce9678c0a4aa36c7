import { setImmediate as nextTurn } from 'node:timers/promises'
import type { DiskBlobStore } from '@svc/cas'
import type { Inventory } from '@svc/client/protocol'
import type { Sha256Digest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import type { Documents } from './documents.ts'
import type { Repos } from './repos.ts'
import { stampOf } from './stamp.ts'

const INVENTORY_NOTE = 'a skeleton inventory: names, quants and tags; ask /v1/open for the blobs of one model'

/** The walk yields to other requests after so much time on the loop. */
const SLICE_MS = 2

/** GET /v1/models (spec route.26), sorted by name. @throws CorruptStateError when a state file is unreadable. */
export async function inventory(repos: Repos, documents: Documents, store: DiskBlobStore): Promise<Inventory> {
  const namespaces: Inventory['namespaces'] = []
  const tags: Inventory['tags'] = []
  let sliceEnd = performance.now() + SLICE_MS
  for (const ns of await repos.namespaces()) {
    for (const name of await repos.names(ns)) {
      const state = repos.cached(ns, name) ?? (await repos.read(ns, name))
      if (state === undefined) continue
      // no await where everything is in memory: ten thousand of them are most of the time
      const { indexPresent, quants } =
        cachedMembers(state.index, documents) ?? (await membersOf(state.index, documents, store))
      namespaces.push({ ns, name, indexDigest: state.index, indexPresent, quants })
      for (const [tag, digest] of [...state.tags].sort(([a], [b]) => (a < b ? -1 : 1))) {
        tags.push({ repo: `${ns}/${name}`, tag, digest, blobPresent: stampOf(store.blobPath(digest)) !== undefined })
      }
      if (performance.now() > sliceEnd) {
        await nextTurn()
        sliceEnd = performance.now() + SLICE_MS
      }
    }
  }
  return { skeleton: true, note: INVENTORY_NOTE, namespaces, tags }
}

interface Members {
  readonly indexPresent: boolean
  readonly quants: string[]
}

function cachedMembers(digest: Sha256Digest, documents: Documents): Members | undefined {
  const index = documents.cachedIndex(digest)
  return index === undefined ? undefined : { indexPresent: true, quants: index.members.map((member) => member.quant) }
}

async function membersOf(digest: Sha256Digest, documents: Documents, store: DiskBlobStore): Promise<Members> {
  try {
    return { indexPresent: true, quants: (await documents.index(digest)).members.map((member) => member.quant) }
  } catch (error) {
    if (!(error instanceof DaemonError)) throw error
    // absent or invalid: the inventory says so by what it leaves out, resolve has the error
    return { indexPresent: stampOf(store.blobPath(digest)) !== undefined, quants: [] }
  }
}
