import type { DiskBlobStore } from '@svc/cas'
import type { DamagedRecord, Inventory, NamespaceEntry, TagEntry } from '@svc/client/protocol'
import { loopBudget } from '@svc/internal-concurrency'
import type { ModelIndex } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import type { Artifacts } from './artifacts.ts'
import type { Documents } from './documents.ts'
import type { Members } from './members.ts'
import { Present } from './present.ts'
import type { RepoState, Repos } from './repos.ts'
import { stampOf } from './stamp.ts'
import { readable, type UnreadableStateError } from './strict.ts'

const INVENTORY_NOTE = 'a skeleton inventory: names, quants and tags; ask /v1/open for the blobs of one model'

export interface InventoryDeps {
  readonly repos: Repos
  readonly artifacts: Artifacts
  readonly documents: Documents
  readonly store: DiskBlobStore
  readonly members: Members
}

/**
 * GET /v1/models (spec route.26), sorted by name: the JSON text of an {@link Inventory}, in pieces. Each entry becomes text at once, so that a list of
 * tens of thousands neither fills the heap with objects nor is put together in one long turn; what is in memory or in the page cache is taken without a
 * promise. Records that cannot be read are listed as damaged instead. @throws the system's error when the state cannot be read
 */
export async function inventoryText(deps: InventoryDeps): Promise<readonly Uint8Array[]> {
  const { repos, artifacts, members, store } = deps
  const quarantined = await members.quarantined()
  const { skeleton, note }: Pick<Inventory, 'skeleton' | 'note'> = { skeleton: true, note: INVENTORY_NOTE }
  const text = new TextPieces(`{"skeleton":${skeleton},"note":${JSON.stringify(note)},"namespaces":[`)
  const tags: string[] = []
  const damaged = new Map<string, DamagedRecord>()
  const onUnreadable = ({ file, what }: UnreadableStateError): void => void damaged.set(file, { file, what })
  const present = new Present(store, () => repos.changes + artifacts.changes, members.folders)
  for await (const { ns, names } of folders(repos)) {
    for (const name of names) {
      const state = repos.now(ns, name) ?? (await readable(() => repos.read(ns, name), onUnreadable))
      if (state === undefined) continue
      if (state.index !== undefined) {
        const presence = indexPresenceNow(state.index, deps) ?? (await indexPresenceOf(state.index, deps))
        const listed = members.of(`${ns}/${name}`, presence.index, quarantined, { present, onUnreadable })
        const entry = entryOf(ns, name, state.index, presence, Array.isArray(listed) ? listed : await listed)
        text.add(JSON.stringify(entry))
      }
      if (state.tags.size > 0) tags.push(...tagsOf(ns, name, state, deps).map((tag) => JSON.stringify(tag)))
      if (loopBudget.isOver('lists')) {
        text.cut()
        await present.read()
        await loopBudget.next('lists')
      }
    }
  }
  const more = damaged.size === 0 ? '' : `,"damaged":${JSON.stringify([...damaged.values()])}`
  return text.end(`],"tags":[${tags.join(',')}]${more}}`)
}

/** Namespaces with their names, each read while the one before it is looked at. */
async function* folders(repos: Repos): AsyncGenerator<{ readonly ns: string; readonly names: readonly string[] }> {
  const all = await repos.namespaces()
  const read = (ns: string | undefined): Promise<readonly string[]> | undefined => {
    const names = ns === undefined ? undefined : repos.names(ns)
    // it is thrown where it is awaited, if the walk gets there
    names?.catch(() => undefined)
    return names
  }
  let next = read(all[0])
  for (const [i, ns] of all.entries()) {
    const names = await next!
    next = read(all[i + 1])
    yield { ns, names }
  }
}

/** The elements of a JSON array, as pieces of text. */
class TextPieces {
  readonly #pieces: Uint8Array[] = []
  #begin: string
  #waiting: string[] = []
  #isFirst = true

  constructor(begin: string) {
    this.#begin = begin
  }

  add(element: string): void {
    this.#waiting.push(element)
  }

  cut(): void {
    if (this.#waiting.length === 0) return
    const comma = this.#isFirst ? '' : ','
    this.#pieces.push(Buffer.from(`${this.#begin}${comma}${this.#waiting.join(',')}`))
    this.#begin = ''
    this.#waiting = []
    this.#isFirst = false
  }

  end(text: string): readonly Uint8Array[] {
    this.cut()
    this.#pieces.push(Buffer.from(this.#begin + text))
    return this.#pieces
  }
}

const entryOf = (
  ns: string,
  name: string,
  indexDigest: Sha256Digest,
  { indexPresent, index }: IndexPresence,
  members: NamespaceEntry['members']
): NamespaceEntry => ({
  ns,
  name,
  indexDigest,
  indexPresent,
  quants: index.members.map(({ quant }) => quant),
  members
})

const tagsOf = (ns: string, name: string, { tags }: RepoState, { store }: InventoryDeps): TagEntry[] =>
  [...tags]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([tag, digest]) => ({
      repo: `${ns}/${name}`,
      tag,
      digest,
      blobPresent: stampOf(store.blobPath(digest)) !== undefined
    }))

interface IndexPresence {
  readonly indexPresent: boolean
  readonly index: Pick<ModelIndex, 'members'>
}

function indexPresenceNow(digest: Sha256Digest, { documents }: InventoryDeps): IndexPresence | undefined {
  const index = documents.indexNow(digest)
  return index && { indexPresent: true, index }
}

async function indexPresenceOf(digest: Sha256Digest, { documents, store }: InventoryDeps): Promise<IndexPresence> {
  try {
    return { indexPresent: true, index: await documents.index(digest, { scan: true }) }
  } catch (error) {
    if (!(error instanceof DaemonError)) throw error
    // absent or invalid: the inventory omits its members, resolve reports the error
    return { indexPresent: stampOf(store.blobPath(digest)) !== undefined, index: { members: [] } }
  }
}
