import { constants } from 'node:fs'
import type { FilePort } from '@svc/internal-files'
import { beginEarlyWrite } from './early-write.ts'
import { encodeError, ioError } from './errors.ts'
import { identityOf, isSame } from './file-identity.ts'
import { HashSession } from './hash-session.ts'
import { closeQuietly } from './part-file.ts'
import type { FileIdentity } from './store.ts'
import type { NamedOutcome, NamedRun, SessionResult } from './thread-protocol.ts'

/** Opening a FIFO must not hang; the type is checked on the descriptor. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY

/** Opens, reads, hashes and writes files, in a hashing thread; each succeeds or fails alone. */
export async function runNamed(port: FilePort, run: NamedRun): Promise<NamedOutcome[]> {
  const outcomes: NamedOutcome[] = []
  for (const file of run.files) {
    try {
      outcomes.push({ result: await runOne(port, run, file) })
    } catch (error) {
      outcomes.push({ error: encodeError(error) })
    }
  }
  return outcomes
}

async function runOne(
  port: FilePort,
  { attachments, writeEarly }: NamedRun,
  { path, identity, part }: NamedRun['files'][number]
): Promise<SessionResult> {
  const fd = open(port, path)
  let session: HashSession | undefined
  let endEarly: (() => void) | undefined
  try {
    requireIdentity(fd, identity)
    const sizeBytes = Number(identity.size)
    session = await HashSession.begin(port, { attachments, sizeBytes, maxBytes: sizeBytes, part })
    if (writeEarly && sizeBytes > 0) endEarly = beginEarlyWrite(port, part)
    await session.pump({ fd })
    requireIdentity(fd, identity)
    return session.finish()
  } catch (error) {
    await session?.drop()
    throw error
  } finally {
    endEarly?.()
    closeQuietly(port, fd)
  }
}

function open(port: FilePort, path: string): number {
  try {
    return port.openSync(path, READ)
  } catch (error) {
    throw ioError(error, 'open source', path)
  }
}

/** @throws CasError `E_IO` unless it is still the expected regular file, unmodified */
function requireIdentity(fd: number, expected: FileIdentity): void {
  try {
    const found = identityOf(fd)
    if (!found.isFile() || !isSame(found, expected)) throw new Error('the file changed after it was listed')
  } catch (error) {
    throw ioError(error, 'read source')
  }
}
