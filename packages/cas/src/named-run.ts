import { hash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FilePort, writeFullySync } from '@svc/internal-files'
import { digestFromHex } from '@svc/ref'
import { READ_BYTES } from './block-pipe.ts'
import { EarlyWrite } from './early-write.ts'
import { CasError, encodeError, ioError } from './errors.ts'
import { discardPart, HashSession } from './hash-session.ts'
import { NamedFile } from './named-file.ts'
import { loadAttached, startAttached } from './pass-hasher.ts'
import type { NamedRun, SessionResult, SmallRunOutcome } from './thread-protocol.ts'

const NEW_PART = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/** The bytes of one file. All files share it, so none may use it across an await. */
let scratch: Uint8Array | undefined

/** Opens, reads, hashes and writes files, in a hashing thread; each succeeds or fails alone. */
export async function runNamed(port: FilePort, run: NamedRun): Promise<SmallRunOutcome[]> {
  const outcomes: SmallRunOutcome[] = []
  try {
    await loadAttached(run.attachments)
  } catch (error) {
    return run.paths.map(() => ({ error: encodeError(error) }))
  }
  for (const [i, path] of run.paths.entries()) {
    let file: NamedFile | undefined
    try {
      file = NamedFile.openPacked(port, path, run.identities, i)
      const result = file.sizeBytes <= READ_BYTES ? whole(port, run, i, file) : await inPieces(port, run, i, file)
      outcomes.push({ result })
    } catch (error) {
      outcomes.push({ error: encodeError(error) })
    } finally {
      file?.close()
    }
  }
  return outcomes
}

/** A file that fits into the buffer: one read, one call of each hash, one write. */
function whole(
  port: FilePort,
  { parts, attachments, writeEarly }: NamedRun,
  index: number,
  file: NamedFile
): SessionResult {
  const part = parts[index]!
  const { sizeBytes } = file
  const bytes = readWhole(port, file)
  const digest = digestFromHex(hash('sha256', bytes, 'hex'))
  const attached = startAttached(attachments, sizeBytes)
  attached.update(bytes)
  let partFd: number | undefined
  let early: EarlyWrite | undefined
  try {
    partFd = port.openSync(part, NEW_PART, 0o600)
    if (writeEarly && sizeBytes > 0) early = new EarlyWrite(port, part)
    writeFullySync(port, partFd, bytes, 0)
  } catch (error) {
    early?.close()
    discardPart(port, partFd, partFd === undefined ? undefined : part)
    throw ioError(error, 'write part', part)
  }
  early?.close()
  try {
    file.check()
    return { digest, sizeBytes, attachments: attached.finish(), partFd }
  } catch (error) {
    discardPart(port, partFd, part)
    throw error
  }
}

/** @throws CasError `E_IO`, `E_SIZE_MISMATCH` when it ends too early; what grew is found by its identity */
function readWhole(port: FilePort, { fd, sizeBytes }: NamedFile): Uint8Array {
  scratch ??= new Uint8Array(READ_BYTES)
  let length = 0
  while (length < sizeBytes) {
    let count: number
    try {
      count = port.readSync(fd, scratch, length, sizeBytes - length, length)
    } catch (error) {
      throw ioError(error, 'read source')
    }
    if (count === 0)
      throw new CasError('E_SIZE_MISMATCH', `${length} bytes instead of the ${sizeBytes} that were announced`, {
        sizeBytes: length,
        expectedSizeBytes: sizeBytes
      })
    length += count
  }
  return scratch.subarray(0, length)
}

async function inPieces(
  port: FilePort,
  { parts, attachments, writeEarly }: NamedRun,
  index: number,
  file: NamedFile
): Promise<SessionResult> {
  const { sizeBytes } = file
  const part = parts[index]!
  const session = await HashSession.begin(port, { flat: true, attachments, sizeBytes, maxBytes: sizeBytes, part })
  let early: EarlyWrite | undefined
  try {
    if (writeEarly) early = new EarlyWrite(port, part)
    await session.pump({ fd: file.fd })
    file.check()
    return session.finish()
  } catch (error) {
    await session.drop()
    throw ioError(error, 'write part', part)
  } finally {
    early?.close()
  }
}
