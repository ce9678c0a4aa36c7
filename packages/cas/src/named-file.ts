import { constants, fstatSync } from 'node:fs'
import type { FilePort } from '@svc/internal-files'
import { ioError } from './errors.ts'
import type { FileIdentity, NamedFileSource } from './store.ts'

/** Opening a FIFO must not hang; the type is checked on the descriptor. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY

/** Numbers of one identity in a {@link packIdentities} array. */
const IDENTITY_FIELDS = 5

/**
 * The identities of files as numbers of 64 bits, one after the other, which go to a thread without a copy. What does
 * not fit wraps around, on both sides of a comparison.
 */
export function packIdentities(identities: readonly FileIdentity[]): BigInt64Array<ArrayBuffer> {
  const packed = new BigInt64Array(identities.length * IDENTITY_FIELDS)
  identities.forEach((identity, i) => putIdentity(packed, i, identity))
  return packed
}

function putIdentity(target: BigInt64Array, index: number, { dev, ino, size, mtimeNs, ctimeNs }: FileIdentity): void {
  const at = index * IDENTITY_FIELDS
  target[at] = dev
  target[at + 1] = ino
  target[at + 2] = size
  target[at + 3] = mtimeNs
  target[at + 4] = ctimeNs
}

const found = new BigInt64Array(IDENTITY_FIELDS)

/** A file of the caller, opened by name and compared with the expected identity. */
export class NamedFile {
  readonly fd: number
  readonly sizeBytes: number
  readonly #port: FilePort
  readonly #identities: BigInt64Array
  readonly #index: number

  private constructor(port: FilePort, fd: number, identities: BigInt64Array, index: number) {
    this.fd = fd
    this.sizeBytes = Number(identities[index * IDENTITY_FIELDS + 2])
    this.#port = port
    this.#identities = identities
    this.#index = index
  }

  static open(port: FilePort, { path, identity }: NamedFileSource): NamedFile {
    return NamedFile.openPacked(port, path, packIdentities([identity]), 0)
  }

  /** `index` counts identities. @throws CasError `E_IO` */
  static openPacked(port: FilePort, path: string, identities: BigInt64Array, index: number): NamedFile {
    let fd: number
    try {
      fd = port.openSync(path, READ)
    } catch (error) {
      throw ioError(error, 'open source', path)
    }
    const file = new NamedFile(port, fd, identities, index)
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
      const stat = fstatSync(this.fd, { bigint: true })
      putIdentity(found, 0, stat)
      const at = this.#index * IDENTITY_FIELDS
      let same = stat.isFile()
      for (let i = 0; same && i < IDENTITY_FIELDS; i++) same = found[i] === this.#identities[at + i]
      if (!same) throw new Error('it is not the file that it was')
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
