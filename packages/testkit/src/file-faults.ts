import { constants as files } from 'node:fs'
import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'
import { type FilePort, type FilePortFactory, type FilePortModule, nodeFilePort } from '@svc/internal-files'

/**
 * Indexes of the shared counters: operations seen, number of the first to fail, how many fail, whether it was reached,
 * whether it is held.
 */
const [SEEN, FAIL_AT, FAILURES, FIRED, HELD] = [0, 1, 2, 3, 4]

interface FaultPlan {
  readonly counters: SharedArrayBuffer
  /**
   * Besides error codes: `SHORT`, writes accept one byte; `SHORT_READ`, reads give one byte; `EOF`, reads give none; `KILL`, the process is killed before the operation, and opens
   * that create nothing are not counted.
   */
  readonly errno: string
  /** Only operations whose name matches are counted. */
  readonly only: string
  /** All reads and writes are short, hard links do not work. */
  readonly awkward: boolean
}

/** A file port for tests, whose N-th operation fails, counted over all threads. */
export class Faults {
  readonly #counters = new SharedArrayBuffer(20)
  readonly #slots = new Int32Array(this.#counters)
  readonly filePort: FilePortModule

  constructor(plan: Partial<Omit<FaultPlan, 'counters'>> = {}) {
    const options: FaultPlan = { errno: 'EIO', only: '', awkward: false, ...plan, counters: this.#counters }
    this.filePort = { module: import.meta.url, options }
  }

  /**
   * Makes the N-th operation from now on fail, together with the following `failures - 1`; 0: none. With `held`,
   * failing operations in worker threads wait for {@link release}.
   */
  arm(n: number, { failures = 1, held = false }: { readonly failures?: number; readonly held?: boolean } = {}): void {
    Atomics.store(this.#slots, FAILURES, failures)
    Atomics.store(this.#slots, HELD, held ? 1 : 0)
    Atomics.store(this.#slots, SEEN, 0)
    Atomics.store(this.#slots, FIRED, 0)
    Atomics.store(this.#slots, FAIL_AT, n)
  }

  /** Lets held operations continue, to their failure. */
  release(): void {
    Atomics.store(this.#slots, HELD, 0)
    Atomics.notify(this.#slots, HELD)
  }

  /** Matching operations so far. */
  get seen(): number {
    return Atomics.load(this.#slots, SEEN)
  }

  get fired(): boolean {
    return Atomics.load(this.#slots, FIRED) === 1
  }
}

const opensOnly = (name: keyof FilePort, args: readonly unknown[]): boolean =>
  name.startsWith('open') && ((args[1] as number) & files.O_CREAT) === 0

/** Like Node's own, which has no names for some: that of EDQUOT is "Unknown system error -122". */
function systemError(name: string, syscall: string): Error {
  const errno = -((constants.errno as Readonly<Record<string, number>>)[name] ?? 0)
  const code = errno === 0 ? name : getSystemErrorName(errno)
  return Object.assign(new Error(`${code}: injected, ${syscall}`), { code, errno, syscall })
}

const factory: FilePortFactory = (given) => {
  const plan = given as FaultPlan
  const slots = new Int32Array(plan.counters)
  const only = new RegExp(plan.only, 'i')
  const call = (name: keyof FilePort, args: unknown[]): unknown =>
    (nodeFilePort[name] as (...all: unknown[]) => unknown)(...args)
  const strike = (name: keyof FilePort, args: unknown[]): unknown => {
    if (plan.awkward && /^(read|write)(Sync)?$/.test(name)) {
      // the length is the fourth argument.
      return call(name, [...args.slice(0, 3), Math.min(args[3] as number, 70_001), ...args.slice(4)])
    }
    if (plan.awkward && name === 'linkSync')
      throw Object.assign(new Error('EPERM: no links here'), { code: 'EPERM', syscall: 'link' })
    if (!only.test(name) || (plan.errno === 'KILL' && opensOnly(name, args))) return call(name, args)
    const past = Atomics.add(slots, SEEN, 1) + 1 - Atomics.load(slots, FAIL_AT)
    if (Atomics.load(slots, FAIL_AT) === 0 || past < 0 || past >= Atomics.load(slots, FAILURES)) return call(name, args)
    Atomics.store(slots, FIRED, 1)
    if (plan.errno === 'KILL') process.kill(process.pid, 'SIGKILL')
    if (name.endsWith('Sync')) Atomics.wait(slots, HELD, 1)
    const error = systemError(plan.errno, name)
    // the length is the fourth argument.
    const readBytes = { SHORT_READ: 1, EOF: 0 }[plan.errno]
    if (readBytes !== undefined)
      return call(name, /^read(Sync)?$/.test(name) ? [...args.slice(0, 3), readBytes, ...args.slice(4)] : args)
    if (plan.errno === 'SHORT')
      return /^write/.test(name) ? call(name, [...args.slice(0, 3), 1, ...args.slice(4)]) : call(name, args)
    // Linux closes the descriptor even if close() fails.
    if (name === 'closeSync') call(name, args)
    if (name === 'close') return (call(name, args) as Promise<void>).then(() => Promise.reject(error))
    if (name.endsWith('Sync')) throw error
    return Promise.reject(error)
  }
  const names = Object.keys(nodeFilePort) as (keyof FilePort)[]
  return Object.fromEntries(
    names.map((name) => [name, (...args: unknown[]) => strike(name, args)])
  ) as unknown as FilePort
}
export default factory
