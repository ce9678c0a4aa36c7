import { createHash } from 'node:crypto'
import type { HashAttachment } from '@svc/cas'
import { parseDigest, type Sha256Digest } from '@svc/ref'

/** The functions of a test runner that the suites use; those of vitest fit, and those of node:test with an `expect`. */
export interface ContractApi {
  describe(name: string, body: () => void): unknown
  test(name: string, body: () => Promise<void>): unknown
  expect(value: unknown): ContractMatchers
}
/** The methods of `expect` that the suites use; vitest, jest and bun have them. */
export interface ContractMatchers {
  toBe(expected: unknown): unknown
  toEqual(expected: unknown): unknown
}

/** Seeded bytes: equal arguments give equal bytes on every platform. */
export function seededBytes(sizeBytes: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(sizeBytes)
  let state = (seed * 0x9e3779b1) >>> 0 || 1
  for (let i = 0; i < sizeBytes; i++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    bytes[i] = state & 255
  }
  return bytes
}

/** The SHA-256 of these bytes, computed independently of the store. */
export const digestOf = (bytes: Uint8Array): Sha256Digest =>
  parseDigest(`sha256:${createHash('sha256').update(bytes).digest('hex')}`)

/** `bytes` in chunks of `chunkBytes`. */
export async function* inChunks(bytes: Uint8Array, chunkBytes: number): AsyncGenerator<Uint8Array, void, undefined> {
  for (let i = 0; i < bytes.length; i += chunkBytes) yield bytes.subarray(i, i + chunkBytes)
}

/** All items, in order. */
export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** The `code` that a promise fails with; undefined when it succeeds. */
export const codeOf = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => (error as { code?: unknown }).code ?? error
  )

/** SHA-256 of each 1,000-byte block, concatenated: shows whether the bytes arrived in order and once. */
export const blockAttachment: HashAttachment = {
  name: 'blocks',
  module: `data:text/javascript,${encodeURIComponent(`
    import { createHash } from 'node:crypto'
    export default options => {
      const out = []
      let hash = createHash('sha256'), fill = 0
      return {
        update(chunk) {
          for (let i = 0; i < chunk.length; ) {
            const take = Math.min(options.blockBytes - fill, chunk.length - i)
            hash.update(chunk.subarray(i, i + take)); i += take; fill += take
            if (fill === options.blockBytes) { out.push(hash.digest()); hash = createHash('sha256'); fill = 0 }
          }
        },
        digest() { if (fill > 0) out.push(hash.digest()); return new Uint8Array(Buffer.concat(out)) }
      }
    }`)}`,
  options: { blockBytes: 1000 }
}

/**
 * The expected result of {@link blockAttachment} for these bytes: 32 bytes for each 1,000-byte block, computed
 * independently of the store.
 */
export function blockHashes(bytes: Uint8Array): Uint8Array {
  const out: Buffer[] = []
  for (let i = 0; i < bytes.length; i += 1000)
    out.push(
      createHash('sha256')
        .update(bytes.subarray(i, i + 1000))
        .digest()
    )
  return new Uint8Array(Buffer.concat(out))
}
