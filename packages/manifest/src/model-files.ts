import { compareText, type Sha256Digest } from '@svc/ref'
import { ClaimedNames } from './claimed-names.ts'
import type { CompanionFile } from './companions.ts'
import { ManifestError } from './errors.ts'
import type { FileKind, Manifest, ManifestFile } from './types.ts'

/** The name of the file by which a view is recognized: no file of a model has it. */
export const MARKER = '.svc-view.json'
const CONFIG = 'config.json'
const LICENCE_FILE = 'svc.license.file.'

/** What decides which files a model's folder has: an artifact, and its companions under one name. */
export interface FolderSource {
  readonly manifest: Pick<Manifest, 'files' | 'annotations'>
  /** The text of the upstream `config.json` (`upstream` of the model config); absent if there was none. */
  readonly upstreamConfig?: string | undefined
  /** All that the document lists, whether they are here and may be seen or not. */
  readonly companions?: readonly Pick<CompanionFile, 'path' | 'size' | 'digest'>[] | undefined
}

/** A file of a model's folder, and where its bytes are. */
export interface FolderFile {
  /** Path below the folder. */
  readonly name: string
  readonly sizeBytes: number
  /** That of the manifest's entry; `config.json` has `config`, members of a tar have the tar's. */
  readonly kind: FileKind | 'licence' | 'companion'
  readonly role?: string
  readonly variant?: string
  readonly part?: number
  readonly content:
    | { readonly in: 'blob'; readonly digest: Sha256Digest; readonly isCompanion: boolean }
    /** A document has its text. */
    | { readonly in: 'document'; readonly text: string }
    | { readonly in: 'tar'; readonly tar: ManifestFile; readonly member: string }
}

/**
 * The files of a model's folder, and the only list of them: what is checked, shown and given follows from it (spec
 * doc.23). An earlier file keeps its name: `config.json`, the manifest's own files, licences, companions. A licence whose
 * name could be taken for another file's is left out, and so is a companion that has no name of its own.
 * @param membersOf the files in a tokenizer's or adapter's tar, in its order
 * @throws ManifestError `E_INVALID` `path` for an entry or member of a tar that cannot have its name; `details` has
 *   `name` and `defect`
 */
export function modelFiles(
  { manifest, upstreamConfig, companions = [] }: FolderSource,
  membersOf: (tar: ManifestFile) => readonly { readonly name: string; readonly sizeBytes: number }[]
): FolderFile[] {
  const own = ownFiles(manifest.files, membersOf)
  // the text in the model config may differ in what has no meaning, such as a byte order mark
  const config = companions.find(({ path }) => path === CONFIG)
  if (config !== undefined) own.unshift({ ...companionFile(config), kind: 'config' })
  else if (upstreamConfig !== undefined) own.unshift(textFile(CONFIG, upstreamConfig, 'config'))
  const claimed = new ClaimedNames([MARKER])
  for (const { name } of own) {
    const defect = claimed.claim(name)
    if (defect === undefined) continue
    const what = `${JSON.stringify(name.slice(0, 200))} cannot be a file of a model's folder: ${defect}`
    throw new ManifestError('E_INVALID', 'path', what, { details: { name, defect } })
  }
  const licences = licenceFiles(manifest.annotations, own, companions).filter(
    ({ name }) => claimed.claim(name) === undefined
  )
  const beside = companions.filter(({ path }) => claimed.claim(path) === undefined).map(companionFile)
  return [...own, ...[...licences, ...beside].sort((a, b) => compareText(a.name, b.name))]
}

function ownFiles(entries: Manifest['files'], membersOf: Parameters<typeof modelFiles>[1]): FolderFile[] {
  return entries.flatMap((entry): FolderFile[] => {
    const { name, size: sizeBytes, digest, kind, role, variant, part } = entry
    // the model config is a document of ours, unknown to runtimes
    if (kind === 'config') return []
    if (kind === 'tokenizer' || kind === 'adapter') {
      const folder = name.slice(0, name.lastIndexOf('/') + 1)
      return membersOf(entry).map((member) => ({
        name: folder + member.name,
        sizeBytes: member.sizeBytes,
        kind,
        content: { in: 'tar', tar: entry, member: member.name }
      }))
    }
    const facts = { ...(role && { role }), ...(variant && { variant }), ...(part !== undefined && { part }) }
    return [{ name, sizeBytes, kind, ...facts, content: { in: 'blob', digest, isCompanion: false } }]
  })
}

/** The texts of licences in a manifest's annotations, with their names as they are there. */
export const licenceTexts = (
  annotations: Manifest['annotations']
): { readonly name: string; readonly text: string }[] =>
  Object.entries(annotations)
    .filter(([key]) => key.startsWith(LICENCE_FILE))
    .map(([key, text]) => ({ name: key.slice(LICENCE_FILE.length), text }))

/** The licences whose names nothing can mistake for those of other files, on any file system; a companion may be the same file. */
function licenceFiles(
  annotations: Manifest['annotations'],
  own: readonly FolderFile[],
  companions: readonly Pick<CompanionFile, 'path'>[]
): FolderFile[] {
  const texts = licenceTexts(annotations).sort((a, b) => compareText(a.name, b.name))
  if (texts.length === 0) return []
  const names = new Set(texts.map(({ name }) => name))
  const claimed = new ClaimedNames([MARKER], true)
  for (const { name } of own) claimed.claim(name)
  for (const { path } of companions) if (!names.has(path)) claimed.claim(path)
  return texts
    .filter(({ name }) => claimed.claim(name) === undefined)
    .map(({ name, text }) => textFile(name, text, 'licence'))
}

const companionFile = ({ path, size, digest }: Pick<CompanionFile, 'path' | 'size' | 'digest'>): FolderFile => ({
  name: path,
  sizeBytes: size,
  kind: 'companion',
  content: { in: 'blob', digest, isCompanion: true }
})

const textFile = (name: string, text: string, kind: 'config' | 'licence'): FolderFile => ({
  name,
  sizeBytes: utf8.encode(text).length,
  kind,
  content: { in: 'document', text }
})

const utf8 = new TextEncoder()
