import type { SignedModel, SignedResource } from './statement.ts'

/** A file of a model's folder, as it is here. */
export interface ModelFile {
  /** Relative to the folder. */
  readonly path: string
  readonly sizeBytes: number
  /** In hexadecimal digits. */
  readonly sha256: string
}

/** Paths, sorted; those of signed files as the signer has them. {@link defectsOf} says whether a signature holds for a folder. */
export interface Comparison {
  /** The signer's digests are those of the files here. */
  readonly covered: readonly string[]
  /** Here, and left out by the signer. */
  readonly ignored: readonly string[]
  /** Signed, and left out here. */
  readonly notChosen: readonly string[]
  /** Here, and unknown to the signer. */
  readonly uncovered: readonly string[]
  /** Signed, and not here. */
  readonly missing: readonly string[]
  /** Here with other bytes than those that were signed. */
  readonly changed: readonly string[]
}

/** SHA-256 of a part of a file, in hexadecimal digits; not called for the whole of one. */
export type HashPart = (path: string, start: number, end: number) => Promise<string>

/** How a folder relates to the signer's. */
export interface ComparisonOptions {
  /** Called for each part of a signature that lists parts of files: only these are read again. */
  readonly hashPart: HashPart
  /** The signature's own file in the folder, which no signature covers. */
  readonly signaturePath?: string
  /** The name here of a file that has another name at the signer's. Default: the same. */
  readonly nameHere?: (path: string) => string
  /** Whether a signed file that is not here was left out on purpose. Default: none was. */
  readonly isLeftOut?: (path: string) => boolean
}

type Lists = Record<keyof Comparison, string[]>

/** Compares what a signer says with the files of a folder. */
export async function compareWithFiles(
  { resources, ignored }: SignedModel,
  files: readonly ModelFile[],
  { hashPart, signaturePath, nameHere = (path) => path, isLeftOut = () => false }: ComparisonOptions
): Promise<Comparison> {
  const here = new Map(files.map((file) => [file.path, file]))
  const signed = Map.groupBy(resources, ({ path }) => path)
  const lists: Lists = { covered: [], ignored: [], notChosen: [], uncovered: [], missing: [], changed: [] }
  const known = new Set<string>()
  const left = new Set(ignored)
  for (const [path, parts] of signed) {
    const name = here.has(path) ? path : nameHere(path)
    // the signer may have another file of that name.
    const file = name !== path && signed.has(name) ? undefined : here.get(name)
    if (file === undefined) lists[isLeftOut(path) ? 'notChosen' : 'missing'].push(path)
    else {
      known.add(name)
      lists[(await isSame(file, parts, hashPart)) ? 'covered' : 'changed'].push(path)
    }
  }
  for (const { path } of files)
    if (!known.has(path)) lists[path === signaturePath || isBelow(path, left) ? 'ignored' : 'uncovered'].push(path)
  for (const list of Object.values(lists)) list.sort()
  return lists
}

/** Whether a path is one of `folders`, or below one; in as many steps as the path has folders. */
export function isBelow(path: string, folders: ReadonlySet<string>): boolean {
  for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1))
    if (folders.has(path.slice(0, end))) return true
  return false
}

/** Why a signature does not hold for a folder, in words for people; empty if it holds. */
export const defectsOf = ({
  changed,
  missing,
  uncovered
}: Comparison): readonly (readonly [string, readonly string[]])[] =>
  (
    [
      ['changed', changed],
      ['missing', missing],
      ['not signed', uncovered]
    ] as const
  ).filter(([, paths]) => paths.length > 0)

async function isSame(file: ModelFile, parts: readonly SignedResource[], hashPart: HashPart): Promise<boolean> {
  const [{ sha256, start, end }] = parts as [SignedResource]
  const isWhole = start === undefined || (parts.length === 1 && start === 0 && end === file.sizeBytes)
  if (isWhole) return sha256 === file.sha256
  if (parts.reduce((end, part) => Math.max(end, part.end!), 0) !== file.sizeBytes) return false
  for (const part of parts) if ((await hashPart(file.path, part.start!, part.end!)) !== part.sha256) return false
  return true
}
