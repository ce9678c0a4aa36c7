import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { openRegular, readChunks } from '@svc/internal-files'
import { extract } from 'tar-stream'
import { ViewError } from './errors.ts'
import { type Blob, corrupt } from './place.ts'

const BLOCK = 512
/** Limit of members in one tar. Tokenizers have a dozen, adapters two. */
const MAX_MEMBERS = 1_024

/** One file of a tar, while its bytes are read. */
export interface TarMemberReader {
  readonly name: string
  readonly sizeBytes: number
  /** Must be read to its end before the next member is requested. */
  readonly bytes: AsyncIterable<Uint8Array>
}

/**
 * Reads the members of an artifact's tar and hashes the tar on the way: its digest is verified only when the last
 * member was returned. Names are those in the tar, unchecked.
 * @throws ViewError `E_BAD_TAR` for anything but plain files (links, devices, extension headers) and for more than
 *   1,024 of them, `E_CORRUPT_BLOB`; errors of the file system as they are.
 */
export async function* readTarMembers(blob: Blob): AsyncGenerator<TarMemberReader, void, void> {
  await using handle = await openRegular(blob.path)
  const hash = createHash('sha256')
  const unpack = extract()
  let failure: unknown
  const source = Readable.from(plainFilesOnly(blob, readChunks(handle), (chunk) => hash.update(chunk)))
  const fed = pipeline(source, unpack).catch((error: unknown) => {
    failure ??= error
  })
  /** A defect found in the bytes takes precedence over the library's error that it caused. */
  const explained = async (error: unknown): Promise<unknown> => {
    if (error instanceof ViewError) return error
    unpack.destroy()
    await fed
    const first = failure ?? error
    if (first instanceof ViewError || typeof (first as { errno?: unknown }).errno === 'number') return first
    return badTar(blob, `cannot be read: ${(error as Error).message}`, error)
  }
  async function* bytesOf(entry: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
    try {
      yield* entry
    } catch (error) {
      throw await explained(error)
    }
  }
  try {
    let count = 0
    for await (const entry of unpack) {
      if (++count > MAX_MEMBERS) throw badTar(blob, `has more than ${MAX_MEMBERS} members`)
      const { name, size } = entry.header
      yield { name, sizeBytes: size ?? 0, bytes: bytesOf(entry as unknown as AsyncIterable<Uint8Array>) }
    }
    await fed
    if (failure !== undefined) throw failure
    const actual = `sha256:${hash.digest('hex')}`
    if (actual !== blob.digest) throw corrupt(blob, `contains the bytes of ${actual}`)
  } catch (error) {
    throw await explained(error)
  } finally {
    unpack.destroy()
    await fed
  }
}

/**
 * Passes a tar on as long as its headers are of the form that artifacts are sealed with: plain files with octal sizes.
 * The library behind it buffers extension headers of any stated length in memory, so none may reach it.
 */
async function* plainFilesOnly(
  blob: Blob,
  chunks: AsyncIterable<Uint8Array>,
  onChunk: (chunk: Uint8Array) => void
): AsyncGenerator<Uint8Array, void, void> {
  const header = Buffer.alloc(BLOCK)
  let filled = 0
  let skip = 0
  let ended = false
  for await (const chunk of chunks) {
    onChunk(chunk)
    for (let at = 0; at < chunk.length; ) {
      if (ended) {
        // the library would continue reading after the end.
        if (chunk.subarray(at).some((byte) => byte !== 0)) throw badTar(blob, 'continues after its end')
        break
      }
      if (skip > 0) {
        const step = Math.min(skip, chunk.length - at)
        skip -= step
        at += step
        continue
      }
      const part = chunk.subarray(at, at + BLOCK - filled)
      header.set(part, filled)
      filled += part.length
      at += part.length
      if (filled < BLOCK) continue
      filled = 0
      if (header.every((byte) => byte === 0)) {
        ended = true
        continue
      }
      const type = header[156]
      const size = /^([0-7]{1,11})[\0 ]/.exec(header.toString('latin1', 124, 136))?.[1]
      if ((type !== 0 && type !== 0x30) || size === undefined)
        throw badTar(blob, 'contains something other than plain files')
      skip = Math.ceil(Number.parseInt(size, 8) / BLOCK) * BLOCK
    }
    // copied: the chunk's buffer is reused while the library may still hold it.
    yield Uint8Array.from(chunk)
  }
  if (!ended) throw badTar(blob, 'ends early')
}

const badTar = ({ digest, path }: Blob, what: string, cause?: unknown): ViewError =>
  new ViewError('E_BAD_TAR', `the tar ${digest} ${what}`, { digest, path }, cause)
