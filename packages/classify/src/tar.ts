import { MAX_USTAR_BYTES, TAR_BLOCK, tarPadding, ustarHeader } from '@svc/internal-tar'
import { compareText } from '@svc/ref'
import { ClassifyError } from './errors.ts'
import { nameProblem } from './names.ts'

const NAME_BYTES = 100
const PREFIX_BYTES = 155
const encoder = new TextEncoder()

/** A future member: its name in the tar and its exact size. */
export interface TarFile {
  readonly name: string
  readonly sizeBytes: number
}

/** A member with its position in the tar; offsets are in bytes from the start of the tar, the data is padded to 512. */
export interface PlannedTarFile<T extends TarFile = TarFile> {
  readonly file: T
  /** The member's 512-byte header. */
  readonly header: Uint8Array
  readonly headerOffset: number
  readonly dataOffset: number
}

/** The layout of a tar, computed before any content is read. */
export interface TarPlan<T extends TarFile = TarFile> {
  /** In tar order: sorted by name bytes. */
  readonly members: readonly PlannedTarFile<T>[]
  /** Of the whole tar. */
  readonly sizeBytes: number
}

/**
 * Lays out the deterministic tar of regular files (spec doc.19): POSIX ustar, byte for byte what GNU tar writes for
 * names sorted by bytes with `--format=ustar --mtime=@0 --owner=:0 --group=:0 --numeric-owner --mode=0644 -b1`.
 * @throws ClassifyError `E_TAR_LIMIT` for a name or size that a ustar header cannot hold, `E_BAD_NAME` for a name that
 *   is forbidden or occurs twice.
 */
export function planTar<T extends TarFile>(files: Iterable<T>): TarPlan<T> {
  const members: PlannedTarFile<T>[] = []
  let offset = 0
  let previous: string | undefined
  for (const file of [...files].sort((a, b) => compareText(a.name, b.name))) {
    const reason = file.name === previous ? 'duplicate' : nameProblem(file.name)
    if (reason)
      throw new ClassifyError(
        'E_BAD_NAME',
        `the tar member name ${JSON.stringify(file.name)} is not allowed (${reason})`,
        { name: file.name, reason }
      )
    members.push({ file, header: headerOf(file), headerOffset: offset, dataOffset: offset + TAR_BLOCK })
    offset += TAR_BLOCK + file.sizeBytes + tarPadding(file.sizeBytes)
    previous = file.name
  }
  return { members, sizeBytes: offset + 2 * TAR_BLOCK }
}

/** A member that can be read. */
export interface TarSource extends TarFile {
  /** Called once, when the member is written. */
  open(): AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

/**
 * Streams the tar of {@link planTar}; members are opened one after the other, and their chunks are passed on unchanged.
 * @throws as {@link planTar} before the first byte; ClassifyError `E_TAR_CONTENT` when a member has more or fewer bytes
 *   than announced (the output so far is then not a valid tar); whatever `open` throws.
 */
export async function* writeTar(files: Iterable<TarSource>): AsyncGenerator<Uint8Array, void, void> {
  for (const { file, header } of planTar(files).members) {
    yield header
    let left = file.sizeBytes
    for await (const chunk of file.open()) {
      left -= chunk.length
      if (left < 0) throw wrongLength(file, 'more')
      if (chunk.length > 0) yield chunk
    }
    if (left > 0) throw wrongLength(file, 'fewer')
    const padding = tarPadding(file.sizeBytes)
    if (padding > 0) yield new Uint8Array(padding)
  }
  yield new Uint8Array(2 * TAR_BLOCK)
}

const wrongLength = (file: TarFile, which: string): ClassifyError =>
  new ClassifyError(
    'E_TAR_CONTENT',
    `${JSON.stringify(file.name)} has ${which} bytes than the ${file.sizeBytes} announced; it changed meanwhile`,
    { name: file.name }
  )

function headerOf({ name, sizeBytes }: TarFile): Uint8Array {
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0 || sizeBytes > MAX_USTAR_BYTES)
    throw new ClassifyError(
      'E_TAR_LIMIT',
      `${JSON.stringify(name)} has ${sizeBytes} bytes; a tar member has at most ${MAX_USTAR_BYTES}`,
      { name, reason: 'size' }
    )
  return ustarHeader({ ...splitName(name), sizeBytes })
}

/** Splits like GNU tar: names over 100 bytes at the last slash that leaves at most 155 bytes before it. */
function splitName(name: string): { readonly prefix: Uint8Array; readonly name: Uint8Array } {
  const bytes = encoder.encode(name)
  if (bytes.length <= NAME_BYTES) return { prefix: new Uint8Array(0), name: bytes }
  const slash = bytes.lastIndexOf(0x2f, PREFIX_BYTES)
  if (slash <= 0 || bytes.length - slash - 1 > NAME_BYTES)
    throw new ClassifyError(
      'E_TAR_LIMIT',
      `the path ${JSON.stringify(name)} does not fit into a tar header: ${PREFIX_BYTES} bytes of folders and ` +
        `${NAME_BYTES} of name; shorten it at its source`,
      { name, reason: 'name' }
    )
  return { prefix: bytes.subarray(0, slash), name: bytes.subarray(slash + 1) }
}
