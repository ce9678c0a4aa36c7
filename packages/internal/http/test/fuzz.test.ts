import { describeFuzz } from '@svc/testkit/fuzz'
import { BodyRangeError, bodyRange } from '../src/body-range.ts'
import { parseRetryAfter, rateLimitWaitMs } from '../src/headers.ts'

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

describeFuzz([
  {
    name: 'rate-limit',
    seeds: ['120', 'Wed, 21 Oct 2026 07:28:00 GMT', '"api";r=0;t=12', '"pages";r=1;t=300'],
    dictionary: [';t=', ';r=0', '"', 'GMT', '-', '99999999999999999999', '1e9'],
    maxBytes: 512,
    run: (input) => {
      const text = decoder.decode(input)
      const waits = [parseRetryAfter(text, 0), rateLimitWaitMs({ ratelimit: text, 'retry-after': text }, 0)]
      for (const wait of waits) {
        if (wait !== undefined && !(Number.isFinite(wait) && wait >= 0)) throw new Error(`waits ${wait} ms`)
      }
      return waits.map((wait) => typeof wait).join()
    },
    expected: () => undefined
  },
  {
    name: 'content-range',
    seeds: ['bytes 100-199/1000', 'bytes 100-149/*', 'Bytes 0-0/1'],
    dictionary: ['bytes ', '100', '-', '/', '1000', '*', '9'.repeat(20), ' '],
    maxBytes: 256,
    run: (input) => {
      const headers = { 'content-range': decoder.decode(input) }
      const { start, end } = bodyRange({ status: 206, headers }, { start: 100, end: 200 }, 1000)
      if (start !== 100 || end <= start || end > 200) throw new Error('a body that was not asked for')
      return 'taken'
    },
    expected: (error) => (error instanceof BodyRangeError ? error.defect : undefined)
  }
])
