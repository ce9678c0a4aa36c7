import { ROUTES } from '@svc/client/protocol'
import { describeFuzz } from '@svc/testkit/fuzz'
import { recordText } from '@svc/testkit/records'
import { digestLines } from '../../catalog/src/digest-list.ts'
import { tryParseCatalogLine } from '../../catalog/src/listing.ts'
import { ARTIFACT_RECORD } from '../../internal/state/src/artifact-record.ts'
import { parseStateRecord } from '../../internal/state/src/record.ts'
import { REPO_RECORD } from '../../internal/state/src/repos.ts'
import { CorruptStateError } from '../../internal/state/src/strict.ts'
import { parseJsonBody } from '../src/api/json.ts'
import { readQuery } from '../src/api/query.ts'
import { parseConfigText } from '../src/config/file.ts'
import { ConfigError, DaemonError } from '../src/errors.ts'

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const DIGEST = `sha256:${'d'.repeat(64)}`
function expected(error: unknown): string | undefined {
  if (error instanceof DaemonError) return error.code
  if (error instanceof CorruptStateError || error instanceof ConfigError) return error.name
  return undefined
}
/** A record's own keys, with the envelope of one; what is no JSON object stays as it is. */
function enveloped(input: Uint8Array): Uint8Array {
  try {
    const body: unknown = JSON.parse(decoder.decode(input))
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return Buffer.from(recordText(body, 4))
  } catch {
    // not JSON
  }
  return input
}
const JSON_TOKENS = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ':',
  ',',
  'null',
  '\\u0000',
  '\\ud800',
  '"__proto__":',
  '1e999',
  '[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[['
]

describeFuzz([
  {
    name: 'json-body',
    seeds: ['{"ref":"svc:///a/b:q4_0"}', '{"paths":["/a"],"as":"a/b","x":[1,{"y":null}]}'],
    dictionary: JSON_TOKENS,
    run: (input) => String(Math.min(Object.keys(parseJsonBody(input)).length, 4)),
    expected
  },
  {
    name: 'query',
    seeds: ['/v1/resolve?ref=svc%3A%2F%2F%2Fa%2Fb%3Aq4', '/v1/open?x=1&ref=a+b'],
    dictionary: ['ref=', '&', '%', '%00', '%ff', '%zz', '+', '?', '='],
    maxBytes: 4_096,
    run: (input) => typeof readQuery(ROUTES.resolve.query, decoder.decode(input)).ref,
    expected
  },
  {
    name: 'catalog-listing',
    seeds: [
      `org/model  4.1 GB  12 seeds  magnet:?xt=urn:btih:${'a'.repeat(40)}&dn=m-q4_0.gguf&tr=udp%3A%2F%2Ft.example%3A1&ws=https%3A%2F%2Fh%2Forg%2Fmodel%2Fresolve%2F${'b'.repeat(40)}`
    ],
    dictionary: ['  ', ' seeds', 'magnet:?xt=urn:btih:', '&tr=', '&ws=', '&dn=', 'udp://x:0', '%00', '\r\n', '\n'],
    run: (input) => typeof tryParseCatalogLine(decoder.decode(input)),
    expected
  },
  {
    name: 'catalog-record',
    seeds: [`{"manifest":"${'e'.repeat(64)}  m.gguf\\n${'f'.repeat(64)}  config.json"}`],
    dictionary: ['"manifest":"', '\\n', '\\"', '  ', 'e'.repeat(64), '"', '\\'],
    run: (input) => String(Math.min([...digestLines(decoder.decode(input))].length, 4)),
    expected
  },
  {
    name: 'artifact-state',
    seeds: [
      JSON.stringify({
        record: DIGEST,
        source: { kind: 'hf', repo: 'a/b', revision: 'c' },
        provenance: { access: 'public' },
        pinned: false,
        hints: { trackers: [], webseeds: [], peers: ['1.2.3.4:5'] }
      })
    ],
    dictionary: [...JSON_TOKENS, '"source":', '"kind":"bt"', '"access":"own"', '"hints":{', DIGEST],
    run: (input) => Object.keys(parseStateRecord(enveloped(input), 'x', ARTIFACT_RECORD)).join(),
    expected
  },
  {
    name: 'repository-state',
    seeds: [JSON.stringify({ index: DIGEST, tags: { v1: DIGEST } })],
    dictionary: [...JSON_TOKENS, '"index":', '"tags":{', DIGEST],
    run: (input) => Object.keys(parseStateRecord(enveloped(input), 'x', REPO_RECORD)).join(),
    expected
  },
  {
    name: 'configuration',
    seeds: ['[swarm]\nenabled = false\nupload_limit = 10\n', '[store]\nroot = "/x"\n[hub]\nendpoint = "http://h"\n'],
    dictionary: [
      '[',
      ']',
      '[[',
      ' = ',
      '"',
      '"""',
      "'''",
      '{',
      '}',
      '\\u0000',
      '1979-05-27',
      'inf',
      '_',
      '0x',
      '#',
      '\r'
    ],
    maxBytes: 4_096,
    run: (input) => Object.keys(parseConfigText(decoder.decode(input), 'x')).join(),
    expected
  }
])
