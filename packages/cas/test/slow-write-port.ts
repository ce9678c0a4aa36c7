import { appendFileSync, constants } from 'node:fs'
import { threadId } from 'node:worker_threads'
import { type FilePort, nodeFilePort } from '@svc/internal-files'

export interface SlowWriteOptions {
  /** A line for each write: thread, position, length. */
  readonly log: string
  /** Writes by the thread that helps, failed ones too. The one that made the part waits in its first write for the first of them. */
  readonly helped?: SharedArrayBuffer
  /** The other thread finds the disk full. */
  readonly helperFails?: boolean
  /** The other thread has no descriptor left. */
  readonly helperCannotOpen?: boolean
}

/** Far longer than the busiest machine takes: without help the test fails by what it expects. */
const PATIENCE_MS = 20_000

/** A port on which the thread that made the part is behind, so that the one that reads the file helps it. */
export default ({ log, helped, helperFails, helperCannotOpen }: SlowWriteOptions): FilePort => {
  const count = helped && new Int32Array(helped)
  const parts = new Map<number, 'own' | 'helped'>()
  return {
    ...nodeFilePort,
    openSync: (path, flags, mode) => {
      const isHelper = path.endsWith('.part') && (flags & constants.O_CREAT) === 0
      if (isHelper && helperCannotOpen === true) throw Object.assign(new Error('too many'), { code: 'EMFILE' })
      const fd = nodeFilePort.openSync(path, flags, mode)
      parts.delete(fd)
      if (path.endsWith('.part')) parts.set(fd, isHelper ? 'helped' : 'own')
      return fd
    },
    writeSync: (fd, bytes, offset, length, position) => {
      const part = parts.get(fd)
      if (part === 'own' && count !== undefined) Atomics.wait(count, 0, 0, PATIENCE_MS)
      if (part === 'helped' && count !== undefined) {
        Atomics.add(count, 0, 1)
        Atomics.notify(count, 0)
      }
      if (part === 'helped' && helperFails === true) throw Object.assign(new Error('full'), { code: 'ENOSPC' })
      if (part !== undefined) appendFileSync(log, `${threadId} ${position} ${length}\n`)
      return nodeFilePort.writeSync(fd, bytes, offset, length, position)
    }
  }
}
