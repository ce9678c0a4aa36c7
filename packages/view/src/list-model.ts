import { createHash } from 'node:crypto'
import { type FolderFile, type FolderSource, ManifestError, modelFiles } from '@svc/manifest'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import { ViewError } from './errors.ts'
import { readTarMembers } from './tar-members.ts'

/** A file of a model's folder, with the digest of its bytes. */
export type HashedFile = FolderFile & { readonly digest: Sha256Digest }

interface Member {
  readonly name: string
  readonly sizeBytes: number
  readonly digest: Sha256Digest
}

/**
 * The files of a model's folder (`modelFiles` of `@svc/manifest`). Reads the tars of tokenizer and adapters; other blobs
 * need not be there.
 * @throws ViewError `E_BAD_NAME`, `E_BAD_TAR`, `E_CORRUPT_BLOB`, `E_MISSING_BLOB`; errors of the file system as they are
 */
export async function listModel(
  source: FolderSource,
  blobPath: (digest: Sha256Digest) => string
): Promise<readonly HashedFile[]> {
  const members = new Map<Sha256Digest, readonly Member[]>()
  for (const { kind, digest, size: sizeBytes } of source.manifest.files) {
    if ((kind !== 'tokenizer' && kind !== 'adapter') || members.has(digest)) continue
    const found: Member[] = []
    for await (const { name, sizeBytes: memberBytes, bytes } of readTarMembers({
      path: blobPath(digest),
      digest,
      sizeBytes
    }))
      found.push({ name, sizeBytes: memberBytes, digest: await digestOf(bytes) })
    members.set(digest, found)
  }
  const digestOfFile = ({ content }: FolderFile): Sha256Digest => {
    if (content.in === 'blob') return content.digest
    if (content.in === 'document') return digestFromHex(createHash('sha256').update(content.text).digest('hex'))
    return members.get(content.tar.digest)!.find(({ name }) => name === content.member)!.digest
  }
  try {
    return modelFiles(source, ({ digest }) => members.get(digest)!).map((file) => ({
      ...file,
      digest: digestOfFile(file)
    }))
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error
    throw new ViewError('E_BAD_NAME', error.message, { name: `${error.details.name}` }, error)
  }
}

async function digestOf(bytes: AsyncIterable<Uint8Array>): Promise<Sha256Digest> {
  const hash = createHash('sha256')
  for await (const chunk of bytes) hash.update(chunk)
  return digestFromHex(hash.digest('hex'))
}
