import type { DamagedRecord, Inventory, NamespaceEntry, TagEntry } from '@svc/client/protocol'
import { type ListingDeps, listNamed } from '@svc/library/parts'
import type { DeepReadonly } from '../deep-readonly.ts'

const NOTE = 'a skeleton inventory: names, quants and tags; ask /v1/open for the blobs of one model'
/** Text becomes bytes in pieces of this many characters, so that no turn of the event loop is long. */
const PIECE_CHARACTERS = 256 << 10

/**
 * The JSON text of an {@link Inventory} (spec route.26), in pieces. Each entry becomes text at once, so that a list of tens of
 * thousands does not fill the heap with objects. Records that cannot be read are listed as damaged instead.
 */
export async function inventoryText(deps: ListingDeps): Promise<readonly Uint8Array[]> {
  const head: Pick<Inventory, 'skeleton' | 'note'> = { skeleton: true, note: NOTE }
  const pieces: Uint8Array[] = []
  let text = `${JSON.stringify(head).slice(0, -1)},"namespaces":[`
  let comma = ''
  const tags: DeepReadonly<TagEntry>[] = []
  const damaged = new Map<string, DamagedRecord>()
  for await (const named of listNamed(deps, ({ file, what }) => void damaged.set(file, { file, what }))) {
    tags.push(...named.tags)
    if (named.model === undefined) continue
    text += comma + JSON.stringify(named.model satisfies DeepReadonly<NamespaceEntry>)
    comma = ','
    if (text.length < PIECE_CHARACTERS) continue
    pieces.push(Buffer.from(text))
    text = ''
  }
  const more = damaged.size === 0 ? '' : `,"damaged":${JSON.stringify([...damaged.values()])}`
  pieces.push(Buffer.from(`${text}],"tags":${JSON.stringify(tags)}${more}}`))
  return pieces
}
