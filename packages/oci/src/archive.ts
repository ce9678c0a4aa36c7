import { type FileHandle, link, lstat, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errnoOf, ifAbsent } from '@svc/internal-errors'
import { isLinkRefused, nodeFilePort, syncFolder, writeAt } from '@svc/internal-files'
import { tarPadding } from '@svc/internal-tar'
import { ANY_FILE, claimPartial, OWN_FILE } from './claim.ts'
import { type BlobContent, type CopyOptions, contentOfBytes, copyContent } from './content.ts'
import { ioError, OciError } from './errors.ts'
import { blobName, blobsOf, entriesOf, INDEX_FILE, indexBytes, LAYOUT_CONTENT, LAYOUT_FILE } from './layout.ts'
import type { PackedImage } from './pack.ts'
import { TAR_END, tarHeader } from './tar-header.ts'

interface ArchiveMember {
  readonly head: Uint8Array
  readonly content: BlobContent
  readonly start: number
}

/**
 * Writes images into one file, a tar of an OCI image layout. Its bytes depend on the images alone. They are written to
 * `<path>.partial`; a later call resumes from that file: it hashes what is there and rewrites from the first blob that
 * is wrong. With a withheld image the file is its owner's alone (mode 0600).
 * @throws OciError `E_BAD_TARGET` when the path exists or another call is writing it, `E_DIGEST_MISMATCH`,
 *   `E_NO_SPACE`, `E_IO`; on abort the signal's reason
 */
export async function writeArchive(
  path: string,
  images: readonly PackedImage[],
  options: CopyOptions = {}
): Promise<void> {
  try {
    await requireAbsent(path)
    const partial = `${path}.partial`
    const isWithheld = images.some((image) => image.isWithheld === true)
    await using handle = await claimPartial(partial, isWithheld ? OWN_FILE : ANY_FILE)
    const { members, end } = planned(images)
    for (const member of members) await writeMember(handle, member, options)
    await writeAt(handle, TAR_END, end)
    await handle.truncate(end + TAR_END.length)
    await handle.sync()
    // name it while the partial is still locked, before another call can claim it
    await nameArchive(partial, path)
    await syncFolder(nodeFilePort, dirname(path))
  } catch (error) {
    throw ioError(error, 'write the archive', path, options.signal)
  }
}

/** Bytes of an archive or a layout of these images, without names and headers. */
export const bytesOf = (images: readonly PackedImage[]): number =>
  blobsOf(images).reduce((total, { sizeBytes }) => total + sizeBytes, 0)

async function requireAbsent(path: string): Promise<void> {
  if ((await lstat(path).catch(ifAbsent)) !== undefined) throw taken(path)
}

const taken = (path: string, cause?: unknown): OciError =>
  new OciError('E_BAD_TARGET', `${path} already exists`, { path }, cause)

/**
 * Links rather than renames, since a link never replaces an existing file. On file systems without links (common on
 * removable disks) it checks once more that the name is free, and renames.
 */
async function nameArchive(partial: string, path: string): Promise<void> {
  try {
    await link(partial, path)
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') throw taken(path, error)
    if (!isLinkRefused(error)) throw error
    await requireAbsent(path)
    return rename(partial, path)
  }
  await unlink(partial)
}

function planned(images: readonly PackedImage[]): { readonly members: ArchiveMember[]; readonly end: number } {
  const named = [
    [LAYOUT_FILE, contentOfBytes(LAYOUT_CONTENT)] as const,
    ...blobsOf(images).map((blob) => [blobName(blob.digest), blob] as const),
    [INDEX_FILE, contentOfBytes(indexBytes(entriesOf(images)))] as const
  ]
  const members: ArchiveMember[] = []
  let start = 0
  for (const [name, content] of named) {
    const head = tarHeader(name, content.sizeBytes)
    members.push({ head, content, start })
    start += head.length + content.sizeBytes + tarPadding(content.sizeBytes)
  }
  return { members, end: start }
}

async function writeMember(
  handle: FileHandle,
  { head, content, start }: ArchiveMember,
  options: CopyOptions
): Promise<void> {
  options.signal?.throwIfAborted()
  const { size } = await handle.stat()
  const body = start + head.length
  await writeAt(handle, head, start)
  await copyContent(content, handle, body, Math.max(0, size - body), options)
  await writeAt(handle, new Uint8Array(tarPadding(content.sizeBytes)), body + content.sizeBytes)
}
