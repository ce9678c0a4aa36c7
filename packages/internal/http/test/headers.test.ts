import { expect, test } from 'vitest'
import { parseRetryAfter, rateLimitWaitMs } from '../src/headers.ts'

const now = Date.parse('2026-01-02T03:04:05Z')

test.each<[Record<string, string>, number | undefined]>([
  [{}, undefined],
  [{ 'retry-after': '12' }, 12_000],
  [{ 'retry-after': 'Fri, 02 Jan 2026 03:04:35 GMT' }, 30_000],
  [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:00 GMT' }, 0],
  [{ 'retry-after': 'soon' }, undefined],
  [{ 'retry-after': '-1' }, undefined],
  [{ ratelimit: '"api";r=0;t=55' }, 55_000],
  [{ ratelimit: '"api|pages|resolvers"; r=0; t=268' }, 268_000],
  [{ ratelimit: '"api";r=0;t=5, "resolvers";r=0;t=90' }, 90_000],
  [{ ratelimit: '"api";r=0;t=5, "resolvers";r=17;t=90' }, 5_000],
  [{ ratelimit: 'limit=10, remaining=0, reset=20' }, 20_000],
  [{ 'ratelimit-reset': '9' }, 9_000],
  [{ ratelimit: '"api";r=0;t=5', 'retry-after': '8' }, 8_000]
])('%j asks to wait %s ms', (headers, expected) => {
  expect(rateLimitWaitMs(headers, now)).toBe(expected)
})

test('an absent length is not zero', () => expect(parseRetryAfter(undefined, now)).toBeUndefined())
