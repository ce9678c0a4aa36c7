import { describeFuzz } from '@svc/testkit/fuzz'
import { parseRange } from '../src/range.ts'

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

describeFuzz([
  {
    name: 'range-header',
    seeds: ['bytes=0-9', 'bytes=-5', 'bytes=5-', 'bytes=0-1,4-5', 'items=1-2'],
    dictionary: ['bytes=', '-', ',', ' ', '\t', '0', '99999999999999999999999', 'BYTES='],
    maxBytes: 8_192,
    run: (input) => {
      const verdict = parseRange(decoder.decode(input), 100)
      if (verdict.kind === 'part' && !(verdict.start >= 0 && verdict.start < verdict.end && verdict.end <= 100)) {
        throw new Error(`not inside the blob: ${JSON.stringify(verdict)}`)
      }
      return verdict.kind
    },
    expected: () => undefined
  }
])
