import { isFileQuant } from '@svc/ref'
import { ClassifyError } from './errors.ts'
import type { GgufIdentity } from './gguf-identity.ts'
import { normalizedName, normalizedNames } from './normalize.ts'
import { quantTokenAtEnd, stemOf } from './quant.ts'
import { type GgufName, type GgufRole, ggufNameOf, roleOfName } from './roles.ts'

/** Different headers that the names of one folder can tell of; a model has one quant, a projector and a draft head. */
const MAX_HEADS = 64
/** Names tried: the signer's list may be as long as a stranger likes. */
const MAX_TRIES = 4_096

/**
 * The name here of each upstream file, for whoever has no header: the normalized name, or the one among `here` that a
 * header gave it (spec rec.26). The names of `here` tell which headers these can be; whether the bytes are the same is
 * for the caller to compare.
 */
export function namesHere(upstream: readonly string[], here: readonly string[]): (path: string) => string {
  const isHere = new Set(here)
  const heads = headsTold(here)
  const found = new Map<string, GgufIdentity>()
  let tries = MAX_TRIES
  for (const path of upstream) {
    if (!path.endsWith('.gguf') || isHere.has(path) || isHere.has(normalizedName(path))) continue
    const head = heads.find((each) => tries-- > 0 && isHere.has(normalizedName(path, each)))
    if (head !== undefined) found.set(path, head)
  }
  const names = namesOf(upstream, found)
  return (path) => names.get(path) ?? normalizedName(path)
}

/** Parts of a set share a header. */
function namesOf(upstream: readonly string[], heads: ReadonlyMap<string, GgufIdentity>): ReadonlyMap<string, string> {
  try {
    return normalizedNames(upstream, heads)
  } catch (error) {
    // two of them would have one name: an import refuses them as well
    if (!(error instanceof ClassifyError)) throw error
    return new Map()
  }
}

function headsTold(here: readonly string[]): readonly GgufIdentity[] {
  const heads = new Map<string, GgufIdentity>()
  for (const name of here) {
    if (!name.endsWith('.gguf') || heads.size === MAX_HEADS) continue
    const stem = stemOf(name)
    const quant = quantTokenAtEnd(stem, isFileQuant)
    const listed = ggufNameOf(name, stem)
    const role = roleOfName(listed)
    const head = {
      format: 'gguf',
      tensorCount: 1,
      ...headOf(role, listed),
      ...(quant !== undefined && { quant })
    } as const
    heads.set(JSON.stringify(head), head)
  }
  return [...heads.values()]
}

const TYPES: Readonly<Record<Exclude<GgufRole, 'draft'>, string>> = {
  model: 'model',
  'vision-projector': 'mmproj',
  adapter: 'adapter',
  imatrix: 'imatrix',
  vocabulary: 'vocab'
}

/** What a header says of a role. A draft head's name begins with its kind, as its architecture ends. */
const headOf = (role: GgufRole, { base }: GgufName): Pick<GgufIdentity, 'type' | 'architecture'> =>
  role === 'draft' ? { architecture: `llama-${base.split(/[-._]/, 1)[0]}` } : { type: TYPES[role] }
