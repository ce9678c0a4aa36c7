import { sha256 } from '@svc/metainfo'
import { digestFromBytes, isDigest } from '@svc/ref'
import { parseCanonical, sealDocument } from './canonical.ts'
import type { ManifestErrorCode } from './errors.ts'
import { FieldReader } from './field.ts'
import { checkKind, compareFiles, defectOfName, defectOfPath, isFileKind, requireDistinctNames } from './file-rules.ts'
import { licenceTexts } from './model-files.ts'
import type { FileKind, Manifest, ManifestFile, Sealed } from './types.ts'

/** Largest total size of a torrent that clients accept. */
const MAX_TOTAL_BYTES = 2 ** 48 - 1
const EMPTY_DIGEST = 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

function checkFile(read: FieldReader, value: unknown, field: string): ManifestFile {
  const file = read.object(value, field)
  const name = read.text(file.name, `${field}.name`)
  const defect = defectOfName(name)
  if (defect !== undefined) read.fail('path', `${JSON.stringify(name)} is not a usable file name: ${defect}`, { name })
  const kind = file.kind
  if (!isFileKind(kind)) read.fail('kind', `${name}: unknown kind ${JSON.stringify(kind)}`, { name })
  const size = read.count(file.size, `${field}.size`)
  const digest = read.digest(file.digest, `${field}.digest`)
  if ((size === 0) !== (digest === EMPTY_DIGEST)) {
    read.fail('digest-conflict', `${name}: a file has the digest of no bytes if and only if its size is 0`, { name })
  }
  if (size > 0) {
    const root = file.bt === undefined ? undefined : read.object(file.bt, `${field}.bt`).merkleRoot
    if (!isDigest(root))
      read.fail('merkle-root', `${name}: bt.merkleRoot must be a digest, the BEP 52 pieces root`, { name })
    if (/^sha256:0+$/.test(root)) read.fail('merkle-root', `${name}: bt.merkleRoot is all zero`, { name })
  } else if (file.bt !== undefined) {
    read.fail('merkle-root', `${name}: an empty file must not have bt.merkleRoot`, { name })
  }
  if (file.part !== undefined) read.count(file.part, `${field}.part`)
  for (const key of ['role', 'variant', 'runtime']) {
    if (file[key] !== undefined) read.text(file[key], `${field}.${key}`)
  }
  checkKind(read, kind, name, file)
  return value as ManifestFile
}

/** Checks all rules of a manifest (spec doc.3 to doc.7, doc.10); unknown fields are allowed. */
function checkManifest(value: unknown, code: ManifestErrorCode): Manifest {
  const read = new FieldReader(code)
  const manifest = checkStored(value, read)
  const licences = licenceTexts(manifest.annotations).map(({ name }) => name)
  for (const name of licences) {
    const defect = defectOfPath(name)
    if (defect !== undefined)
      read.fail('path', `${JSON.stringify(name.slice(0, 200))} cannot be the name of a licence: ${defect}`, { name })
  }
  if (licences.length > 0) requireDistinctNames(read, [...manifest.files.map(({ name }) => name), ...licences])
  return manifest
}

