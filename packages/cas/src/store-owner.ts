import { randomBytes } from 'node:crypto'
import { constants, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { type Clock, systemClock, type Timer } from '@svc/internal-clock'
import { isRunning, nodeFilePort, processStart, readWhole, thisMachine } from '@svc/internal-files'
import { CasError, ioError } from './errors.ts'

/** Who works on a store, as its `owner` file says. */
interface Owner {
  /** Drawn by each owner. */
  readonly nonce: string
  readonly pid: number
  /** {@link processStart} */
  readonly startTime: string
  /** {@link thisMachine}; pids are those of there. */
  readonly machine: string
  readonly host: string
  /** Device and inode of the root: a copy of the folder has no owner yet. */
  readonly folder: string
  /** Counted up while the owner lives, on a network file system. */
  readonly beat: number
}

export interface OwnerOptions {
  readonly clock?: Clock
  /** The root is on a network file system, which may grant a lock to a process on each of two machines. */
  readonly isShared?: boolean
}

/** A record needs some 400. */
const RECORD_BYTES = 1024
const WRITE = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW
/** How often an owner counts up on a network file system. */
const BEAT_MS = 5_000
/** An owner that did not count up for so long has ended; it is longer than clients of such file systems cache. */
const SILENT_MS = 20_000
/** On a network file system: so long after it wrote its record an owner looks whether it is the only one. */
const SETTLE_MS = 1_000

const openInThisProcess = new Set<string>()

/**
 * The owner of a store beside its lock, since not every file system tells the truth about locks (spec disk.27). The holder of the
 * lock writes down who it is; it is refused while another owner that is written down is seen to live. Before it removes or
 * replaces anything it reads the file again, and whoever finds another name there stops.
 */
export class StoreOwner {
  readonly #path: string
  #own: Owner
  /** Who else was found there: from then on this process owns nothing, whatever the file says later. */
  #taker: Owner | undefined
  #timer: Timer | undefined
  #beating: Promise<void> | undefined
  #isReleased = false

  private constructor(path: string, own: Owner) {
    this.#path = path
    this.#own = own
  }

  /** Called with the lock held, before anything is changed. @throws CasError `E_LOCKED` naming the owner, `E_IO` */
  static async claim(path: string, { clock = systemClock, isShared = false }: OwnerOptions = {}): Promise<StoreOwner> {
    try {
      const folder = folderOf(path)
      const before = await readOwner(path)
      if (openInThisProcess.has(path)) throw lockedError(path, before)
      if (before !== undefined) await requireEnded(path, before, folder, { clock, isShared })
      const owner = new StoreOwner(path, ownRecord(folder))
      await owner.#write()
      if (isShared) await clock.sleep(SETTLE_MS)
      if (!(await owner.isSole())) throw lockedError(path, owner.#taker)
      openInThisProcess.add(path)
      if (isShared) owner.#beat(clock)
      return owner
    } catch (error) {
      throw ioError(error, 'write down the owner', path)
    }
  }

  /**
   * Whether the file still names this process; opens it anew, so that a network file system asks its server.
   * @throws CasError `E_IO`
   */
  async isSole(): Promise<boolean> {
    // which may be writing
    await this.#beating
    try {
      return await this.#isNamed()
    } catch (error) {
      throw ioError(error, 'read the owner', this.#path)
    }
  }

  async #isNamed(): Promise<boolean> {
    const now = await readOwner(this.#path)
    if (now !== undefined && now.nonce !== this.#own.nonce) this.#taker ??= now
    return now !== undefined && this.#taker === undefined
  }

  /** Who took the store over, as far as is known; costs nothing. */
  get taker(): string | undefined {
    return this.#taker && spoken(this.#taker)
  }

  /** Idempotent. A file that names another owner stays. */
  async release(): Promise<void> {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#timer?.cancel()
    await this.#beating
    openInThisProcess.delete(this.#path)
    try {
      if (await this.isSole()) await nodeFilePort.unlink(this.#path)
    } catch {
      // it names a process that has ended
    }
  }

  /** Counts up from now on. What fails is tried again: others wait for long enough before they take over. */
  #beat(clock: Clock): void {
    const beatOnce = async (): Promise<void> => {
      if (!(await this.#isNamed())) return
      this.#own = { ...this.#own, beat: this.#own.beat + 1 }
      await this.#write()
    }
    this.#timer = clock.every(BEAT_MS, () => {
      this.#beating ??= beatOnce()
        .catch(() => undefined)
        .finally(() => (this.#beating = undefined))
    })
  }

  /** All records have one size, so that one write replaces another whole. */
  async #write(): Promise<void> {
    const file = await open(this.#path, WRITE, 0o600)
    try {
      await file.chmod(0o600)
      await file.write(Buffer.from(`${JSON.stringify(this.#own).padEnd(RECORD_BYTES - 1)}\n`), 0, RECORD_BYTES, 0)
      await file.truncate(RECORD_BYTES)
      await file.sync()
    } finally {
      await file.close()
    }
  }
}

const ownRecord = (folder: string): Owner => ({
  nonce: randomBytes(8).toString('hex'),
  pid: process.pid,
  startTime: processStart(process.pid) ?? '-',
  machine: thisMachine(),
  host: hostname().slice(0, 64),
  folder,
  beat: 0
})

function folderOf(path: string): string {
  const { dev, ino } = statSync(dirname(path), { bigint: true })
  return `${dev}:${ino}`
}

/** Undefined without a file, and for one that is no record: nothing can be seen to live then. @throws system errors */
async function readOwner(path: string): Promise<Owner | undefined> {
  const bytes = await readWhole(nodeFilePort, path, RECORD_BYTES).catch((error: unknown) => {
    if (!(error instanceof RangeError)) throw error
  })
  if (bytes === undefined) return undefined
  try {
    const found = JSON.parse(Buffer.from(bytes).toString('utf8')) as Partial<Owner> | null
    const { nonce, pid, startTime, machine, host, folder, beat } = found ?? {}
    if (!Number.isSafeInteger(pid) || (pid as number) < 1 || !Number.isSafeInteger(beat)) return undefined
    if ([nonce, startTime, machine, host, folder].every((text) => typeof text === 'string')) return found as Owner
  } catch {
    // as below
  }
  return undefined
}

/** The lock was granted, and the file names an owner: has that one ended? @throws CasError `E_LOCKED`, system errors */
async function requireEnded(
  path: string,
  owner: Owner,
  folder: string,
  { clock, isShared }: Required<OwnerOptions>
): Promise<void> {
  if (owner.machine === thisMachine()) {
    // itself does not count: what had its pid before has ended
    if (owner.folder === folder && owner.pid !== process.pid && isRunning(owner)) throw lockedError(path, owner)
    return
  }
  // on a local disk nobody else can be
  if (!isShared) return
  for (let waitedMs = 0; waitedMs < SILENT_MS; waitedMs += BEAT_MS) {
    await clock.sleep(BEAT_MS)
    const now = await readOwner(path)
    if (now !== undefined && (now.nonce !== owner.nonce || now.beat !== owner.beat)) throw lockedError(path, now)
  }
}

const spoken = ({ pid, machine, host }: Owner): string =>
  `process ${pid}${machine === thisMachine() ? '' : ` on the host ${JSON.stringify(host)}`}`

function lockedError(path: string, owner: Owner | undefined): CasError {
  const who = owner === undefined ? 'another process' : spoken(owner)
  return new CasError('E_LOCKED', `${who} is using this store (${path}): stop it, or choose another root`, {
    path,
    ...(owner !== undefined && { pid: owner.pid })
  })
}
