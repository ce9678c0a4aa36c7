import { createHash, type Hash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { readChunks, readFully } from '@svc/internal-files'
import { readTarHeader, TAR_BLOCK, tarPadding } from '@svc/internal-tar'
import { ViewError } from './errors.ts'
import { type Blob, corrupt } from './place.ts'
import { openRegular } from './written-file.ts'

/** Limit of members in one tar. Tokenizers have a dozen, adapters two. */
const MAX_MEMBERS = 1_024

export interface TarMemberReader {
  readonly name: string
  readonly sizeBytes: number
  /** Must be read to its end before the next member is requested. A chunk is valid until the next one is requested. */
  readonly bytes: AsyncIterable<Uint8Array>
}

/**
 * Reads the members of an artifact's tar and hashes the tar on the way: its digest is verified only when the last
 * member was returned. Names are those in the tar, unchecked.
 * @throws ViewError `E_BAD_TAR` for anything but plain files (links, devices, extension headers) and for more than
 *   1,024 of them, `E_CORRUPT_BLOB`; errors of the file system as they are.
 */
export async function* readTarMembers(blob: Blob): AsyncGenerator<TarMemberReader, void, void> {
  const { handle } = await openRegular(blob.path)
  const tar = { blob, handle, hash: createHash('sha256') }
  try {
    const header = Buffer.alloc(TAR_BLOCK)
    let at = 0
    for (let count = 0; ; count++) {
      if ((await readFully(handle, header, at)) < TAR_BLOCK) throw badTar(blob, 'ends early')
      tar.hash.update(header)
      at += TAR_BLOCK
      const entry = readTarHeader(header)
      if (entry === undefined) break
      if (entry === 'bad' || !['0', '\0'].includes(entry.type))
        throw badTar(blob, 'holds something else than plain files')
      if (count === MAX_MEMBERS) throw badTar(blob, `has more than ${MAX_MEMBERS} members`)
      const { name, sizeBytes } = entry
      yield { name, sizeBytes, bytes: bytesOf(tar, at, sizeBytes) }
      at += sizeBytes + tarPadding(sizeBytes)
    }
    for await (const chunk of readChunks(handle, at)) {
      if (chunk.some((byte) => byte !== 0)) throw badTar(blob, 'goes on behind its end')
      tar.hash.update(chunk)
    }
    const actual = `sha256:${tar.hash.digest('hex')}`
    if (actual !== blob.digest) throw corrupt(blob, `holds the bytes of ${actual}`)
  } finally {
    await handle.close()
  }
}

interface OpenTar {
  readonly blob: Blob
  readonly handle: FileHandle
  readonly hash: Hash
}

async function* bytesOf(
  { blob, handle, hash }: OpenTar,
  start: number,
  sizeBytes: number
): AsyncGenerator<Uint8Array, void, void> {
  let left = sizeBytes
  for await (const chunk of readChunks(handle, start, start + sizeBytes)) {
    hash.update(chunk)
    left -= chunk.length
    yield chunk
  }
  const padding = Buffer.alloc(tarPadding(sizeBytes))
  if (left > 0 || (await readFully(handle, padding, start + sizeBytes)) < padding.length)
    throw badTar(blob, 'ends early')
  hash.update(padding)
}

const badTar = ({ digest, path }: Blob, what: string): ViewError =>
  new ViewError('E_BAD_TAR', `the tar ${digest} ${what}`, { digest, path })
