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
  new CasError('E_SIZE_MISMATCH', `the source has more than the ${expectedSizeBytes} bytes that were announced`, {
    expectedSizeBytes
  })

/** By module: even a repeated `import()` costs a tenth of hashing a small file. */
const factories = new Map<string, StreamHasherFactory>()

/** @throws CasError `E_ATTACHMENT` */
async function loadAttached(attachments: readonly HashAttachment[]): Promise<void> {
  for (const { name, module } of attachments) {
    if (factories.has(module)) continue
    try {
      factories.set(module, ((await import(module)) as { readonly default: StreamHasherFactory }).default)
    } catch (error) {
      throw attachmentError(name, 'did not load', error)
    }
  }
}

/** The attached hashes of one pass; their modules are loaded. @throws CasError `E_ATTACHMENT` */
function startAttached(attachments: readonly HashAttachment[], sizeBytes: number | undefined): AttachedHashers {
  const attached: [string, StreamHasher][] = []
  for (const { name, module, options } of attachments) {
    try {
      attached.push([name, factories.get(module)!(options, sizeBytes)])
    } catch (error) {
      throw attachmentError(name, 'did not load', error)
    }
  }
  return new AttachedHashers(attached)
}

/** The further hashes of one pass over a blob. Every method throws CasError `E_ATTACHMENT` for what a hash throws. */
class AttachedHashers {
  readonly #hashers: readonly (readonly [name: string, hasher: StreamHasher])[]

  constructor(hashers: readonly (readonly [string, StreamHasher])[]) {
    this.#hashers = hashers
  }

  update(chunk: Uint8Array): void {
    for (const [name, hasher] of this.#hashers) {
      try {
        hasher.update(chunk)
      } catch (error) {
        throw attachmentError(name, 'failed', error)
      }
    }
  }

  /** The results by name. Ends the pass. */
  finish(): Record<string, Uint8Array> {
    const results: Record<string, Uint8Array> = {}
    for (const [name, hasher] of this.#hashers) {
      try {
        results[name] = hasher.digest()
        for (const [key, result] of Object.entries(hasher.further?.() ?? {})) results[`${name}.${key}`] = result
      } catch (error) {
        throw attachmentError(name, 'failed', error)
      }
    }
    return results
  }
}

/** All hashes of one pass over a blob. */
export class PassHasher {
  readonly #flat: Hash | undefined
  readonly #attached: AttachedHashers
  #sizeBytes = 0

  private constructor(flat: Hash | undefined, attached: AttachedHashers) {
    this.#flat = flat
    this.#attached = attached
  }

  /** Loads the attachments' modules. @throws CasError `E_ATTACHMENT` */
  static async create(spec: PassSpec): Promise<PassHasher> {
    await loadAttached(spec.attachments)
    return new PassHasher(spec.flat ? createHash('sha256') : undefined, startAttached(spec.attachments, spec.sizeBytes))
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** Hashes the next bytes; does not retain them. */
  update(chunk: Uint8Array): void {
    this.#sizeBytes += chunk.length
    this.#flat?.update(chunk)
    this.#attached.update(chunk)
  }

  /** Ends the pass. */
  finish(): PassResult {
    const attachments = this.#attached.finish()
    const digest = this.#flat === undefined ? undefined : digestFromHex(this.#flat.digest('hex'))
    return { digest, sizeBytes: this.#sizeBytes, attachments }
  }
}
