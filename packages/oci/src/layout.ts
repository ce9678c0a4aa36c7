import { readdir, readFile, rename, stat, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ifAbsent } from '@svc/internal-errors'
import { claimFolder, makeFolders, nodeFilePort, syncFolder, writePartial } from '@svc/internal-files'
import { digestHex, type Sha256Digest } from '@svc/ref'
import { ANY_FILE, held, OWN_FILE, OWN_FOLDER } from './claim.ts'
import { type BlobContent, type CopyOptions, contentOfBytes, inputOf, wrongBytes } from './content.ts'
import {
  type Descriptor,
  descriptorOf,
  MAX_DOCUMENT_BYTES,
  type OciDocument,
  parseObject,
  parseOciIndex,
  parseOciManifest
} from './document.ts'
import { ioError, OciError } from './errors.ts'
import { INDEX_TYPE, REF_ANNOTATION, REF_NAME_ANNOTATION } from './media-types.ts'
import type { PackedImage } from './pack.ts'

/** The file that marks a folder as an image layout (OCI image specification, image-layout). */
export const LAYOUT_FILE = 'oci-layout'
export const LAYOUT_CONTENT = Buffer.from('{"imageLayoutVersion":"1.0.0"}')
export const INDEX_FILE = 'index.json'

export const blobName = (digest: Sha256Digest): string => `blobs/sha256/${digestHex(digest)}`

/** All blobs of the images without duplicates: layers first, documents last. */
export function blobsOf(images: readonly PackedImage[]): BlobContent[] {
  const asBlob = ({ digest, bytes }: OciDocument): BlobContent => contentOfBytes(bytes, digest)
  const blobs = [
    ...images.flatMap(({ layers }) => layers.map(({ content }) => content)),
    ...images.flatMap(({ config, manifest }) => [asBlob(config), asBlob(manifest)])
  ]
  return [...new Map(blobs.map((blob) => [blob.digest, blob])).values()]
}

/** The index entries of the images. An entry's tag is the quant when there is only one model, else the whole name. */
export function entriesOf(images: readonly PackedImage[]): Descriptor[] {
  const repos = new Set(images.map(({ ref }) => ref?.split(':')[0]))
  return images.map(({ manifest, ref }) => {
    const tag = repos.size === 1 ? ref?.split(':')[1] : ref
    return { ...descriptorOf(manifest), ...(tag !== undefined && { annotations: { [REF_NAME_ANNOTATION]: tag } }) }
  })
}

/** The bytes of an index with these entries. @param rest other fields of the index that is replaced */
export const indexBytes = (
  manifests: readonly Descriptor[],
  rest: Readonly<Record<string, unknown>> = {}
): Uint8Array => Buffer.from(JSON.stringify({ ...rest, schemaVersion: 2, mediaType: INDEX_TYPE, manifests }))

/**
 * Writes images into a folder, as an OCI image layout. The folder is absent or a layout already. Existing entries are
 * kept, except one with the same tag and of the same model, which is replaced. Complete blobs are not rewritten, a
 * truncated one is resumed. Every blob is hashed before it gets its name, and the index is written last: an
 * interruption leaves the layout as it was before, and the next call resumes. Blobs of withheld images are their owner's
 * alone (mode 0600), and so is a folder that is made for them (0700).
 * @throws OciError `E_BAD_TARGET`, `E_DIGEST_MISMATCH`, `E_NO_SPACE`, `E_IO`; on abort the signal's reason
 */
export async function writeLayout(
  folder: string,
  images: readonly PackedImage[],
  options: CopyOptions = {}
): Promise<void> {
  try {
    const isWithheld = images.some((image) => image.isWithheld === true)
    // a folder that is there stays as its owner made it
    await makeFolders(folder, isWithheld ? OWN_FOLDER : undefined)
    await using claim = await claimFolder(folder)
    if (claim === undefined) throw held(folder)
    await fill(folder, images, options)
  } catch (error) {
    throw ioError(error, 'write the layout', folder, options.signal)
  }
}

