import * as fs from 'node:fs'
import { errnoOf } from '@svc/internal-errors'
import { isRunning, processStart, tryFlock } from '@svc/internal-files'
import { CasError, ioError } from './errors.ts'

/** `flock`: the kernel releases it with the process. `pid-file`: weaker, used if there is no `flock` program. */
type LockKind = 'flock' | 'pid-file'

export interface RootLock {
  readonly kind: LockKind
  /** The last holder did not release the lock: it was killed, or the power failed. */
  readonly afterCrash: boolean
  /** When the lock was last taken or released, by the clock of that time; the present for a new one. */
  readonly lastUsedMs: number
  /**
   * Whether the lock's file is still the one at its path. If not, somebody else may own what is there.
   * @throws CasError `E_IO`
   */
  isInPlace(): boolean
  /**
   * Idempotent. Unless `clean`, the next holder is told of a crash, and checks what a crash can leave behind. A pid file
   * is always cleared: its owner would otherwise seem to hold it as long as this process lives.
   */
  release(clean?: boolean): void
}

const FLAGS = fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_NOFOLLOW

/**
 * Ensures one owner per root. Opens the lock file and runs `flock -n -x` in a child that inherits the descriptor: the
 * lock belongs to the open file description and lasts until this process closes it or dies. The file holds the owner's
 * pid. Without a `flock` program, a pid file with the process's start time is used instead, and a warning says so.
 * @throws CasError `E_LOCKED` naming the owner's pid, `E_IO`.
 */
export async function lockRoot(path: string): Promise<RootLock> {
  let fd: number
  try {
    fd = fs.openSync(path, FLAGS, 0o600)
  } catch (error) {
    throw ioError(error, 'open lock', path)
  }
  try {
    const taken = await tryFlock(fd)
    const owner = readOwner(fd)
    if (taken === false) throw lockedError(path, owner?.pid)
    const kind: LockKind = taken === undefined ? 'pid-file' : 'flock'
    // the kernel's lock decides, unless its owner had no `flock` program.
    if (owner !== undefined && (kind === 'pid-file' || owner.kind === 'pid-file')) {
      if (openInThisProcess.has(path) || (owner.pid !== process.pid && isRunning(owner)))
        throw lockedError(path, owner.pid)
    }
    if (kind === 'pid-file') {
      process.emitWarning(
        `no "flock" program: ${path} is guarded by a pid file only, which cannot stop two starts at the same moment`,
        { code: 'SVC_WEAK_LOCK' }
      )
    }
    const { mtimeMs: lastUsedMs, dev, ino } = fs.fstatSync(fd)
    fs.fchmodSync(fd, 0o600)
    writeOwner(fd, `${process.pid} ${processStart(process.pid) ?? '-'} ${kind}\n`)
    openInThisProcess.add(path)
    let held = true
    return {
      kind,
      afterCrash: owner !== undefined,
      lastUsedMs,
      // the descriptor keeps the inode's number from being used again
      isInPlace: () => {
        const now = tryLstat(path)
        return now !== undefined && now.ino === ino && now.dev === dev
      },
      release: (clean = true) => {
        if (!held) return
        held = false
        openInThisProcess.delete(path)
        try {
          if (clean || kind === 'pid-file') fs.ftruncateSync(fd, 0)
        } catch {
          // the next start then assumes a crash, which only costs more checks.
        }
        fs.closeSync(fd)
      }
    }
  } catch (error) {
    fs.closeSync(fd)
    throw ioError(error, 'lock', path)
  }
}

function tryLstat(path: string): fs.Stats | undefined {
  try {
    return fs.lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if (errnoOf(error) === 'ENOTDIR') return undefined
    throw ioError(error, 'look for the lock', path)
  }
}

const openInThisProcess = new Set<string>()

function lockedError(path: string, pid: number | undefined): CasError {
  const who = pid === undefined ? 'another process' : `process ${pid}`
  return new CasError('E_LOCKED', `${who} is using this store (${path}): stop it, or choose another root`, {
    path,
    ...(pid === undefined ? {} : { pid })
  })
}

interface LockHolder {
  readonly pid: number
  readonly startTime: string
  readonly kind: LockKind
}

function readOwner(fd: number): LockHolder | undefined {
  const bytes = new Uint8Array(64)
  const text = Buffer.from(bytes.subarray(0, fs.readSync(fd, bytes, 0, bytes.length, 0))).toString('latin1')
  const match = /^(\d{1,10}) (\d{1,20}|-) (flock|pid-file)\n/.exec(text)
  return match === null
    ? undefined
    : { pid: Number(match[1]), startTime: match[2] as string, kind: match[3] as LockKind }
}

function writeOwner(fd: number, text: string): void {
  fs.ftruncateSync(fd, 0)
  fs.writeSync(fd, text, 0)
  fs.fsyncSync(fd)
}
