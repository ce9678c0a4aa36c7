import { isQuant } from '@svc/ref'
import { parseCanonical, sealDocument } from './canonical.ts'
import type { ManifestErrorCode } from './errors.ts'
import { FieldReader } from './field.ts'
import type { IndexMember, ModelIndex, Sealed } from './types.ts'

function checkIndex(value: unknown, code: ManifestErrorCode): ModelIndex {
  const read = new FieldReader(code)
  const document = read.object(value, 'the index')
  read.constant(document.schemaVersion, 'schemaVersion', 1)
  read.constant(document.artifactType, 'artifactType', 'model-index')
  const members = read.array(document.members, 'members')
  if (members.length === 0) read.fail('members-empty', 'an index must have at least one member')
  let previous: string | undefined
  for (const [i, item] of members.entries()) {
    const member = read.object(item, `members[${i}]`)
    const quant = read.text(member.quant, `members[${i}].quant`)
    if (!isQuant(quant)) read.fail('quant', `${JSON.stringify(quant)} is not a quant`, { quant })
    read.digest(member.manifest, `members[${i}].manifest`)
    read.digest(member.distribution, `members[${i}].distribution`)
    if (previous === quant) read.fail('quant-duplicate', `${quant}: the quant occurs twice`, { quant })
    if (previous !== undefined && previous > quant)
      read.fail('member-order', 'members must be sorted by quant', { quant })
    previous = quant
  }
  return value as ModelIndex
}

// Quants are ASCII, so code unit order is byte order.
const byQuant = (a: IndexMember, b: IndexMember): number => (a.quant < b.quant ? -1 : a.quant > b.quant ? 1 : 0)

const plainMember = ({ quant, manifest, distribution }: IndexMember): IndexMember => ({ quant, manifest, distribution })

/**
 * Seals an index (spec doc.12, doc.13): members in any order, at least one, quants unique.
 * @throws ManifestError `E_INVALID`: `members-empty`, `quant`, `quant-duplicate`, `field`.
 */
export function sealIndex(members: readonly IndexMember[]): Sealed<ModelIndex> {
  const document = {
    schemaVersion: 1,
    artifactType: 'model-index',
    members: members.map(plainMember).sort(byQuant)
  }
  return sealDocument(checkIndex(document, 'E_INVALID'))
}

/**
 * The index after an import into a name (spec doc.14): new members replace those of the same quant; all other members
 * and unknown fields of the previous index are kept. @throws ManifestError `E_INVALID` as {@link sealIndex}.
 */
export function mergeIndex(previous: ModelIndex | undefined, members: readonly IndexMember[]): Sealed<ModelIndex> {
  if (previous === undefined) return sealIndex(members)
  const replaced = new Set(members.map((member) => member.quant))
  const kept = previous.members.filter((member) => !replaced.has(member.quant))
  const document = { ...previous, members: [...kept, ...members.map(plainMember)].sort(byQuant) }
  return sealDocument(checkIndex(document, 'E_INVALID'))
}

/**
 * The index without some of its members. At least one has to remain. Unknown fields of the index and of its members are
 * kept.
 * @throws ManifestError `E_INVALID` as {@link sealIndex}.
 */
export function shrinkIndex(previous: ModelIndex, isGone: (member: IndexMember) => boolean): Sealed<ModelIndex> {
  const document = { ...previous, members: previous.members.filter((member) => !isGone(member)) }
  return sealDocument(checkIndex(document, 'E_INVALID'))
}

/** Parses the bytes of an index strictly; unknown fields are kept. @throws ManifestError `E_CORRUPTION`. */
export function parseIndex(bytes: Uint8Array): ModelIndex {
  return checkIndex(parseCanonical(bytes), 'E_CORRUPTION')
}
