import { describeFuzz } from '@svc/testkit/fuzz'
import { HubError } from '../src/errors.ts'
import { parseJson } from '../src/json.ts'
import { ListingCheck, MaskedHashes } from '../src/tree.ts'

const SHA1 = 'b'.repeat(40)
const SHA256 = 'c'.repeat(64)

describeFuzz([
  {
    name: 'hub-tree',
    seeds: [
      JSON.stringify([
        { type: 'file', oid: SHA1, size: 10, path: 'config.json' },
        { type: 'directory', oid: SHA1, size: 0, path: 'sub' }
      ]),
      JSON.stringify([
        {
          type: 'file',
          oid: SHA1,
          size: 10,
          path: 'm.gguf',
          lfs: { oid: SHA256, size: 10, pointerSize: 130 },
          xetHash: 'x'
        }
      ])
    ],
    dictionary: [
      '"path":"',
      '"../',
      '"size":',
      '"lfs":{',
      '"oid":"',
      SHA1,
      SHA256,
      '*'.repeat(64),
      '"type":"directory"',
      '__proto__',
      '\\u0000',
      '.git/',
      '-1',
      '1e400'
    ],
    run: (input) => {
      const check = new ListingCheck('Org/Name', SHA1, 100)
      check.add(parseJson(input))
      return String(Math.min(check.finish().length, 4))
    },
    expected: (error) => {
      if (error instanceof HubError) return `${error.code} ${error.reason}`
      if (error instanceof MaskedHashes) return 'masked'
      // Not JSON, or not UTF-8: the caller answers for it.
      return error instanceof SyntaxError || error instanceof TypeError ? error.name : undefined
    }
  }
])