/** All rules but those for the names of licences, which earlier versions did not check. */
function checkStored(value: unknown, read: FieldReader): Manifest {
  const document = read.object(value, 'the manifest')
  read.constant(document.schemaVersion, 'schemaVersion', 1)
  read.constant(document.artifactType, 'artifactType', 'model')
  const files = read.array(document.files, 'files').map((file, i) => checkFile(read, file, `files[${i}]`))
  for (const [key, annotation] of Object.entries(read.object(document.annotations, 'annotations'))) {
    if (typeof annotation !== 'string')
      read.fail('field', 'annotations must be strings', { field: `annotations.${key}` })
  }
  const countOf = (kind: FileKind): number => files.filter((file) => file.kind === kind).length
  if (countOf('config') !== 1) read.fail('config-count', 'a manifest must have exactly one config entry')
  if (countOf('tokenizer') > 1) read.fail('tokenizer-count', 'a manifest must have at most one tokenizer entry')
  if (countOf('chat-template') > 1)
    read.fail('chat-template-count', 'a manifest must have at most one chat-template entry')
  requireDistinctNames(
    read,
    files.map((file) => file.name)
  )
  const byDigest = new Map<string, ManifestFile>()
  let totalBytes = 0
  for (const [i, file] of files.entries()) {
    if (i > 0 && compareFiles(files[i - 1]!, file) >= 0) {
      read.fail('file-order', `${file.name}: entries must be sorted by kind, then by the bytes of their names`, {
        name: file.name
      })
    }
    const twin = byDigest.get(file.digest)
    if (twin !== undefined && (twin.size !== file.size || twin.bt?.merkleRoot !== file.bt?.merkleRoot)) {
      read.fail('digest-conflict', `${file.name}: it has the digest of ${twin.name}, but another size or merkle root`, {
        name: file.name
      })
    }
    byDigest.set(file.digest, file)
    totalBytes += file.size
    if (totalBytes > MAX_TOTAL_BYTES) read.fail('total-size', 'the files are too large together')
  }
  return value as Manifest
}

/**
 * An entry's known fields, without undefined ones: extra properties of a caller's object are not sealed. In the order of the
 * canonical form, in which it is written much faster.
 */
function plainFile(file: ManifestFile): ManifestFile {
  return {
    ...(file.bt === undefined ? {} : { bt: { merkleRoot: file.bt.merkleRoot } }),
    digest: file.digest,
    kind: file.kind,
    name: file.name,
    ...(file.part === undefined ? {} : { part: file.part }),
    ...(file.role === undefined ? {} : { role: file.role }),
    ...(file.runtime === undefined ? {} : { runtime: file.runtime }),
    size: file.size,
    ...(file.variant === undefined ? {} : { variant: file.variant })
  }
}

/** In the order of UTF-16 code units, but for keys that JavaScript puts elsewhere. */
const sortedKeys = (texts: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(texts).sort(([a], [b]) => (a < b ? -1 : 1)))

/**
 * Seals a manifest (spec doc.3 to doc.8): sorts the entries, checks every rule, and returns the canonical bytes and
 * their digest. The order of entries and annotations does not change the bytes.
 * @throws ManifestError `E_INVALID` with a reason.
 */
export function sealManifest(
  files: readonly ManifestFile[],
  annotations: Readonly<Record<string, string>> = {}
): Sealed<Manifest> {
  const document: Manifest = {
    annotations: sortedKeys(annotations),
    artifactType: 'model',
    files: files.map(plainFile).sort((a, b) => (isFileKind(a.kind) && isFileKind(b.kind) ? compareFiles(a, b) : 0)),
    schemaVersion: 1
  }
  return sealDocument(checkManifest(document, 'E_INVALID'))
}

/**
 * Parses the bytes of a manifest strictly; unknown fields are kept.
 * @throws ManifestError `E_CORRUPTION` with a reason.
 */
export function parseManifest(bytes: Uint8Array): Manifest {
  return checkManifest(parseCanonical(bytes), 'E_CORRUPTION')
}

/**
 * Like {@link parseManifest}, for a manifest that is in the store: earlier versions let in names of licences that cannot be
 * those of files. `modelFiles` leaves these out. @throws ManifestError `E_CORRUPTION` with a reason.
 */
export function parseStoredManifest(bytes: Uint8Array): Manifest {
  return checkStored(parseCanonical(bytes), new FieldReader('E_CORRUPTION'))
}

/**
 * Like {@link parseManifest}, but returns the bytes and their digest too, as `torrentOf` takes them.
 * @throws ManifestError `E_CORRUPTION`.
 */
export function parseSealedManifest(bytes: Uint8Array): Sealed<Manifest> {
  return { document: parseManifest(bytes), bytes, digest: digestFromBytes(sha256(bytes)) }
}
