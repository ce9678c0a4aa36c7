import { compareText, isFileQuant, QUANT_MAX_CHARS } from '@svc/ref'
import { ClassifyError } from './errors.ts'
import type { GgufIdentityFound } from './gguf-identity.ts'
import { baseOf, folderOf } from './names.ts'
import { ggufModelName, quantTokenAtEnd, stemOf } from './quant.ts'
import { baseForRole, type GgufRole, ggufNameOf, joinedName, roleOf, roleOfName } from './roles.ts'
import { parseShardName, shardFromZero } from './shards.ts'

const GGUF = '.gguf'
const MAX_STEPS = 8

/**
 * Words that name a quant wherever they stand in a name: types of llama.cpp and of programs near it, with a suffix of
 * letters as its tools write it (`q4_k_xl`). Shorter tokens (`q4`, `f5`) count only at the end.
 */
const KNOWN_WORD =
  /(?<![a-z0-9])(?:(?:mx|nv)fp[468]_moe(?![a-z])|(?:ud-)?(?:q[1-8]_[01](?:_[48]_[48])?|q[2-8]_k|iq[1-4]_(?:xxs|xs|s|m|nl)|tq[12]_0|pq[1-8]_[01]|i2_s|(?:mx|nv)fp[468]|bf16|fp?16|fp?32|fp8)(?:_[a-z]+)?(?![a-z0-9]))/g

/**
 * The name that an import with `names: "normalized"` uses (spec add.2). The base name of a `*.gguf` is lower-cased, begins with
 * the word of its role unless it is a model (spec rec.26), and ends with its quant, behind a dash: the name's known word, wherever it
 * stands, else the folder's, else the header's. A shard suffix stays at the end. Folders and other files keep their names.
 * Idempotent.
 *
 * `Model-7B.Q4_K_M-00001-of-00002.gguf` becomes `model-7b-q4_k_m-00001-of-00002.gguf`, `X.mmproj-f16.gguf` becomes
 * `mmproj-x-f16.gguf`.
 * @param head the file's header, or that of the first part of its set; without it the name alone decides
 */
export function normalizedName(name: string, head?: GgufIdentityFound): string {
  if (!name.endsWith(GGUF)) return name
  let last = name
  // a word that is moved may leave another one first or last
  for (let steps = 0; steps < MAX_STEPS; steps++) {
    const next = fittedName(last, head)
    if (next === last) break
    last = next
  }
  return last
}

/** The words of one name in their places. */
function fittedName(name: string, head: GgufIdentityFound | undefined): string {
  const stem = baseOf(name).slice(0, -GGUF.length).toLowerCase()
  const base = parseShardName(stem)?.base ?? stem
  const listed = ggufNameOf(name, base)
  const role = roleOf(listed, head)
  const told = baseForRole(listed, role, head)
  const fitted = hasQuant(role) ? withQuantLast(told, listed.folder, head) : told
  return `${folderOf(name)}${fitted}${stem.slice(base.length)}${GGUF}`
}

const hasQuant = (role: GgufRole): boolean => role !== 'imatrix' && role !== 'vocabulary'

/** Whether the name of a GGUF, or its folder's, tells its quant, so that its header need not. */
function namesQuant(name: string): boolean {
  const { folder, base } = ggufNameOf(name, stemOf(name))
  return quantAtEnd(base) !== undefined || lastWord(base) !== undefined || folderQuant(folder) !== undefined
}

function withQuantLast(base: string, folder: string, head: GgufIdentityFound | undefined): string {
  const end = quantAtEnd(base)
  if (end !== undefined) return end === 0 ? base : `${base.slice(0, end - 1)}-${base.slice(end)}`
  const word = lastWord(base)
  if (word !== undefined) {
    const rest = joinedName(base.slice(0, word.at), base.slice(word.at + word.quant.length))
    return rest === '' ? word.quant : `${rest}-${word.quant}`
  }
  const told = folderQuant(folder) ?? (head?.format === 'gguf' ? head.quant : undefined)
  return told === undefined ? base : `${base}-${told}`
}

/** Digits behind `_moe` count something else, though the grammar takes them. */
const isQuant = (text: string): boolean => isFileQuant(text) && !/_moe[0-9]+$/.test(text)

