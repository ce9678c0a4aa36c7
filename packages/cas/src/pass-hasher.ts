import { createHash, type Hash } from 'node:crypto'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import { CasError } from './errors.ts'
import type { HashAttachment, StreamHasher, StreamHasherFactory } from './store.ts'

export interface PassSpec {
  /** False when another thread computes the SHA-256 of the same bytes. */
  readonly flat: boolean
  readonly attachments: readonly HashAttachment[]
  readonly sizeBytes?: number | undefined
}

export interface PassResult {
  readonly digest: Sha256Digest | undefined
  readonly sizeBytes: number
  readonly attachments: Record<string, Uint8Array>
}

const attachmentError = (name: string, what: string, cause: unknown): CasError =>
  new CasError(
    'E_ATTACHMENT',
    `the attached hash "${name}" ${what}: ${cause instanceof Error ? cause.message : String(cause)}`,
    {},
    cause
  )

/** The error for more bytes than announced. */
export const oversize = (expectedSizeBytes: number): CasError =>
  new CasError('E_SIZE_MISMATCH', `more bytes than the ${expectedSizeBytes} that were announced`, { expectedSizeBytes })

/** By module: even a repeated `import()` costs a tenth of hashing a small file. */
const factories = new Map<string, StreamHasherFactory>()

/** All hashes of one pass over a blob. */
export class PassHasher {
  readonly #flat: Hash | undefined
  readonly #attached: readonly (readonly [name: string, hasher: StreamHasher])[]
  #sizeBytes = 0

  private constructor(flat: Hash | undefined, attached: readonly (readonly [string, StreamHasher])[]) {
    this.#flat = flat
    this.#attached = attached
  }

  /** Loads the attachments' modules. @throws CasError `E_ATTACHMENT` */
  static async create(spec: PassSpec): Promise<PassHasher> {
    const attached: [string, StreamHasher][] = []
    for (const { name, module, options } of spec.attachments) {
      try {
        const factory =
          factories.get(module) ?? ((await import(module)) as { readonly default: StreamHasherFactory }).default
        factories.set(module, factory)
        attached.push([name, factory(options, spec.sizeBytes)])
      } catch (error) {
        throw attachmentError(name, 'did not load', error)
      }
    }
    return new PassHasher(spec.flat ? createHash('sha256') : undefined, attached)
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** Hashes the next bytes; does not retain them. */
  update(chunk: Uint8Array): void {
    this.#sizeBytes += chunk.length
    this.#flat?.update(chunk)
    for (const [name, hasher] of this.#attached) {
      try {
        hasher.update(chunk)
      } catch (error) {
        throw attachmentError(name, 'failed', error)
      }
    }
  }

  /** Ends the pass. */
  finish(): PassResult {
    const attachments: Record<string, Uint8Array> = {}
    for (const [name, hasher] of this.#attached) {
      try {
        attachments[name] = hasher.digest()
      } catch (error) {
        throw attachmentError(name, 'failed', error)
      }
    }
    const digest = this.#flat === undefined ? undefined : digestFromHex(this.#flat.digest('hex'))
    return { digest, sizeBytes: this.#sizeBytes, attachments }
  }
}
