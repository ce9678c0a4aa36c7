import type { PeerAddress } from '@svc/internal-net'
import type { Log } from './log.ts'
import { type RecordKind, StateRecords } from './record.ts'
import type { ReplacedFiles } from './replace.ts'
import { CorruptStateError, UnreadableStateError } from './strict.ts'

interface PortRecord {
  readonly port: number
}

/**
 * The ports that the system chose for listeners, so that the next start has the same ones: links and commands that
 * name them still work (spec disk.28). Losing one is no error.
 */
export class KeptPorts {
  readonly #records: StateRecords<PortRecord>
  readonly #log: Pick<Log, 'warn'>

  /** `root` is the folder of the store; `files` has opened `<root>/state`. */
  constructor(root: string, files: ReplacedFiles, log: Pick<Log, 'warn'>) {
    this.#records = new StateRecords(root, files, PORT)
    this.#log = log
  }

  /**
   * Listens at `address`; port 0 is the port that the listener of this name had before, or any if another program has
   * that one. @throws the error of `listen`
   */
  async listen<T>(
    name: string,
    address: PeerAddress,
    listen: (address: PeerAddress) => Promise<T>,
    portOf: (listener: T) => number | undefined
  ): Promise<T> {
    if (address.port !== 0) return listen(address)
    const kept = await this.#read(name)
    const again = kept === undefined ? undefined : await listen({ ...address, port: kept }).catch(unlessTaken)
    const listener = again ?? (await listen(address))
    const port = portOf(listener)
    if (port !== undefined && port !== kept) await this.#write(name, port)
    return listener
  }

  async #read(name: string): Promise<number | undefined> {
    try {
      return (await this.#records.read(`${name}.json`))?.port
    } catch (error) {
      if (!(error instanceof UnreadableStateError)) throw error
      this.#log.warn({ err: error }, 'a kept port cannot be read')
      return undefined
    }
  }

  async #write(name: string, port: number): Promise<void> {
    await this.#records
      .write(`${name}.json`, { port })
      .catch((error: unknown) => this.#log.warn({ err: error, name, port }, 'a port is not kept for the next start'))
  }
}

function unlessTaken(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') throw error
}

const PORT: RecordKind<PortRecord> = {
  folder: 'ports',
  shape: { port: (value, what) => (Number.isSafeInteger(value) ? undefined : `${what} is not a whole number`) },
  decode(record, file) {
    if (record.port < 1 || record.port > 65_535) throw new CorruptStateError(file, '"port" is not from 1 to 65535')
    return record
  },
  encode: (record) => record
}
