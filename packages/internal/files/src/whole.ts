import { constants } from 'node:fs'
import { ifAbsent } from '@svc/internal-errors'
import type { FilePort } from './file-port.ts'
import { QuickReads } from './quick-reads.ts'

/** Non-blocking, so that opening a pipe of that name cannot hang. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK

/** Writes all of `bytes` at `position`, continuing after short writes. */
export function writeFullySync(port: FilePort, fd: number, bytes: Uint8Array, position: number): void {
  let done = 0
  while (done < bytes.length) {
    const count = port.writeSync(fd, bytes, done, bytes.length - done, position + done)
    if (count === 0) throw new Error('the file system accepted no bytes')
    done += count
  }
}

export async function writeFully(port: FilePort, fd: number, bytes: Uint8Array, position: number): Promise<void> {
  let done = 0
  while (done < bytes.length) {
    const count = await port.write(fd, bytes, done, bytes.length - done, position + done)
    if (count === 0) throw new Error('the file system accepted no bytes')
    done += count
  }
}

/**
 * Reads a small file; undefined when it, or its folder, does not exist. Follows a link.
 * @throws system errors; RangeError for a file of more than `maxBytes`
 */
export async function readWhole(port: FilePort, path: string, maxBytes: number): Promise<Uint8Array | undefined> {
  const pooled = (): Promise<Uint8Array | undefined> =>
    withFile(port, path, async (fd, size) => {
      if (size > maxBytes) throw tooLarge(path, size, maxBytes)
      return readUpTo(port, fd, new Uint8Array(size), 0)
    })
  const found = await quick.run(
    () => readSmall(port, path, maxBytes),
    async () => 'large' as const
  )
  return found === 'large' ? pooled() : found
}

const quick = new QuickReads()
/** Larger files always go through the thread pool. */
const SMALL_BYTES = 128 << 10

const tooLarge = (path: string, size: number, maxBytes: number): RangeError =>
  new RangeError(`${path} has ${size} bytes, and the limit is ${maxBytes}`)

/** Like {@link readWhole}, on this thread; `large` for a file that is too large for that. */
function readSmall(port: FilePort, path: string, maxBytes: number): Uint8Array | 'large' | undefined {
  let fd: number
  try {
    fd = port.openSync(path, READ)
  } catch (error) {
    return ifAbsent(error)
  }
  try {
    const { size } = port.fstatSync(fd)
    if (size > maxBytes) throw tooLarge(path, size, maxBytes)
    if (size > SMALL_BYTES) return 'large'
    return readUpToSync(port, fd, new Uint8Array(size), 0)
  } finally {
    port.closeSync(fd)
  }
}

interface FileWindow {
  /** Of the whole file. */
  readonly sizeBytes: number
  readonly start: number
  readonly end: number
}

/** The bytes `[start, end)` of a file; undefined when it does not exist or has another size. @throws system errors */
export function readWindow(port: FilePort, path: string, window: FileWindow): Promise<Uint8Array | undefined> {
  const { sizeBytes, start, end } = window
  return withFile(port, path, async (fd, size) => {
    if (size !== sizeBytes) return undefined
    const bytes = await readUpTo(port, fd, new Uint8Array(end - start), start)
    return bytes.length === end - start ? bytes : undefined
  })
}

async function withFile<T>(
  port: FilePort,
  path: string,
  work: (fd: number, sizeBytes: number) => Promise<T>
): Promise<T | undefined> {
  const fd = await port.open(path, READ).catch(ifAbsent)
  if (fd === undefined) return undefined
  try {
    return await work(fd, (await port.fstat(fd)).size)
  } finally {
    await port.close(fd)
  }
}

/** Fills `target` from `position`; returns less of it if the file ends earlier. */
export async function readUpTo(port: FilePort, fd: number, target: Uint8Array, position: number): Promise<Uint8Array> {
  let done = 0
  while (done < target.length) {
    const count = await port.read(fd, target, done, target.length - done, position + done)
    if (count === 0) break
    done += count
  }
  return target.subarray(0, done)
}

export function readUpToSync(port: FilePort, fd: number, target: Uint8Array, position: number): Uint8Array {
  let done = 0
  while (done < target.length) {
    const count = port.readSync(fd, target, done, target.length - done, position + done)
    if (count === 0) break
    done += count
  }
  return target.subarray(0, done)
}
