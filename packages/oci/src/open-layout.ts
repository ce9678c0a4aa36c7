import { type FileHandle, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ifAbsent } from '@svc/internal-errors'
import { openRegular, readFully } from '@svc/internal-files'
import { TAR_BLOCK, tarPadding } from '@svc/internal-tar'
import { type Descriptor, digestOf, MAX_DOCUMENT_BYTES, type OciIndex } from './document.ts'
import { ioError, OciError } from './errors.ts'
import { blobName, INDEX_FILE, LAYOUT_FILE } from './layout.ts'
import { type ReadOciDocument, readOciDocumentHere } from './read-document.ts'
import { readPaxRecords, readTarHeader } from './tar-header.ts'

const MAX_MEMBERS = 200_000
const MAX_PAX_BYTES = 1 << 20

/** Where a blob's bytes lie: a range of a file. */
export interface BlobPlace {
  readonly path: string
  readonly offset: number
  readonly sizeBytes: number
}

/** An OCI image layout, in a folder or in a tar. */
export interface OpenedLayout {
  readonly index: OciIndex
  /**
   * A small blob, read whole and checked against its digest.
   * @throws OciError `E_NOT_FOUND`, `E_FORMAT`, `E_DIGEST_MISMATCH`, `E_IO`
   */
  document(descriptor: Pick<Descriptor, 'digest' | 'size'>): Promise<Uint8Array>
  /**
   * Where a blob lies. Its bytes are not read. @throws OciError `E_NOT_FOUND`, `E_FORMAT` when its size is not the
   * stated one
   */
  place(descriptor: Pick<Descriptor, 'digest' | 'size'>): Promise<BlobPlace>
}

type Find = (name: string) => Promise<BlobPlace | undefined>

/**
 * Opens a layout: a folder, or an uncompressed tar of one. Of a tar it reads all headers and no bodies.
 * @param readDocument reads its index, e.g. in a thread; default: on the thread of the caller
 * @throws OciError `E_NOT_FOUND`, `E_FORMAT`, `E_UNSUPPORTED` for a compressed archive, `E_IO`
 */
export async function openLayout(
  path: string,
  readDocument: ReadOciDocument = readOciDocumentHere
): Promise<OpenedLayout> {
  try {
    const stats = await stat(path).catch(ifAbsent)
    if (stats === undefined) throw new OciError('E_NOT_FOUND', `${path} does not exist`, { path })
    if (!stats.isDirectory() && !stats.isFile()) throw noLayout(path)
    return await layoutOf(path, stats.isDirectory() ? inFolder(path) : await inArchive(path), readDocument)
  } catch (error) {
    throw ioError(error, 'read the layout', path)
  }
}

async function layoutOf(path: string, find: Find, readDocument: ReadOciDocument): Promise<OpenedLayout> {
  const index = await find(INDEX_FILE)
  if ((await find(LAYOUT_FILE)) === undefined || index === undefined) throw noLayout(path)
  const place: OpenedLayout['place'] = async ({ digest, size }) => {
    const found = await find(blobName(digest))
    if (found === undefined) throw new OciError('E_NOT_FOUND', `${path} lacks the blob ${digest}`, { path, digest })
    if (found.sizeBytes === size) return found
    const message = `the blob ${digest} in ${path} has ${found.sizeBytes} bytes instead of ${size}`
    throw new OciError('E_FORMAT', message, { path, digest })
  }
  return {
    index: await readDocument('index', await readSmall(index)),
    place,
    document: async (descriptor) => {
      const { digest } = descriptor
      const bytes = await readSmall(await place(descriptor))
      if (digestOf(bytes) === digest) return bytes
      const message = `the blob ${digest} in ${path} does not match its digest`
      throw new OciError('E_DIGEST_MISMATCH', message, { path, digest })
    }
  }
}

const inFolder =
  (folder: string): Find =>
  async (name) => {
    const path = join(folder, name)
    const stats = await stat(path).catch(ifAbsent)
    return stats?.isFile() === true ? { path, offset: 0, sizeBytes: stats.size } : undefined
  }

async function inArchive(path: string): Promise<Find> {
  await using handle = await openRegular(path, { follow: true })
  const members = await membersOf(handle, path)
  return async (name) => members.get(name)
}

async function membersOf(handle: FileHandle, path: string): Promise<Map<string, BlobPlace>> {
  const broken = (what: string): OciError => new OciError('E_FORMAT', `${path} ${what}`, { path })
  const { size: fileBytes } = await handle.stat()
  const members = new Map<string, BlobPlace>()
  const block = Buffer.alloc(TAR_BLOCK)
  let pax: { path?: string; size?: number } = {}
  let count = 0
  for (let at = 0; at + TAR_BLOCK <= fileBytes; ) {
    if ((await handle.read(block, 0, TAR_BLOCK, at)).bytesRead < TAR_BLOCK) break
    if (at === 0 && isCompressed(block)) {
      throw new OciError('E_UNSUPPORTED', `${path} is compressed; unpack it first: only plain tars are read in place`, {
        path
      })
    }
    const entry = readTarHeader(block)
    if (entry === 'bad') throw broken('is not a tar, or a damaged one')
    if (entry === undefined) break
    if (++count > MAX_MEMBERS) throw broken(`has more than ${MAX_MEMBERS} members`)
    const sizeBytes = pax.size ?? entry.sizeBytes
    const offset = at + TAR_BLOCK
    if (offset + sizeBytes > fileBytes) throw broken('ends in the middle of a file')
    at = offset + sizeBytes + tarPadding(sizeBytes)
    if (entry.type === 'x') {
      if (sizeBytes > MAX_PAX_BYTES) throw broken('has a pax header of more than 1 MiB')
      const body = Buffer.alloc(sizeBytes)
      await handle.read(body, 0, sizeBytes, offset)
      const records = readPaxRecords(body)
      if (records === undefined) throw broken('has a malformed pax header')
      pax = records
      continue
    }
    const name = (pax.path ?? entry.name).replace(/^(?:\.\/)+/, '')
    // duplicate names are refused: readers would disagree on which one counts
    if (entry.type === '0' || entry.type === '\0') {
      if (members.has(name)) throw broken(`has two files ${JSON.stringify(name.slice(0, 200))}`)
      members.set(name, { path, offset, sizeBytes })
    }
    pax = {}
  }
  return members
}

/** gzip, zstd, xz, bzip2 */
const isCompressed = (block: Buffer): boolean =>
  ['1f8b', '28b52ffd', 'fd377a58', '425a68'].some((magic) => block.toString('hex').startsWith(magic))

async function readSmall({ path, offset, sizeBytes }: BlobPlace): Promise<Uint8Array> {
  if (sizeBytes > MAX_DOCUMENT_BYTES)
    throw new OciError('E_FORMAT', `a document in ${path} has more than ${MAX_DOCUMENT_BYTES} bytes`, { path })
  await using handle = await openRegular(path, { follow: true })
  const bytes = Buffer.alloc(sizeBytes)
  if ((await readFully(handle, bytes, offset)) === sizeBytes) return bytes
  throw new OciError('E_FORMAT', `${path} ends in the middle of a document`, { path })
}

const noLayout = (path: string): OciError =>
  new OciError('E_FORMAT', `${path} is not an OCI image layout: it lacks ${LAYOUT_FILE} and ${INDEX_FILE}`, { path })
