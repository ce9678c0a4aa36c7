import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type AccessKeeper, hashed, type KeptAccess, secret } from './access.ts'

/** How long a page that runs may take until it accepts a connection. */
const LATE_MS = 1_000

interface RunningPage extends KeptAccess {
  /** Of the program that serves it, or did; 0 once that ended. */
  readonly pid: number
}

/** The address of a page that stays, in files that only this user reads: who was let in, and a token that lets one more in. */
export class KeptAddress implements AccessKeeper {
  readonly kept: RunningPage | undefined
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
    this.kept = read(join(folder, 'page.json'))
  }

  keep(access: KeptAccess): void {
    this.#write('page.json', JSON.stringify({ ...access, pid: process.pid }))
  }

  /** Links that nobody used lead nowhere: while no page runs, another user may have listened there, and been told one. */
  dropLink(): void {
    rmSync(this.#tokenFile, { force: true })
  }

  /** The page ends: nobody is sent there until it runs again. */
  end(): void {
    this.dropLink()
    const last = read(join(this.#folder, 'page.json'))
    if (last !== undefined) this.#write('page.json', JSON.stringify({ ...last, pid: 0 }))
  }

  redeem(hash: string): boolean {
    let made: string
    try {
      made = readFileSync(this.#tokenFile, 'utf8')
    } catch {
      return false
    }
    // a digest: how long the comparison takes tells nothing of the token
    if (made !== hash) return false
    this.dropLink()
    return true
  }

  /** A link into the page that runs there now, which works once; undefined if none runs. */
  async linkInto(): Promise<string | undefined> {
    const { kept } = this
    // its process holds the port: whoever else listens there gets no token
    if (kept === undefined || !isOurs(kept) || !(await isAnswered(kept))) return undefined
    const token = secret()
    this.#write('token', hashed(token).toString('hex'))
    return `${new URL(`http://${kept.name}:${kept.port}`).origin}/#${token}`
  }

  get #tokenFile(): string {
    return join(this.#folder, 'token')
  }

  #write(name: string, text: string): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const temporary = join(this.#folder, `${name}.new`)
    writeFileSync(temporary, text, { mode: 0o600 })
    renameSync(temporary, join(this.#folder, name))
  }
}

function read(path: string): RunningPage | undefined {
  try {
    const { name, port, path: page, sessions, pid } = JSON.parse(readFileSync(path, 'utf8'))
    const isWhole = typeof name === 'string' && typeof page === 'string' && [port, pid].every(Number.isInteger)
    return isWhole && Array.isArray(sessions) ? { name, port, path: page, sessions, pid } : undefined
  } catch {
    return undefined
  }
}

/** Whether the process lives, and is this user's. */
function isOurs({ pid }: RunningPage): boolean {
  try {
    // 0 would name this process and its group
    return pid > 0 && process.kill(pid, 0)
  } catch {
    return false
  }
}

const isAnswered = ({ name, port }: KeptAccess): Promise<boolean> =>
  new Promise((settle) => {
    const socket = connect({ host: name.endsWith('.localhost') ? '127.0.0.1' : name, port, timeout: LATE_MS })
    const end = (isOpen: boolean) => () => {
      socket.destroy()
      settle(isOpen)
    }
    socket.once('connect', end(true)).once('error', end(false)).once('timeout', end(false))
  })
