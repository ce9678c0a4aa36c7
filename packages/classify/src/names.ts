import { compareText } from '@svc/ref'
import { ClassifyError } from './errors.ts'

/** Longest upstream path, in UTF-8 bytes (spec rec.22). */
export const MAX_NAME_BYTES = 1024
/** The limits of file systems and torrent clients; they apply to entries of an artifact only. */
const MAX_SEGMENT_BYTES = 255
const MAX_SEGMENTS = 32

/** A defect of an upstream path; the `reason` of an `E_BAD_NAME`. */
export type NameProblem =
  | 'empty'
  | 'too-long'
  | 'not-unicode'
  | 'absolute'
  | 'backslash'
  | 'control-character'
  | 'empty-segment'
  | 'dot-segment'
  | 'duplicate'
  | 'duplicate-nfc'
  | 'file-and-folder'
  | 'segment-too-long'
  | 'too-deep'

const WORDS: Record<NameProblem, string> = {
  empty: 'is empty',
  'too-long': `is longer than ${MAX_NAME_BYTES} bytes`,
  'not-unicode': 'is not well-formed Unicode',
  absolute: 'begins with "/"',
  backslash: 'contains a backslash',
  'control-character': 'contains a control character, a line separator or one that changes the direction of text',
  'empty-segment': 'has an empty path segment',
  'dot-segment': 'has a "." or ".." path segment',
  duplicate: 'is listed twice',
  'duplicate-nfc': 'equals another name after Unicode normalization (NFC)',
  'file-and-folder': 'is both a file and a folder',
  'segment-too-long': `has a path segment of more than ${MAX_SEGMENT_BYTES} bytes`,
  'too-deep': `has more than ${MAX_SEGMENTS} path segments`
}

/**
 * Terminal controls; line separators, at which many tools break lines; and characters that change the direction of text,
 * which make one name look like another.
 */
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u
const encoder = new TextEncoder()

/** Why this path is forbidden, or undefined when it may be part of an artifact (spec rec.22). */
export function nameProblem(name: string): NameProblem | undefined {
  if (name === '') return 'empty'
  if (!name.isWellFormed()) return 'not-unicode'
  if (name.length > MAX_NAME_BYTES || encoder.encode(name).length > MAX_NAME_BYTES) return 'too-long'
  if (CONTROL.test(name)) return 'control-character'
  if (name.includes('\\')) return 'backslash'
  if (name.startsWith('/')) return 'absolute'
  for (const segment of name.split('/')) {
    if (segment === '') return 'empty-segment'
    if (segment === '.' || segment === '..') return 'dot-segment'
  }
  return undefined
}

function refuse(name: string, reason: NameProblem): never {
  const shown = name.length > 200 ? `${name.slice(0, 200)}…` : name
  throw new ClassifyError(
    'E_BAD_NAME',
    `the file name ${JSON.stringify(shown)} ${WORDS[reason]}; rename it at its source`,
    { name, reason }
  )
}

/**
 * Checks a whole listing: each path on its own, then that no two are equal after NFC and that no file is also a folder
 * (both compared in NFC). The listing is refused as a whole (spec rec.21); its order does not affect which name is
 * reported.
 * @throws ClassifyError `E_BAD_NAME` with `details.name` and `details.reason` (a {@link NameProblem}).
 */
export function checkNames(names: Iterable<string>): void {
  const sorted = [...names].sort(compareText)
  const byNfc = new Map<string, string>()
  for (const name of sorted) {
    const problem = nameProblem(name)
    if (problem) refuse(name, problem)
    const nfc = name.normalize('NFC')
    const other = byNfc.get(nfc)
    if (other !== undefined) refuse(name, other === name ? 'duplicate' : 'duplicate-nfc')
    byNfc.set(nfc, name)
  }
  const keys = [...byNfc.keys()].sort(compareAsFolders)
  for (let i = 1; i < keys.length; i++) {
    const file = keys[i - 1]!
    if (keys[i]!.startsWith(file) && keys[i]![file.length] === '/') refuse(byNfc.get(file)!, 'file-and-folder')
  }
}

/** With "/" as the lowest character, the content of a folder directly follows a file of the folder's name. */
function compareAsFolders(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x !== y) return (x === 0x2f ? -1 : x) - (y === 0x2f ? -1 : y)
  }
  return a.length - b.length
}

/**
 * Checks an entry's name against the limits of torrents and file systems, in addition to the rules of {@link checkNames}.
 * @throws ClassifyError `E_BAD_NAME`, reasons `segment-too-long` and `too-deep`.
 */
export function checkEntryName(name: string): void {
  const segments = name.split('/')
  if (segments.length > MAX_SEGMENTS) refuse(name, 'too-deep')
  if (segments.some((segment) => encoder.encode(segment).length > MAX_SEGMENT_BYTES)) refuse(name, 'segment-too-long')
}

/**
 * First segments and folders used by the artifact's own documents (spec doc.6, rec.23), below which nothing upstream
 * may lie.
 */
const RESERVED = /^(?:manifest|modelconfig\.json|tokenizer\.tar)(?:\/|$)|(?:^|\/)adapter\.tar\//

/**
 * True when an entry of this name would collide with the torrent's `manifest` folder or with a file created by sealing.
 */
export const isReservedName = (name: string): boolean => RESERVED.test(name)

/** The folder of a path with its trailing slash; empty at the root. */
export const folderOf = (name: string): string => name.slice(0, name.lastIndexOf('/') + 1)

export const baseOf = (name: string): string => name.slice(name.lastIndexOf('/') + 1)

export const sortedByName = <T extends { readonly name: string }>(items: Iterable<T>): T[] =>
  [...items].sort((a, b) => compareText(a.name, b.name))
