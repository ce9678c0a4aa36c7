import type { FakeHubFaultRule } from '@svc/testkit/fake-hub-faults'
import type { HubError } from '../src/index.ts'

/** Faults of a hub that a download gets over. */
export const OVERCOME: readonly [name: string, rules: FakeHubFaultRule[]][] = [
  ['a refused connection', [{ stage: 'resolve', times: 2, fault: { kind: 'refuse' } }]],
  ['cuts', [{ stage: 'cdn', times: 6, fault: { kind: 'cut', afterBytes: 30_000 } }]],
  ['stalls', [{ stage: 'cdn', times: 3, fault: { kind: 'stall', afterBytes: 5_000 } }]],
  ['a stall before the first byte', [{ stage: 'cdn', times: 2, fault: { kind: 'stall', afterBytes: 0 } }]],
  ['dripping', [{ stage: 'cdn', times: 2, fault: { kind: 'drip', stepBytes: 20_000, everyMs: 5 } }]],
  ['5xx bursts', [{ stage: 'cdn', times: 4, fault: { kind: 'status', status: 503 } }]],
  ['a short body', [{ stage: 'cdn', times: 3, fault: { kind: 'short-body', missingBytes: 10 } }]],
  ['200 for a range', [{ stage: 'cdn', skip: 2, fault: { kind: 'ignore-range' } }]],
  ['200 for every range', [{ stage: 'cdn', fault: { kind: 'ignore-range' } }]],
  ['a wrong Content-Range', [{ stage: 'cdn', times: 2, fault: { kind: 'content-range', value: 'bytes 0-9/1000003' } }]],
  ['a missing Content-Range', [{ stage: 'cdn', times: 2, fault: { kind: 'content-range', value: undefined } }]],
  ['another total once', [{ stage: 'cdn', times: 1, fault: { kind: 'content-range', value: 'bytes 0-131071/7' } }]],
  ['a changed ETag', [{ stage: 'cdn', skip: 4, times: 1, fault: { kind: 'etag', value: '"other"' } }]],
  [
    'an encoded body',
    [{ stage: 'cdn', times: 2, fault: { kind: 'headers', headers: { 'content-encoding': 'gzip' } } }]
  ],
  ['expired addresses', [{ stage: 'cdn', skip: 3, times: 5, fault: { kind: 'status', status: 403 } }]],
  [
    '404 of a listed file',
    [
      {
        stage: 'resolve',
        times: 2,
        fault: { kind: 'status', status: 404, headers: { 'x-error-code': 'EntryNotFound' } }
      }
    ]
  ]
]

/** Faults that end a download, and how. */
export const FATAL: readonly [
  name: string,
  rules: FakeHubFaultRule[],
  code: HubError['code'],
  reason: HubError['reason']
][] = [
  ['refused for good', [{ stage: 'cdn', fault: { kind: 'refuse' } }], 'E_SOURCE_UNAVAILABLE', 'unreachable'],
  [
    'stalled for good',
    [{ stage: 'cdn', fault: { kind: 'stall', afterBytes: 0 } }],
    'E_SOURCE_UNAVAILABLE',
    'unreachable'
  ],
  [
    '5xx for good',
    [{ stage: 'resolve', fault: { kind: 'status', status: 500 } }],
    'E_SOURCE_UNAVAILABLE',
    'unreachable'
  ],
  [
    'CDN 403 for good',
    [{ stage: 'cdn', fault: { kind: 'status', status: 403 } }],
    'E_SOURCE_UNAVAILABLE',
    'unreachable'
  ],
  [
    'encoded for good',
    [{ stage: 'cdn', fault: { kind: 'headers', headers: { 'content-encoding': 'br' } } }],
    'E_SOURCE_UNAVAILABLE',
    'bad-answer'
  ],
  [
    'another total for good',
    [{ stage: 'cdn', fault: { kind: 'content-range', value: 'bytes 0-131071/7' } }],
    'E_NOT_IMPORTABLE',
    'wrong-bytes'
  ],
  [
    'another digest on the redirect',
    [{ stage: 'resolve', fault: { kind: 'headers', headers: { 'x-linked-etag': `"${'0'.repeat(64)}"` } } }],
    'E_NOT_IMPORTABLE',
    'wrong-bytes'
  ],
  [
    'another commit on the redirect',
    [{ stage: 'resolve', fault: { kind: 'headers', headers: { 'x-repo-commit': '0'.repeat(40) } } }],
    'E_NOT_IMPORTABLE',
    'wrong-bytes'
  ],
  [
    'redirect loop',
    [{ stage: 'resolve', fault: { kind: 'redirect', location: 'self' } }],
    'E_SOURCE_UNAVAILABLE',
    'refused-redirect'
  ],
  [
    'redirect to another scheme',
    [{ stage: 'resolve', fault: { kind: 'redirect', location: 'file:///etc/passwd' } }],
    'E_SOURCE_UNAVAILABLE',
    'refused-redirect'
  ],
  [
    'gated',
    [{ stage: 'resolve', fault: { kind: 'status', status: 403, headers: { 'x-error-code': 'GatedRepo' } } }],
    'E_SOURCE_FORBIDDEN',
    'gated'
  ],
  ['legal', [{ stage: 'resolve', fault: { kind: 'status', status: 451 } }], 'E_SOURCE_FORBIDDEN', 'legal'],
  [
    'revision gone',
    [{ stage: 'resolve', fault: { kind: 'status', status: 404, headers: { 'x-error-code': 'RevisionNotFound' } } }],
    'E_UNKNOWN_REF',
    'no-such-revision'
  ],
  [
    'rate limited for good',
    [{ stage: 'resolve', fault: { kind: 'status', status: 429, headers: { 'retry-after': '100' } } }],
    'E_RATE_LIMITED',
    'rate-limited'
  ]
]
