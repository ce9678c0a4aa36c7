import { constants } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { digestHex, type Sha256Digest } from '@svc/ref'
import { type BlobContent, type CopyOptions, copyContent } from './content.ts'
import { type Descriptor, describe, MAX_DOCUMENT_BYTES, type OciDocument, parseOciIndex } from './document.ts'
import { ioError, OciError } from './errors.ts'
import { INDEX_TYPE, REF_NAME_ANNOTATION } from './media-types.ts'
import type { PackedImage } from './pack.ts'

/** The file that makes a folder an image layout, and what is in it (OCI image specification, image-layout). */
export const LAYOUT_FILE = 'oci-layout'
/** The content of {@link LAYOUT_FILE}. */
export const LAYOUT_CONTENT = Buffer.from('{"imageLayoutVersion":"1.0.0"}')
/** The entry of a layout. */
export const INDEX_FILE = 'index.json'

/** Where a blob lies in a layout. */
export const blobName = (digest: Sha256Digest): string => `blobs/sha256/${digestHex(digest)}`

/** All blobs of images, each once: layers first, documents last. */
export function blobsOf(images: readonly PackedImage[]): BlobContent[] {
  const asBlob = ({ digest, bytes }: OciDocument): BlobContent => ({ digest, sizeBytes: bytes.length, parts: [bytes] })
  const blobs = [
    ...images.flatMap(({ layers }) => layers.map(({ content }) => content)),
    ...images.flatMap(({ config, manifest }) => [asBlob(config), asBlob(manifest)])
  ]
  return [...new Map(blobs.map((blob) => [blob.digest, blob])).values()]
}

/** The entries of a layout's index: each with its tag, the quant where only one model is in it, else the whole name. */
export function entriesOf(images: readonly PackedImage[]): Descriptor[] {
  const repos = new Set(images.map(({ ref }) => ref?.split(':')[0]))
  return images.map(({ manifest, ref }) => {
    const tag = repos.size === 1 ? ref?.split(':')[1] : ref
    return { ...describe(manifest), ...(tag !== undefined && { annotations: { [REF_NAME_ANNOTATION]: tag } }) }
  })
}

/** The bytes of an index with these entries. */
export const indexBytes = (manifests: readonly Descriptor[]): Uint8Array =>
  Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: INDEX_TYPE, manifests }))

/**
 * Writes images into a folder, as an OCI image layout. It is absent or a layout: what is there stays, an entry of the same tag is
 * replaced. Blobs that are there whole are not written again, one that was cut short goes on; every blob is hashed before it gets its
 * name, and the index comes last. Whatever interrupts this leaves a layout of what was there before, and the next call goes on.
 * @throws OciError `E_BAD_TARGET`, `E_DIGEST_MISMATCH`, `E_NO_SPACE`, `E_IO`; on abort the signal's reason
 */
export async function writeLayout(
  folder: string,
  images: readonly PackedImage[],
  options: CopyOptions = {}
): Promise<void> {
  try {
    const before = await openTarget(folder)
    for (const blob of blobsOf(images)) {
      options.signal?.throwIfAborted()
      await writeBlob(folder, blob, options)
    }
    await syncFolder(join(folder, 'blobs/sha256'))
    const added = entriesOf(images)
    const tags = new Set(added.map(tagOf))
    const kept = before.filter(
      (entry) => !tags.has(tagOf(entry)) && !added.some(({ digest }) => digest === entry.digest)
    )
    await replace(join(folder, INDEX_FILE), indexBytes([...kept, ...added]))
    await syncFolder(folder)
  } catch (error) {
    throw ioError(error, 'write the layout', folder, options.signal)
  }
}

/** An entry without a tag is told from others by its digest. */
const tagOf = ({ annotations, digest }: Descriptor): string => annotations?.[REF_NAME_ANNOTATION] ?? digest

async function openTarget(folder: string): Promise<readonly Descriptor[]> {
  await mkdir(folder, { recursive: true })
  const names = await readdir(folder)
  if (names.length > 0 && !names.includes(LAYOUT_FILE)) {
    throw new OciError('E_BAD_TARGET', `${folder} holds something that is no OCI image layout`, { path: folder })
  }
  if (names.length === 0) await replace(join(folder, LAYOUT_FILE), LAYOUT_CONTENT)
  await mkdir(join(folder, 'blobs/sha256'), { recursive: true })
  if (!names.includes(INDEX_FILE)) return []
  const path = join(folder, INDEX_FILE)
  if ((await stat(path)).size > MAX_DOCUMENT_BYTES) throw new OciError('E_FORMAT', `${path} is too large`, { path })
  return parseOciIndex(await readFile(path)).manifests
}

async function writeBlob(folder: string, content: BlobContent, options: CopyOptions): Promise<void> {
  const path = join(folder, blobName(content.digest))
  if ((await sizeOf(path)) === content.sizeBytes) return options.onBytes?.(content.sizeBytes)
  const partial = `${path}.partial`
  const have = (await sizeOf(partial)) ?? 0
  const handle = await open(partial, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o644)
  try {
    await copyContent(content, handle, 0, have, options)
    await handle.truncate(content.sizeBytes)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(partial, path)
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    const stats = await stat(path)
    return stats.isFile() ? stats.size : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** A small file, whole or as it was before. */
async function replace(path: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${path}.partial`
  try {
    const handle = await open(temporary, 'w', 0o644)
    try {
      await handle.writeFile(bytes)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await unlink(temporary).catch(() => undefined)
    throw error
  }
}

/** Makes the names in a folder durable. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
