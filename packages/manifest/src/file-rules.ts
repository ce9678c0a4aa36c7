import { compareText } from '@svc/ref'
import type { FieldReader, PlainObject } from './field.ts'
import type { FileKind } from './types.ts'

/** Position of a kind within a manifest; both kinds of weights share one (spec doc.7). */
const RANKS: Readonly<Record<FileKind, number>> = {
  config: 0,
  'weights.gguf': 1,
  'weights.safetensors': 1,
  'weights.aux': 2,
  tokenizer: 3,
  'chat-template': 4,
  adapter: 5,
  code: 6,
  opaque: 7
}

/** Roles of `weights.aux` (spec doc.5). */
export const AUX_ROLES: readonly string[] = ['imatrix', 'vision-projector', 'weights-index', 'draft', 'adapter']
/** Roles of `code` (spec doc.5). */
export const CODE_ROLES: readonly string[] = ['model', 'tokenization', 'configuration', 'processor']
/** Name of the one `config` entry. */
export const CONFIG_NAME = 'modelconfig.json'
const TOKENIZER_NAME = 'tokenizer.tar'
const ADAPTER_NAME = 'adapter.tar'

const MAX_PATH_BYTES = 1_024
const MAX_SEGMENT_BYTES = 255
const MAX_SEGMENTS = 32
const UNSAFE = /[\u0000-\u001f\u007f\\]/
const utf8 = new TextEncoder()

/** True for a kind of the spec. */
export const isFileKind = (value: unknown): value is FileKind =>
  typeof value === 'string' && Object.hasOwn(RANKS, value)

/** The order of files in a manifest: by kind, then by the bytes of the name. */
export function compareFiles(
  a: { readonly kind: FileKind; readonly name: string },
  b: { readonly kind: FileKind; readonly name: string }
): number {
  return RANKS[a.kind] - RANKS[b.kind] || compareText(a.name, b.name)
}

/** Why a name cannot be a path below a folder, or undefined (spec rec.22, doc.6; limits of BEP 52). */
export function defectOfPath(name: string): string | undefined {
  if (!name.isWellFormed()) return 'it is not well-formed Unicode'
  if (utf8.encode(name).length > MAX_PATH_BYTES) return `it has more than ${MAX_PATH_BYTES} bytes`
  if (UNSAFE.test(name)) return 'it contains a backslash or a control character'
  const segments = name.split('/')
  if (segments.length > MAX_SEGMENTS) return `it has more than ${MAX_SEGMENTS} segments`
  for (const segment of segments) {
    if (segment === '' || segment === '.' || segment === '..') return 'it has an empty, "." or ".." segment'
    if (utf8.encode(segment).length > MAX_SEGMENT_BYTES) return `a segment has more than ${MAX_SEGMENT_BYTES} bytes`
  }
  return undefined
}

/** Why a name cannot be used as an artifact-relative path, or undefined (spec doc.6). */
export function defectOfName(name: string): string | undefined {
  if (name.split('/', 1)[0] === 'manifest') return 'its first segment "manifest" is reserved for the manifest itself'
  return defectOfPath(name)
}

/** Checks the role and the fixed name of one entry against its kind. */
export function checkKind(read: FieldReader, kind: FileKind, name: string, file: PlainObject): void {
  const role = file.role
  const details = { name, kind }
  const requireRole = (roles: readonly string[]): void => {
    if (typeof role !== 'string' || !roles.includes(role)) {
      read.fail('role', `${name}: the role of ${kind} must be one of ${roles.join(', ')}`, details)
    }
  }
  const requireName = (expected: string): void => {
    if (name !== expected) read.fail('file-name', `${name}: the ${kind} entry must be named ${expected}`, details)
  }
  if (kind === 'config') requireName(CONFIG_NAME)
  if (kind === 'tokenizer') requireName(TOKENIZER_NAME)
  if (kind === 'adapter' && name.split('/').at(-1) !== ADAPTER_NAME) {
    read.fail('file-name', `${name}: an adapter entry must be ${ADAPTER_NAME} in its folder`, details)
  }
  if (kind === 'weights.aux') requireRole(AUX_ROLES)
  if (kind === 'code') requireRole(CODE_ROLES)
}

/** Names must be distinct after NFC, and none may be a folder of another. */
export function requireDistinctNames(read: FieldReader, names: readonly string[]): void {
  const seen = new Set<string>()
  for (const name of names) {
    const folded = name.normalize('NFC')
    if (seen.has(folded)) read.fail('name-duplicate', `${name}: the name occurs twice`, { name })
    seen.add(folded)
  }
  for (const name of seen) {
    const segments = name.split('/')
    for (let i = 1; i < segments.length; i++) {
      const folder = segments.slice(0, i).join('/')
      if (seen.has(folder))
        read.fail('name-conflict', `${folder}: the name is both a file and a folder`, { name: folder })
    }
  }
}
