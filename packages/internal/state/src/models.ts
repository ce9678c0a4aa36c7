import type { DamagedRecord, Inventory, NamespaceEntry, TagEntry } from '@svc/client/protocol'
import type { ModelIndex } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { LibraryError } from './library-error.ts'
import type { Members } from './members.ts'
import { stampOf } from './stamp.ts'
import type { StoreState } from './state.ts'
import type { UnreadableStateError } from './strict.ts'
import { tagEntries } from './tags.ts'

const INVENTORY_NOTE = 'a skeleton inventory: names, quants and tags; ask /v1/open for the blobs of one model'

export interface InventoryDeps extends Pick<StoreState, 'repos' | 'documents' | 'store'> {
  readonly members: Members
}

/** Text becomes bytes in pieces of this many characters, so that no turn of the event loop is long. */
const PIECE_CHARACTERS = 256 << 10

/**
 * GET /v1/models (spec route.26), sorted by name: the JSON text of an {@link Inventory}, in pieces. Each entry becomes
 * text at once, so that a list of tens of thousands does not fill the heap with objects. Records that cannot be read are
 * listed as damaged instead. @throws the system's error when the state cannot be read
 */
export async function inventoryText(deps: InventoryDeps): Promise<readonly Uint8Array[]> {
  const { repos, members, store } = deps
  const quarantined = await members.quarantined()
  const { skeleton, note }: Pick<Inventory, 'skeleton' | 'note'> = { skeleton: true, note: INVENTORY_NOTE }
  const pieces: Uint8Array[] = []
  let text = `{"skeleton":${skeleton},"note":${JSON.stringify(note)},"namespaces":[`
  let comma = ''
  const allTags: TagEntry[] = []
  const damaged = new Map<string, DamagedRecord>()
  const onUnreadable = ({ file, what }: UnreadableStateError): void => void damaged.set(file, { file, what })
  for await (const { ns, name, state } of repos.list(onUnreadable)) {
    const repo = `${ns}/${name}`
    if (state.index !== undefined) {
      const { indexPresent, index } = await indexOf(state.index, deps)
      const entry: NamespaceEntry = {
        ns,
        name,
        indexDigest: state.index,
        indexPresent,
        quants: index.members.map(({ quant }) => quant),
        members: await members.of(repo, index, quarantined, onUnreadable)
      }
      text += comma + JSON.stringify(entry)
      comma = ','
    }
    allTags.push(...tagEntries(repo, state, store))
    if (text.length < PIECE_CHARACTERS) continue
    pieces.push(Buffer.from(text))
    text = ''
  }
  const more = damaged.size === 0 ? '' : `,"damaged":${JSON.stringify([...damaged.values()])}`
  pieces.push(Buffer.from(`${text}],"tags":${JSON.stringify(allTags)}${more}}`))
  return pieces
}

async function indexOf(
  digest: Sha256Digest,
  { documents, store }: InventoryDeps
): Promise<{ readonly indexPresent: boolean; readonly index: Pick<ModelIndex, 'members'> }> {
  try {
    return { indexPresent: true, index: await documents.index(digest, { scan: true }) }
  } catch (error) {
    if (!(error instanceof LibraryError)) throw error
    // absent or invalid: the inventory omits its members, resolve reports the error
    return { indexPresent: stampOf(store.blobPath(digest)) !== undefined, index: { members: [] } }
  }
}
