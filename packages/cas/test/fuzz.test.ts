import { describeFuzz } from '@svc/testkit/fuzz'
import { formatJournal, tryParseJournal } from '../src/journal.ts'

describeFuzz([
  {
    name: 'partial-journal',
    seeds: [
      formatJournal({ key: 'k', sizeBytes: 100, digest: undefined, ranges: [[0, 10]] }),
      '{"version":1,"key":"k","sizeBytes":5,"ranges":[[0,1],[2,3]]}'
    ],
    dictionary: [
      '"ranges":[[',
      '],[',
      '"sizeBytes":',
      '"digest":"sha256:',
      '-1',
      '1e300',
      'null',
      '__proto__',
      '9007199254740993'
    ],
    run: (input) => {
      const journal = tryParseJournal(input)
      return journal === undefined ? 'none' : Object.keys(journal).join()
    },
    expected: () => undefined
  }
])
