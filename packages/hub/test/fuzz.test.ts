import { describeFuzz } from '@svc/testkit/fuzz'
import { HUB_DOCUMENTS } from '../src/documents.ts'
import { HubError } from '../src/errors.ts'
import { readPlainHead } from '../src/plain-head.ts'
import { UntoldHash } from '../src/tree.ts'

const SHA1 = 'b'.repeat(40)
const SHA256 = 'c'.repeat(64)
const ABOUT = { repoId: 'Org/Name', gated: false, maxEntries: 100 }

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
    run: (input) => String(Math.min(HUB_DOCUMENTS.page(input, ABOUT).length, 4)),
    expected: (error) => {
      if (error instanceof HubError) return `${error.code} ${error.reason}`
      if (error instanceof UntoldHash) return 'untold'
      // not JSON, or not UTF-8: the caller answers for it.
      return error instanceof SyntaxError || error instanceof TypeError ? error.name : undefined
    }
  },
  {
    name: 'plain-head',
    seeds: [
      'HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 100-199/1000\r\nContent-Length: 100\r\n\r\nabc',
      'HTTP/1.1 206 \r\ncontent-length: 10\r\ncontent-range: bytes 100-109/*\r\nETag: "x"\r\nConnection: close\r\n\r\n',
      'HTTP/1.1 302 Found\r\nLocation: https://example.com/\r\nContent-Length: 0\r\n\r\n'
    ],
    dictionary: [
      '\r\n',
      '\r\n\r\n',
      'Transfer-Encoding: chunked\r\n',
      'Content-Length: 0\r\n',
      '\u0000',
      ' ',
      '206',
      '1.0',
      '-'
    ],
    run: (input) => {
      const bytes = Buffer.from(input)
      const head = readPlainHead(bytes, { start: 100, end: 200, sizeBytes: 1000 })
      if (typeof head === 'string') return head
      const text = bytes.toString('latin1', 0, head.headBytes)
      if (!text.endsWith('\r\n\r\n') || text.indexOf('\r\n\r\n') !== text.length - 4)
        throw new Error('the head is cut elsewhere')
      if (!(head.bodyBytes >= 1 && head.bodyBytes <= 100)) throw new Error('a body that was not asked for')
      if (!new RegExp(`^content-length:[ \\t]*${head.headers['content-length']}[ \\t]*$`, 'im').test(text))
        throw new Error('another length')
      if (text.match(/^(?:content-length|transfer-encoding)[ \t]*:/gim)!.length !== 1)
        throw new Error('two opinions about the length')
      return 'plain'
    },
    expected: () => undefined
  }
])
