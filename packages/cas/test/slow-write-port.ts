import { appendFileSync, constants } from 'node:fs'
import { threadId } from 'node:worker_threads'
import { type FilePort, nodeFilePort } from '@svc/internal-files'

export interface SlowWriteOptions {
  /** A line for each write: thread, position, length. */
  readonly log: string
  /** How long a write to a part keeps the thread that hashes its leaves. */
  readonly slowMs: number
  /** The other thread finds the disk full. */
  readonly helperFails?: boolean
  /** The other thread has no descriptor left. */
  readonly helperCannotOpen?: boolean
}

/** A port on which writing is slow in the thread that made the part, so that the one that reads the file helps it. */
export default ({ log, slowMs, helperFails, helperCannotOpen }: SlowWriteOptions): FilePort => {
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
      if (part === 'helped' && helperFails === true) throw Object.assign(new Error('full'), { code: 'ENOSPC' })
      if (part === 'own') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, slowMs)
      if (part !== undefined) appendFileSync(log, `${threadId} ${position} ${length}\n`)
      return nodeFilePort.writeSync(fd, bytes, offset, length, position)
    }
  }
}