/** Where the quant at the end of a base name begins: behind a dash, else behind the `.` or `_` with the longest one. */
function quantAtEnd(base: string): number | undefined {
  const token = quantTokenAtEnd(base, isQuant)
  if (token !== undefined) return base.length - token.length
  for (let at = Math.max(0, base.length - QUANT_MAX_CHARS - 1); at < base.length; at++)
    if ((base[at] === '.' || base[at] === '_') && isQuant(base.slice(at + 1))) return at + 1
  return undefined
}

/** The last known word of a name. */
function lastWord(base: string): { readonly at: number; readonly quant: string } | undefined {
  const found = [...base.matchAll(KNOWN_WORD)].at(-1)
  return found && { at: found.index, quant: found[0] }
}

/** The quant that a folder is named after, the innermost first. */
function folderQuant(folder: string): string | undefined {
  for (const part of folder.split('/').reverse()) {
    const quant = isFileQuant(part) ? part : lastWord(part)?.quant
    if (quant !== undefined) return quant
  }
  return undefined
}

/**
 * {@link normalizedName} for a whole listing: maps each upstream name to the name to import it under.
 * @param heads headers by upstream name, those that could be read; of a set, its first part's
 * @throws ClassifyError `E_NOT_IMPORTABLE` when two files would get the same name (spec add.3), naming both; the
 *   listing's order does not affect which pair is reported
 */
export function normalizedNames(
  names: Iterable<string>,
  heads: ReadonlyMap<string, GgufIdentityFound> = new Map()
): ReadonlyMap<string, string> {
  const result = new Map<string, string>()
  const taken = new Map<string, string>()
  const sorted = [...names].sort(compareText)
  const ofSet = new Map<string, GgufIdentityFound>()
  for (const [name, head] of heads) ofSet.set(setOf(name), head)
  for (const name of sorted) {
    const normalized = normalizedName(name, ofSet.get(setOf(name)))
    // equal in NFC: the check of a listing treats such names as equal, and a file system may, too
    const key = normalized.normalize('NFC')
    const other = taken.get(key)
    if (other !== undefined && other !== name)
      throw new ClassifyError(
        'E_NOT_IMPORTABLE',
        `${JSON.stringify(other)} and ${JSON.stringify(name)} would both be named ${JSON.stringify(normalized)}; ` +
          'import them under their own names, or choose one of them',
        { name, reason: 'same-normalized-name' }
      )
    taken.set(key, name)
    result.set(name, normalized)
  }
  return result
}

/** The set that a file belongs to, whatever the case of its name; its own name if it is no part of one. */
const setOf = (name: string): string => shardFromZero(name.toLowerCase())?.group ?? name

/** Words of names that only a header explains: adapters, and parts of models. */
const IN_DOUBT =
  /(?<![a-z0-9])(?:adapter|assistant|clip|draft(?:er)?|dspark|dflash|eagle3?|encoder|lora|projector|vision|vit|vocoder)(?![a-z0-9])/

/**
 * The GGUFs whose headers {@link normalizedNames} asks for, and whether it needs their quant: each file, or the first part
 * of a set, whose name does not settle its role and quant. Names without a known quant come first; at most `most`.
 */
export function headsToRead(
  names: Iterable<string>,
  most: number
): readonly { readonly name: string; readonly quant: boolean }[] {
  const firsts = new Map<string, string>()
  for (const name of [...names].sort(compareText))
    if (name.endsWith(GGUF) && !firsts.has(setOf(name))) firsts.set(setOf(name), name)
  const files = [...firsts.values()].map((name) => {
    const listed = ggufNameOf(name, stemOf(name))
    return { name, quant: !namesQuant(name), isModel: roleOfName(listed) === 'model', base: listed.base }
  })
  const models = new Set(files.filter(({ isModel }) => isModel).map(({ name }) => ggufModelName(normalizedName(name))))
  return files
    .filter(({ quant, isModel, base }) => quant || IN_DOUBT.test(base) || (isModel && models.size > 1))
    .sort((a, b) => Number(b.quant) - Number(a.quant) || compareText(a.name, b.name))
    .slice(0, most)
    .map(({ name, quant }) => ({ name, quant }))
}
