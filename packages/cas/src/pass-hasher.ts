import { createHash, type Hash } from 'node:crypto'
import { digestFromHex, type Sha256Digest } from '@svc/ref'
import { CasError } from './errors.ts'
import type { HashAttachment, StreamHasher, StreamHasherFactory } from './store.ts'

export interface PassSpec {
  /** Default true; false when another thread computes the SHA-256 of the same bytes. */
  readonly sha256?: boolean
  readonly attachments: readonly HashAttachment[]
  readonly sizeBytes?: number | undefined
}

export interface PassResult {
  /** Undefined only for a pass without SHA-256. */
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

export const oversize = (expectedSizeBytes: number): CasError =>
  new CasError('E_SIZE_MISMATCH', `the source has more than the announced ${expectedSizeBytes} bytes`, {
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

/** What `work` returns. @throws CasError `E_ATTACHMENT` for whatever it throws */
function ofAttached<T>(name: string, what: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw attachmentError(name, what, error)
  }
}

/** All hashes of one pass over a blob. */
export class PassHasher {
  readonly #sha256: Hash | undefined
  readonly #attached: readonly (readonly [name: string, hasher: StreamHasher])[]
  #sizeBytes = 0

  private constructor(sha256: Hash | undefined, attached: readonly (readonly [string, StreamHasher])[]) {
    this.#sha256 = sha256
    this.#attached = attached
  }

  /** Loads the attachments' modules. @throws CasError `E_ATTACHMENT` */
  static async create({ sha256 = true, attachments, sizeBytes }: PassSpec): Promise<PassHasher> {
    await loadAttached(attachments)
    const attached = attachments.map(({ name, module, options }) => {
      const begin = (): StreamHasher => factories.get(module)!(options, sizeBytes)
      return [name, ofAttached(name, 'did not load', begin)] as const
    })
    return new PassHasher(sha256 ? createHash('sha256') : undefined, attached)
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** Hashes the next bytes; does not retain them. @throws CasError `E_ATTACHMENT` */
  update(chunk: Uint8Array): void {
    this.#sizeBytes += chunk.length
    this.#sha256?.update(chunk)
    for (const [name, hasher] of this.#attached) ofAttached(name, 'failed', () => hasher.update(chunk))
  }

  /** Ends the pass. @throws CasError `E_ATTACHMENT` */
  finish(): PassResult {
    const attachments: Record<string, Uint8Array> = {}
    for (const [name, hasher] of this.#attached) {
      ofAttached(name, 'failed', () => {
        attachments[name] = hasher.digest()
        for (const [key, result] of Object.entries(hasher.further?.() ?? {})) attachments[`${name}.${key}`] = result
      })
    }
    const digest = this.#sha256 && digestFromHex(this.#sha256.digest('hex'))
    return { digest, sizeBytes: this.#sizeBytes, attachments }
  }
}
