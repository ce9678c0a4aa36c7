import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

const MAX_FILE_BYTES = 64 << 10
/** Permissions that refuse a file. A group may read it, since clusters provide secrets that way. */
const TOO_OPEN = 0o037

/** A file with secrets. It is read again when it has changed, so that they can be renewed while the program runs. */
export class SecretFile<T> {
  readonly #path: string
  readonly #parse: (text: string) => T
  readonly #refusal: (message: string, cause?: unknown) => Error
  #known: { readonly stamp: string; readonly content: T } | undefined

  /** @param parse throws errors that repeat nothing of the text. @param refusal the error for a file that cannot be used */
  constructor(path: string, parse: (text: string) => T, refusal: (message: string, cause?: unknown) => Error) {
    this.#path = path
    this.#parse = parse
    this.#refusal = refusal
  }

  /** `where` it is configured, for messages. @throws a refusal naming the file, but nothing in it; the errors of `parse` */
  async read(where: string): Promise<T> {
    const path = this.#path
    const wrong = (what: string, cause?: unknown): Error => this.#refusal(`${where}: ${path} ${what}`, cause)
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((cause: NodeJS.ErrnoException) => {
      throw wrong(`cannot be read (${cause.code})`, cause)
    })
    try {
      const stats = await handle.stat()
      if (!stats.isFile()) throw wrong('is not a file')
      if ((stats.mode & TOO_OPEN) !== 0) throw wrong(`is open to others: chmod 600 ${path}`)
      const uid = process.geteuid?.()
      if (![0, uid].includes(stats.uid))
        throw wrong(`belongs to user ${stats.uid}, and this program runs as user ${uid}`)
      if (stats.size > MAX_FILE_BYTES) throw wrong(`has more than ${MAX_FILE_BYTES} bytes`)
      const stamp = [stats.dev, stats.ino, stats.size, stats.mtimeMs, stats.ctimeMs].join(' ')
      if (this.#known?.stamp !== stamp) this.#known = { stamp, content: this.#parse(await handle.readFile('utf8')) }
      return this.#known.content
    } finally {
      await handle.close()
    }
  }
}
