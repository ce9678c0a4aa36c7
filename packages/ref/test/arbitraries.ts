import fc from 'fast-check'
import {
  type DigestRef,
  isQuantToken,
  isTag,
  type ModelRef,
  QUANT_WORDS,
  RefError,
  type SelectorRef,
  type Sha256Digest
} from '../src/index.ts'

/** Runs `act` and returns the RefError that it must throw. */
export function errorOf(act: () => unknown): RefError {
  try {
    act()
  } catch (error) {
    if (error instanceof RefError) return error
    throw error
  }
  throw new Error('expected a RefError, but nothing was thrown')
}

const letters = (alphabet: string, maxLength: number): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...alphabet), { maxLength }).map((all) => all.join(''))

const LOWER = 'abcdefghijklmnopqrstuvwxyz0123456789'
const word = (first: string, rest: string, maxLength: number): fc.Arbitrary<string> =>
  fc.tuple(fc.constantFrom(...first), letters(rest, maxLength - 1)).map(([a, b]) => a + b)

export const quant: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...QUANT_WORDS),
  fc
    .tuple(
      fc.constantFrom('', 'ud-'),
      fc.constantFrom('q', 'iq', 'tq', 'bf', 'f', 'fp', 'mx', 'mxfp'),
      fc.constantFrom(...'0123456789'),
      letters(`${LOWER}_`, 16)
    )
    .map((parts) => parts.join(''))
    .filter(isQuantToken)
)

export const tag: fc.Arbitrary<string> = word(`${LOWER}ABCDEFGHIJKLMNOPQRSTUVWXYZ_`, `${LOWER}ABCXYZ._-`, 128).filter(
  isTag
)

export const digest: fc.Arbitrary<Sha256Digest> = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => `sha256:${Buffer.from(bytes).toString('hex')}` as Sha256Digest)

const repo = fc.record({ ns: word(LOWER, `${LOWER}._-`, 64), name: word(LOWER, `${LOWER}._-`, 128) })

export const modelRef: fc.Arbitrary<ModelRef> = fc.oneof(
  fc.tuple(repo, quant, fc.option(tag, { nil: undefined }), fc.option(digest, { nil: undefined })).map(
    ([id, q, t, d]): SelectorRef => ({
      ...id,
      quant: q,
      ...(t === undefined ? {} : { tag: t }),
      ...(d === undefined ? {} : { digest: d })
    })
  ),
  fc.tuple(repo, digest).map(([id, d]): DigestRef => ({ ...id, digest: d }))
)
