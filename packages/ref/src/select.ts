import type { Sha256Digest } from './digest.ts'
import { RefError } from './errors.ts'
import { quote } from './length.ts'
import type { ModelRef } from './ref.ts'

/**
 * The fields of an index member that selection reads (spec doc.12, ref.19). `manifest` is needed only to check a pin.
 */
export interface SelectableMember {
  readonly quant: string
  readonly manifest?: Sha256Digest
}

/** The wanted quant or a prefix of it, and the pin of `:quant@digest`. Any {@link ModelRef} with a quant fits. */
export interface MemberSelector {
  readonly quant: string
  readonly digest?: Sha256Digest
}

/** The first few names, for a message. The error's `candidates` are complete. */
const some = (names: readonly string[]): string =>
  names.slice(0, 8).join(', ') + (names.length > 8 ? ` and ${names.length - 8} more` : '')

/**
 * Chooses one member: exact quant, else the only one with the prefix (spec ref.16).
 * @throws RefError `E_AMBIGUOUS_SELECTOR` (candidates: the matching quants), `E_NO_MEMBER` (candidates: all quants),
 * `E_PIN_MISMATCH` when the selected member's manifest is not the pinned one. Candidates are sorted by code unit.
 */
export function selectMember<M extends SelectableMember>(members: readonly M[], selector: string | MemberSelector): M {
  const { quant, digest } = typeof selector === 'string' ? { quant: selector, digest: undefined } : selector
  const member = members.find((each) => each.quant === quant) ?? onlyWithPrefix(members, quant)
  if (digest !== undefined && member.manifest !== digest) {
    throw new RefError(
      'pin-mismatch',
      `the quant ${quote(member.quant)} is ${
        member.manifest ?? 'of unknown digest'
      }, not the pinned ${digest}; drop the pin or use the digest form ns/name@sha256:…`
    )
  }
  return member
}

function onlyWithPrefix<M extends SelectableMember>(members: readonly M[], prefix: string): M {
  const matching = members.filter((member) => member.quant.startsWith(prefix))
  const [only] = matching
  if (only !== undefined && matching.length === 1) return only
  const candidates = (only === undefined ? members : matching).map((member) => member.quant).sort()
  throw only === undefined
    ? new RefError('no-member', `there is no quant ${quote(prefix)}; there is ${some(candidates) || 'none at all'}`, {
        candidates
      })
    : new RefError('ambiguous-selector', `${quote(prefix)} matches ${some(candidates)}; write one of them`, {
        candidates
      })
}

/** One repository's indexes: the current one and those that its tags name. `S` is an index or its digest. */
export interface RepoIndexes<S> {
  readonly current?: S | undefined
  readonly tags?: ReadonlyMap<string, S>
}

/**
 * The index that a reference selects from: the tag's when it has a tag, else the current one. Tags are looked up
 * verbatim and only in the repository given (spec ref.10).
 * @throws RefError `E_UNKNOWN_REF`, reason `unknown-tag` (candidates: the repository's tags) or `unknown-repo`.
 */
export function selectIndex<S>(repo: RepoIndexes<S>, ref: ModelRef): S {
  const id = { ns: ref.ns, name: ref.name }
  if (ref.tag === undefined) {
    if (repo.current !== undefined) return repo.current
    throw new RefError('unknown-repo', `nothing is stored under ${ref.ns}/${ref.name}; import it first`, { repo: id })
  }
  const tagged = repo.tags?.get(ref.tag)
  if (tagged !== undefined) return tagged
  const candidates = [...(repo.tags?.keys() ?? [])].sort()
  throw new RefError(
    'unknown-tag',
    `${ref.ns}/${ref.name} has no tag ${quote(ref.tag)}; tags belong to one repository${
      candidates.length === 0 ? ', and this one has none' : `, this one has ${some(candidates)}`
    }`,
    { candidates, repo: id }
  )
}
