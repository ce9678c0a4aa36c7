import { describeFuzz } from '@svc/testkit/fuzz'
import { RefError } from '../src/errors.ts'
import { formatRef, parseRef, parseShortRef } from '../src/ref.ts'
import { parseRepoId } from '../src/repo-id.ts'
import { parseTag } from '../src/tag.ts'

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const expected = (error: unknown): string | undefined =>
  error instanceof RefError ? `${error.code} ${error.reason}` : undefined
const HEX = 'a'.repeat(64)
const dictionary = [
  'svc:///',
  ':',
  '+',
  '@sha256:',
  HEX,
  '/',
  'library/',
  'sha256-',
  'ud-',
  'q4_k_m',
  'İ',
  'ſ',
  '\0',
  '%2B',
  ' ',
  'Q4'
]

describeFuzz([
  {
    name: 'reference',
    seeds: ['svc:///acme/tiny:q8_0', `svc:///acme/tiny:v1+q4_k_m@sha256:${HEX}`, `svc:///acme/tiny@sha256:${HEX}`],
    dictionary,
    maxBytes: 2_048,
    run: (input) => {
      const ref = parseRef(decoder.decode(input))
      if (formatRef(parseRef(formatRef(ref))) !== formatRef(ref)) throw new Error('its own form does not read back')
      return Object.keys(ref).join()
    },
    expected
  },
  {
    name: 'short-reference',
    seeds: ['acme/tiny:q8_0', 'acme/tiny:v1+q4'],
    dictionary,
    maxBytes: 2_048,
    run: (input) => Object.keys(parseShortRef(decoder.decode(input))).join(),
    expected
  },
  {
    name: 'repository-id-and-tag',
    seeds: ['acme/tiny', 'v1.0_a'],
    dictionary,
    maxBytes: 1_024,
    run: (input) => {
      const text = decoder.decode(input)
      return text.includes('/') ? Object.keys(parseRepoId(text)).join() : typeof parseTag(text)
    },
    expected
  }
])
