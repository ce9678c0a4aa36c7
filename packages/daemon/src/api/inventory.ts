import type { DamagedRecord, Inventory, NamespaceEntry, TagEntry } from '@svc/client/protocol'
import { type ListingDeps, listNamed } from '@svc/library/parts'
import type { RepoId } from '@svc/ref'
import type { DeepReadonly } from '../deep-readonly.ts'

const NOTE = 'a skeleton inventory: names, quants and tags; ask /v1/open for the blobs of one model'
/** Text becomes bytes in pieces of this many characters, so that no turn of the event loop is long. */
const PIECE_CHARACTERS = 256 << 10

/** A part of the inventory: at most `limit` names, those that come after one. */
export interface InventoryPage {
  readonly limit: number
  readonly after: RepoId | undefined
}

/**
 * The JSON text of an {@link Inventory} (spec route.26, add.64), in pieces. Each entry becomes text at once, so that a list of tens of
 * thousands does not fill the heap with objects. Records that cannot be read are listed as damaged instead.
 */
export async function inventoryText(deps: ListingDeps, page?: InventoryPage): Promise<readonly Uint8Array[]> {
  const head: Pick<Inventory, 'skeleton' | 'note'> = { skeleton: true, note: NOTE }
  const pieces: Uint8Array[] = []
  let text = `${JSON.stringify(head).slice(0, -1)},"namespaces":[`
  let comma = ''
  const tags: DeepReadonly<TagEntry>[] = []
  const damaged = new Map<string, DamagedRecord>()
  const onUnreadable: Parameters<typeof listNamed>[1] = ({ file, what }) => void damaged.set(file, { file, what })
  let last: string | undefined
  let next: string | undefined
  let left = page?.limit ?? Number.POSITIVE_INFINITY
  for await (const named of listNamed(deps, onUnreadable, page?.after)) {
    if (left === 0) {
      next = last
      break
    }
    tags.push(...named.tags)
    if (named.model === undefined) continue
    left--
    last = `${named.model.ns}/${named.model.name}`
    text += comma + JSON.stringify(named.model satisfies DeepReadonly<NamespaceEntry>)
    comma = ','
    if (text.length < PIECE_CHARACTERS) continue
    pieces.push(Buffer.from(text))
    text = ''
  }
  const rest: Pick<Inventory, 'next' | 'damaged'> = {
    ...(next !== undefined && { next }),
    ...(damaged.size > 0 && { damaged: [...damaged.values()] })
  }
  pieces.push(Buffer.from(`${text}],${JSON.stringify({ tags, ...rest }).slice(1)}`))
  return pieces
}
