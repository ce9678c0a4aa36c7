import type { GgufIdentity, GgufIdentityFound } from './gguf-identity.ts'
import { baseOf, folderOf } from './names.ts'
import type { AuxRole } from './table.ts'

/** What a GGUF is to its model (spec rec.26). */
export type GgufRole = 'model' | 'vocabulary' | Exclude<AuxRole, 'weights-index'>

/** Kinds of draft heads, as their base names begin. */
const DRAFT_KINDS = 'mtp|eagle3|dflash|dspark'
const DRAFT_FIRST = new RegExp(`^(?:${DRAFT_KINDS})(?=[-._]|$)`)
/** `mtp` inside a name says that a model has prediction heads of its own. */
const DRAFT_WORD = /(?<![a-z0-9])(?:eagle3|dflash|dspark)(?![a-z0-9])/
const DRAFT_ARCHITECTURE = /^(?:eagle3?|dflash|dspark)(?:[-_.]|$)|[-_](?:draft|assistant|eagle3?|dflash|dspark|mtp)$/
/** A part of a name that tells the quant of a model; matrices are made from full precision. */
const QUANT_TRACE = /q[1-8]/
const VOCABULARY_FIRST = /^(?:ggml-)?vocab[-._]/
const ADAPTER_FIRST = /^lora[-._]/

/** A GGUF's folder, with its trailing slash, and its base name without extension and shard suffix, both in lower case. */
export interface GgufName {
  readonly folder: string
  readonly base: string
}

/** Roles by base names, the first that matches. */
const BASES: readonly (readonly [role: GgufRole, is: (base: string) => boolean])[] = [
  ['vision-projector', (base) => base.includes('mmproj')],
  ['imatrix', (base) => base.startsWith('imatrix') || (base.includes('imatrix') && !QUANT_TRACE.test(base))],
  ['draft', (base) => DRAFT_FIRST.test(base) || DRAFT_WORD.test(base)],
  ['vocabulary', (base) => VOCABULARY_FIRST.test(base)],
  ['adapter', (base) => ADAPTER_FIRST.test(base)]
]

/** What a GGUF is by its name alone: by its base name, else by its folders. */
export function roleOfName({ folder, base }: GgufName): GgufRole {
  const role = BASES.find(([, is]) => is(base))?.[0]
  if (role !== undefined) return role
  if (folder.includes('mmproj')) return 'vision-projector'
  return folderKind(folder) === undefined ? 'model' : 'draft'
}

const folderKind = (folder: string): string | undefined => folder.split('/').find((part) => KINDS.has(part))

const KINDS: ReadonlySet<string> = new Set(DRAFT_KINDS.split('|'))

/** Roles by headers, the first that matches. */
const HEADS: readonly (readonly [role: GgufRole, is: (head: GgufIdentity) => boolean])[] = [
  ['vision-projector', ({ type, architecture }) => type === 'mmproj' || architecture === 'clip'],
  ['adapter', ({ type }) => type === 'adapter'],
  ['imatrix', ({ type, architecture }) => type === 'imatrix' || architecture === 'imatrix'],
  ['vocabulary', ({ type }) => type === 'vocab'],
  [
    'vocabulary',
    ({ architecture, tensorCount, splitCount = 1 }) => architecture !== undefined && tensorCount === 0 && splitCount < 2
  ],
  ['draft', ({ architecture }) => architecture !== undefined && DRAFT_ARCHITECTURE.test(architecture)]
]

/** What a GGUF is: its header decides, and its name where the header says nothing. */
export function roleOf(name: GgufName, head: GgufIdentityFound | undefined): GgufRole {
  const byName = roleOfName(name)
  if (head?.format !== 'gguf') return byName
  const byHead = HEADS.find(([, is]) => is(head))?.[0]
  if (byHead !== undefined) return byHead
  // files of before `general.type`: only a projector has the architecture clip, and a matrix has none
  if (head.type === undefined && (head.architecture === undefined || byName !== 'imatrix')) return byName
  // heads that predict several tokens have the architecture of their model
  return DRAFT_FIRST.test(name.base) || folderKind(name.folder) !== undefined ? 'draft' : 'model'
}

/** The base name that tells its role by itself, so that {@link roleOfName} of it is `role`. */
export function baseForRole(name: GgufName, role: GgufRole, head: GgufIdentityFound | undefined): string {
  const { folder, base } = name
  const isNamed = roleOfName(name) === role
  if (role === 'vision-projector' && base.startsWith('mmproj')) return base
  if (role === 'vision-projector' && isNamed) return first('mmproj', without(base, /mmproj/))
  if (role === 'draft' && isNamed) {
    if (DRAFT_FIRST.test(base)) return base
    return first(DRAFT_WORD.exec(base)?.[0] ?? folderKind(folder)!, without(base, DRAFT_WORD))
  }
  if (isNamed) return base
  const plain = asModel(base)
  return role === 'model' ? plain : first(role === 'draft' ? kindOfArchitecture(head) : FIRST_WORDS[role], plain)
}

const FIRST_WORDS = { 'vision-projector': 'mmproj', imatrix: 'imatrix', vocabulary: 'vocab', adapter: 'lora' } as const

const kindOfArchitecture = (head: GgufIdentityFound | undefined): string =>
  [...KINDS].find((kind) => head?.format === 'gguf' && head.architecture?.includes(kind)) ?? 'mtp'

const first = (word: string, rest: string): string => (rest === '' ? word : `${word}-${rest}`)

/** A name without a word and the separator before it. */
function without(base: string, word: RegExp): string {
  const found = word.exec(base)
  if (found === null) return base
  return joinedName(base.slice(0, found.index), base.slice(found.index + found[0].length))
}

/** Two parts of a name with one separator between them. */
export function joinedName(before: string, after: string): string {
  const head = before.replace(/[-._ ]$/, '')
  if (head === '') return after.replace(/^[-._ ]/, '')
  return after === '' || /^[-._ ]/.test(after) ? head + after : `${head}-${after}`
}

/** Words that claim another role than the header's are spelled so that they no longer do. */
const asModel = (base: string): string =>
  base
    .replaceAll('mmproj', 'mm-proj')
    .replaceAll('imatrix', 'imat')
    .replace(/(?<![a-z0-9])(eagle)(3)(?![a-z0-9])/g, '$1-$2')
    .replace(/(?<![a-z0-9])d(flash|spark)(?![a-z0-9])/g, 'd-$1')
    .replace(/^((?:ggml-)?vocab|lora)[-._](.*)$/s, '$2-$1')

/** The folder and base name that {@link roleOfName} reads. @param stem the base name without extension and shard suffix */
export const ggufNameOf = (path: string, stem: string): GgufName => ({
  folder: folderOf(path).toLowerCase(),
  base: baseOf(stem).toLowerCase()
})
