import { constants, fstatSync } from 'node:fs'
import type { FilePort } from '@svc/internal-files'
import { ioError } from './errors.ts'
import type { FileIdentity, NamedFileSource } from './store.ts'

/** Opening a FIFO must not hang; the type is checked on the descriptor. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY

/** A file of the caller, opened by name and compared with the expected identity. */
export class NamedFile {
  readonly fd: number
  readonly #port: FilePort
  readonly #identity: FileIdentity

  private constructor(port: FilePort, fd: number, identity: FileIdentity) {
    this.fd = fd
    this.#port = port
    this.#identity = identity
  }

  /** @throws CasError `E_IO` */
  static open(port: FilePort, { path, identity }: NamedFileSource): NamedFile {
    let fd: number
    try {
      fd = port.openSync(path, READ)
    } catch (error) {
      throw ioError(error, 'open source', path)
    }
    const file = new NamedFile(port, fd, identity)
    try {
      file.check()
    } catch (error) {
      file.close()
      throw error
    }
    return file
  }

  /** @throws CasError `E_IO` unless it is still the expected regular file, unmodified */
  check(): void {
    try {
      const found = fstatSync(this.fd, { bigint: true })
      const { dev, ino, size, mtimeNs, ctimeNs } = this.#identity
      const same = found.dev === dev && found.ino === ino && found.size === size
      if (!found.isFile() || !same || found.mtimeNs !== mtimeNs || found.ctimeNs !== ctimeNs)
        throw new Error('it is not the file that it was')
    } catch (error) {
      throw ioError(error, 'read source')
    }
  }

  close(): void {
    try {
      this.#port.closeSync(this.fd)
    } catch {
      // Ignored: the descriptor was only read from.
    }
  }
}
