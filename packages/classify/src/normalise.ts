import { compareText, isQuantToken, QUANT_MAX_CHARS } from '@svc/ref'
import { ClassifyError } from './errors.ts'
import { baseOf, folderOf } from './names.ts'
import { quantTokenAtEnd } from './quant.ts'
import { parseShardName } from './shards.ts'

const GGUF = '.gguf'

/**
 * The name that an import with `names: "normalized"` uses (spec add.2). The base name of a `*.gguf` is lower-cased. If
 * no dash-separated suffix of it is quant syntax, but the longest suffix after a `.` or `_` is, that separator becomes
 * a dash. A shard suffix stays at the end. Folders and other files keep their names. Idempotent.
 *
 * `Model-7B.Q4_K_M-00001-of-00002.gguf` becomes `model-7b-q4_k_m-00001-of-00002.gguf`.
 */
export function normalisedName(name: string): string {
  if (!name.endsWith(GGUF)) return name
  const stem = baseOf(name).slice(0, -GGUF.length).toLowerCase()
  const base = parseShardName(stem)?.base ?? stem
  const separator = quantTokenAtEnd(base) === undefined ? separatorOfQuant(base) : undefined
  const fitted = separator === undefined ? base : `${base.slice(0, separator)}-${base.slice(separator + 1)}`
  return `${folderOf(name)}${fitted}${stem.slice(base.length)}${GGUF}`
}

/** The position of the `.` or `_` before the longest suffix that is a quant token. */
function separatorOfQuant(base: string): number | undefined {
  for (let at = Math.max(0, base.length - QUANT_MAX_CHARS - 1); at < base.length; at++)
    if ((base[at] === '.' || base[at] === '_') && isQuantToken(base.slice(at + 1))) return at
  return undefined
}

/**
 * {@link normalisedName} for a whole listing: maps each upstream name to the name to import it under.
 * @throws ClassifyError `E_NOT_IMPORTABLE` when two files would get the same name (spec add.3), naming both; the
 *   listing's order does not affect which pair is reported
 */
export function normalisedNames(names: Iterable<string>): ReadonlyMap<string, string> {
  const result = new Map<string, string>()
  const taken = new Map<string, string>()
  for (const name of [...names].sort(compareText)) {
    const normalised = normalisedName(name)
    // equal in NFC: the check of a listing treats such names as equal, and a file system may, too
    const key = normalised.normalize('NFC')
    const other = taken.get(key)
    if (other !== undefined && other !== name)
      throw new ClassifyError(
        'E_NOT_IMPORTABLE',
        `${JSON.stringify(other)} and ${JSON.stringify(name)} would both be named ${JSON.stringify(normalised)}; ` +
          'import them under their own names, or choose one of them',
        { name, reason: 'same-normalised-name' }
      )
    taken.set(key, name)
    result.set(name, normalised)
  }
  return result
}
