import { hash } from 'node:crypto'
import { isSecretByName, type Recognition } from '@svc/classify'
import {
  type ArtifactSource,
  type BlobTree,
  type CompanionDeps,
  markedOwn,
  partsLacking,
  someOf,
  sourceKey,
  upstreamName
} from '@svc/internal-state'
import {
  COMPANION_BOUNDS,
  type CompanionFile,
  type Companions,
  defectOfName,
  MARKER,
  type OmittedFile,
  type Sealed,
  sealCompanions
} from '@svc/manifest'
import type { ImportSource, SourceFile } from './source.ts'

/** The companions of an import, kept and omitted (spec doc.21, rec.24). */
export interface CompanionPlan {
  /** By the names that recognition sees. */
  readonly files: ReadonlyMap<string, SourceFile>
  readonly omitted: readonly OmittedFile[]
}

const NO_COMPANIONS: CompanionPlan = { files: new Map(), omitted: [] }

export const isHidden = (name: string): boolean => name.startsWith('.') || name.includes('/.')

/**
 * Chooses companions among all files of a source: small ones that no manifest has as they are, those nearest to the root first.
 * Names of hidden files in a folder on the owner's disk are not recorded.
 * @param uses of all files, sorted by name
 */
export function planCompanions(
  { origin }: Pick<ImportSource, 'origin'>,
  files: ReadonlyMap<string, SourceFile>,
  uses: Recognition['uses']
): CompanionPlan {
  // imports that a mirror's client caused list only kept files
  if (origin.onDemand === true) return NO_COMPANIONS
  const chosen = new Map<string, SourceFile>()
  const omitted: OmittedFile[] = []
  let bytes = 0
  // stable: by name within a depth
  const inOrder = [...uses]
    .map((each) => ({ each, depth: each[0].split('/').length }))
    .sort((a, b) => a.depth - b.depth)
  for (const {
    each: [name, { use }]
  } of inOrder) {
    const file = files.get(name)!
    const path = upstreamName(origin, name)
    const size = file.sizeBytes
    const omit = (reason: OmittedFile['reason']): void => void omitted.push({ path, size, reason })
    if (use === 'entry' || use === 'member') omit('artifact')
    else if (origin.kind === 'local' && isHidden(name)) omit('hidden')
    else if (origin.kind === 'local' && isSecretByName(name)) omit('secret')
    else if (size > COMPANION_BOUNDS.fileBytes) omit('large')
    else if (chosen.size === COMPANION_BOUNDS.files || bytes + size > COMPANION_BOUNDS.totalBytes) omit('many')
    else if (defectOfName(path) !== undefined || path.split('/', 1)[0] === MARKER) omit('name')
    else {
      chosen.set(name, file)
      bytes += size
    }
  }
  return { files: chosen, omitted }
}

/**
 * The document of the imported companions; undefined if the source has only the manifests' files. An import from the
 * hub gets one anyway: an artifact of the hub without one is older than companions.
 * @param blobs by the names that recognition sees; unreadable files are absent
 */
export function companionsOf(
  { files, omitted }: CompanionPlan,
  { origin, givesAll = false, leftOut: unlisted = 0 }: Pick<ImportSource, 'origin' | 'givesAll' | 'leftOut'>,
  blobs: ReadonlyMap<string, Pick<BlobTree, 'digest'>>
): Sealed<Companions> | undefined {
  const isEmpty = files.size === 0 && omitted.every(({ reason }) => reason === 'artifact')
  if (isEmpty && (origin.kind !== 'hf' || origin.onDemand === true)) return undefined
  const listed: CompanionFile[] = []
  const unreadable: OmittedFile[] = []
  for (const [name, { sizeBytes: size }] of files) {
    const digest = blobs.get(name)?.digest
    const path = upstreamName(origin, name)
    if (digest === undefined) unreadable.push({ path, size, reason: 'unreadable' })
    else listed.push({ path, size, digest })
  }
  const all = [...omitted, ...unreadable]
  // files in manifests come last: the manifests list them, too
  const kept = all
    .sort((a, b) => Number(a.reason === 'artifact') - Number(b.reason === 'artifact'))
    .slice(0, COMPANION_BOUNDS.omitted)
  const more = all.length - kept.length + unlisted
  return sealCompanions({
    files: listed.map((file) => markedOwn(file, { source: origin }, givesAll)),
    omitted: kept.map((file) => (file.reason === 'artifact' ? file : markedOwn(file, { source: origin }, givesAll))),
    ...(more > 0 && { more })
  })
}

/**
 * A companion is fetched from its source even if its bytes are here: a digest in a listing proves nothing, and what another
 * artifact keeps must not leave with this one (spec add.37).
 */
export function fetchedAnew(file: SourceFile, origin: ArtifactSource): SourceFile {
  const { digest, ...rest } = file
  if (digest === undefined || file.stored !== undefined) return file
  return {
    ...rest,
    // keys have a limit, and names of repositories may have hundreds of characters
    partialKey: `companion:${hash('sha256', sourceKey(origin)).slice(0, 16)} ${digest}`,
    accept: async (result) => {
      if (result.digest !== digest) throw new Error(`${file.name}: its SHA-256 is ${result.digest}, not ${digest}`)
      await file.accept?.(result)
    }
  }
}

/** Files that are neither in an artifact nor beside it. */
export const leftOut = ({ document }: Pick<Sealed<Companions>, 'document'>): readonly OmittedFile[] =>
  document.omitted.filter(({ reason }) => reason !== 'artifact')

const TOLD = {
  large: 'larger than 1 MiB, and in no artifact',
  many: 'one of too many small files',
  name: 'no folder may have such names',
  secret: 'such names are those of secrets',
  unreadable: 'unreadable'
} as const

/** The warnings about files that the folder lacks. @param names of the files in manifests */
export async function companionWarnings(
  companions: Pick<Sealed<Companions>, 'document'>,
  names: ReadonlySet<string>,
  deps: Pick<CompanionDeps, 'store' | 'documents'>
): Promise<string[]> {
  const omitted = leftOut(companions)
  const lists = Object.entries(TOLD).flatMap(([reason, what]) => {
    const paths = omitted.filter((file) => file.reason === reason).map(({ path }) => path)
    return paths.length === 0 ? [] : [`not kept (${what}): ${someOf(paths)}`]
  })
  const own = companions.document.files.filter(({ own }) => own === true).map(({ path }) => path)
  if (own.length > 0)
    lists.push(
      `not shared with the model, since no loader reads such names: ${someOf(own)}; an import with --companions all shares them`
    )
  return [...lists, ...(await partsLacking(companions.document, names, deps))]
}
