import type { SignedModel, SignedResource } from './statement.ts'

/** A file of a model's folder, as it is here. */
export interface ModelFile {
  /** Relative to the folder, as upstream names it. */
  readonly path: string
  readonly sizeBytes: number
  /** In hexadecimal digits. */
  readonly sha256: string
}

/** Paths, sorted. A signature holds for a folder if all but `covered` and `ignored` are empty. */
export interface Comparison {
  /** The signer's digests are those of the files here. */
  readonly covered: readonly string[]
  /** Here, and left out by the signer. */
  readonly ignored: readonly string[]
  /** Here, and unknown to the signer. */
  readonly uncovered: readonly string[]
  /** Signed, and not here. */
  readonly missing: readonly string[]
  /** Here with other bytes than those that were signed. */
  readonly changed: readonly string[]
}

/** SHA-256 of a part of a file, in hexadecimal digits; not called for the whole of one. */
export type HashPart = (path: string, start: number, end: number) => Promise<string>

/**
 * Compares what a signer says with the files of a folder. @param signaturePath the signature's own file in it, which no signature covers
 * @param hashPart called for each part of a signature that lists parts of files: only these are read again
 */
export async function compareWithFiles(
  { resources, ignored }: SignedModel,
  files: readonly ModelFile[],
  { signaturePath, hashPart }: { readonly signaturePath?: string; readonly hashPart: HashPart }
): Promise<Comparison> {
  const here = new Map(files.map((file) => [file.path, file]))
  const signed = Map.groupBy(resources, ({ path }) => path)
  const covered: string[] = []
  const changed: string[] = []
  for (const [path, parts] of signed) {
    const file = here.get(path)
    if (file !== undefined) (await isSame(file, parts, hashPart)) ? covered.push(path) : changed.push(path)
  }
  const others = files.filter(({ path }) => !signed.has(path)).map(({ path }) => path)
  const isLeftOut = (path: string): boolean =>
    path === signaturePath || ignored.some((each) => path === each || path.startsWith(`${each}/`))
  return {
    covered: covered.sort(),
    ignored: others.filter(isLeftOut).sort(),
    uncovered: others.filter((path) => !isLeftOut(path)).sort(),
    missing: [...signed.keys()].filter((path) => !here.has(path)).sort(),
    changed: changed.sort()
  }
}

async function isSame(file: ModelFile, parts: readonly SignedResource[], hashPart: HashPart): Promise<boolean> {
  const [{ sha256, start, end }] = parts as [SignedResource]
  const isWhole = start === undefined || (parts.length === 1 && start === 0 && end === file.sizeBytes)
  if (isWhole) return sha256 === file.sha256
  if (parts.reduce((end, part) => Math.max(end, part.end!), 0) !== file.sizeBytes) return false
  for (const part of parts) if ((await hashPart(file.path, part.start!, part.end!)) !== part.sha256) return false
  return true
}