async function fill(folder: string, images: readonly PackedImage[], options: CopyOptions): Promise<void> {
  const { rest, entries } = await openTarget(folder)
  const open = new Set(blobsOf(images.filter(({ isWithheld }) => isWithheld !== true)).map(({ digest }) => digest))
  for (const blob of blobsOf(images)) {
    options.signal?.throwIfAborted()
    await writeBlob(folder, blob, open.has(blob.digest) ? ANY_FILE : OWN_FILE, options)
  }
  await syncFolder(nodeFilePort, join(folder, 'blobs/sha256'))
  const added = await named(folder, images, entries)
  const tags = new Set(added.map(tagOf))
  const kept = entries.filter(
    (entry) => !tags.has(tagOf(entry)) && !added.some(({ digest }) => digest === entry.digest)
  )
  await replace(join(folder, INDEX_FILE), indexBytes([...kept, ...added], rest))
  await syncFolder(nodeFilePort, folder)
}

/** Entries without a tag are identified by their digest. */
const tagOf = ({ annotations, digest }: Descriptor): string => annotations?.[REF_NAME_ANNOTATION] ?? digest

/** The new entries. If another model already has an entry's tag, the whole name becomes the tag instead. */
async function named(
  folder: string,
  images: readonly PackedImage[],
  before: readonly Descriptor[]
): Promise<Descriptor[]> {
  const added = entriesOf(images)
  const names: Descriptor[] = []
  for (const [i, entry] of added.entries()) {
    const ref = images[i]?.ref
    const other = before.find((each) => tagOf(each) === tagOf(entry) && each.digest !== entry.digest)
    const isOther = ref !== undefined && other !== undefined && (await repoOf(folder, other)) !== ref.split(':')[0]
    names.push(isOther ? { ...entry, annotations: { [REF_NAME_ANNOTATION]: ref } } : entry)
  }
  return names
}

/** The repository `ns/name` that an entry's model was packed from; undefined if its manifest does not say. */
async function repoOf(folder: string, { digest, size }: Descriptor): Promise<string | undefined> {
  const path = join(folder, blobName(digest))
  if (size > MAX_DOCUMENT_BYTES || (await sizeOf(path)) !== size) return undefined
  try {
    return parseOciManifest(await readFile(path)).annotations[REF_ANNOTATION]?.split(':')[0]
  } catch (error) {
    if (error instanceof OciError) return undefined
    throw error
  }
}

/** An existing index: its entries with all their fields, and its other fields, which are kept. */
interface Before {
  readonly rest: Readonly<Record<string, unknown>>
  readonly entries: readonly Descriptor[]
}

async function openTarget(folder: string): Promise<Before> {
  // a killed attempt may have left its first file
  const names = (await readdir(folder)).filter((name) => name !== `${LAYOUT_FILE}.partial`)
  if (names.length > 0 && !names.includes(LAYOUT_FILE))
    throw new OciError('E_BAD_TARGET', `${folder} is neither empty nor an OCI image layout`, { path: folder })
  if (names.length === 0) await replace(join(folder, LAYOUT_FILE), LAYOUT_CONTENT)
  await makeFolders(join(folder, 'blobs/sha256'))
  if (!names.includes(INDEX_FILE)) return { rest: {}, entries: [] }
  const path = join(folder, INDEX_FILE)
  if ((await stat(path)).size > MAX_DOCUMENT_BYTES) throw new OciError('E_FORMAT', `${path} is too large`, { path })
  const bytes = await readFile(path)
  // validated, but kept with all fields: platforms and the like belong to whoever wrote them
  parseOciIndex(bytes)
  const { manifests, ...rest } = parseObject(bytes, path)
  return { rest, entries: manifests as readonly Descriptor[] }
}

async function writeBlob(folder: string, content: BlobContent, mode: number, options: CopyOptions): Promise<void> {
  const path = join(folder, blobName(content.digest))
  if ((await sizeOf(path)) === content.sizeBytes) return options.onBytes?.(content.sizeBytes)
  const partial = `${path}.partial`
  if (!(await writePartial(partial, mode, inputOf(content), options))) throw wrongBytes(content)
  await rename(partial, path)
}

async function sizeOf(path: string): Promise<number | undefined> {
  const stats = await stat(path).catch(ifAbsent)
  return stats?.isFile() === true ? stats.size : undefined
}

/** Replaces a small file atomically. */
async function replace(path: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${path}.partial`
  try {
    await writeFile(temporary, bytes, { mode: ANY_FILE, flush: true })
    await rename(temporary, path)
  } catch (error) {
    await unlink(temporary).catch(() => undefined)
    throw error
  }
}
