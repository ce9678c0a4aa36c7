import { compareText, type Sha256Digest } from '@svc/ref'
import { parseCanonical, sealDocument } from './canonical.ts'
import type { ManifestErrorCode } from './errors.ts'
import { FieldReader } from './field.ts'
import { defectOfName, requireDistinctNames } from './file-rules.ts'
import type { Sealed } from './types.ts'

/** Bounds of the companions of one artifact (spec doc.21). */
export const COMPANION_BOUNDS = { fileBytes: 1 << 20, files: 1_000, totalBytes: 64 << 20, omitted: 1_000 } as const

/**
 * Why a file of the source is not a companion. `artifact`: a manifest lists it. `large`: over 1 MiB. `many`: over the bounds
 * of all together. `name`: no document may have that path. Of a file on its owner's disk, `hidden`: it is a hidden file,
 * `secret`: it is named like a secret, `unreadable`: it could not be read.
 */
export type OmissionReason = 'artifact' | 'hidden' | 'large' | 'many' | 'name' | 'secret' | 'unreadable'

/** A small file that lies beside an artifact's files at its source. */
export interface CompanionFile {
  /** As the source has it; the rules are those of names in a manifest. */
  readonly path: string
  readonly size: number
  readonly digest: Sha256Digest
  /**
   * Set for a file on its owner's disk that no loader is known to read. True: it is the owner's own, and never leaves.
   * False: the owner gives it away. A document that leaves has no such field.
   */
  readonly own?: boolean
}

/** A file of the source that is not a companion. */
export interface OmittedFile {
  readonly path: string
  readonly size: number
  readonly reason: OmissionReason
  /** As in {@link CompanionFile}: the name is the owner's own. */
  readonly own?: boolean
}

/**
 * What lies beside an artifact's files at its source (spec doc.21). It follows from the source's listing alone: every
 * quant of one commit has the same document.
 */
export interface Companions {
  readonly schema: 'svc.companions.v1'
  /** Sorted by the bytes of their paths. */
  readonly files: readonly CompanionFile[]
  /** Sorted likewise. */
  readonly omitted: readonly OmittedFile[]
  /** The number of further omitted files, which are not listed. */
  readonly more?: number
}

const REASONS: readonly unknown[] = [
  'artifact',
  'hidden',
  'large',
  'many',
  'name',
  'secret',
  'unreadable'
] satisfies OmissionReason[]

function checkCompanions(value: unknown, code: ManifestErrorCode): Companions {
  const read = new FieldReader(code)
  const document = read.object(value, 'the companions')
  read.constant(document.schema, 'schema', 'svc.companions.v1')
  const rowsOf = (field: 'files' | 'omitted', most: number) => {
    const rows = read.array(document[field], field).map((item, i) => {
      const row = read.object(item, `${field}[${i}]`)
      if (row.own !== undefined && typeof row.own !== 'boolean')
        read.fail('field', `${field}[${i}].own is not a boolean`, { field: 'own' })
      return {
        row,
        path: read.text(row.path, `${field}[${i}].path`),
        size: read.count(row.size, `${field}[${i}].size`)
      }
    })
    if (rows.length > most) read.fail('too-large', `${field}: ${rows.length} are listed, and the limit is ${most}`)
    const unsorted = rows.find(({ path }, i) => i > 0 && compareText(rows[i - 1]!.path, path) > 0)
    if (unsorted !== undefined) read.fail('file-order', `${field} must be sorted by path`, { name: unsorted.path })
    return rows
  }
  const files = rowsOf('files', COMPANION_BOUNDS.files)
  let totalBytes = 0
  for (const { row, path, size } of files) {
    const defect = defectOfName(path)
    if (defect !== undefined) read.fail('path', `${JSON.stringify(path.slice(0, 200))}: ${defect}`, { name: path })
    if (size > COMPANION_BOUNDS.fileBytes)
      read.fail('too-large', `${path}: a companion must have at most 1 MiB`, { name: path })
    totalBytes += size
    read.digest(row.digest, `the digest of ${path}`)
  }
  if (totalBytes > COMPANION_BOUNDS.totalBytes) read.fail('too-large', 'companions must have at most 64 MiB together')
  const omitted = rowsOf('omitted', COMPANION_BOUNDS.omitted)
  for (const { row, path } of omitted)
    if (!REASONS.includes(row.reason)) read.fail('field', `${path}: the reason is unknown`, { field: 'reason' })
  if (document.more !== undefined) read.count(document.more, 'more')
  requireDistinctNames(
    read,
    files.map(({ path }) => path)
  )
  return value as Companions
}

/**
 * Seals the companions of an artifact, given in any order.
 * @throws ManifestError `E_INVALID` for what breaks the bounds or the rules of names
 */
export function sealCompanions({ files, omitted, more }: Omit<Companions, 'schema'>): Sealed<Companions> {
  const byPath = (a: { readonly path: string }, b: { readonly path: string }): number => compareText(a.path, b.path)
  const document = {
    schema: 'svc.companions.v1',
    files: [...files].sort(byPath),
    omitted: [...omitted].sort(byPath),
    ...(more !== undefined && { more })
  }
  return sealDocument(checkCompanions(document, 'E_INVALID'))
}

/** Parses the bytes of companions strictly; unknown fields are kept. @throws ManifestError `E_CORRUPTION` */
export const parseCompanions = (bytes: Uint8Array): Companions => checkCompanions(parseCanonical(bytes), 'E_CORRUPTION')
